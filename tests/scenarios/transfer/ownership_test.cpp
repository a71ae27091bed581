#include "scenarios/transfer/ownership.h"

#include <gtest/gtest.h>

#include <random>
#include <stdexcept>

#include "scenarios/costs/parameters.h"
#include "tests/scenarios/costs/shipped_job.h"
#include "tests/scenarios/transfer/every_element.h"
#include "tests/scenarios/transfer/small_plans.h"

namespace headway::scenarios {
namespace {

using transfer_test::all_layouts;
using transfer_test::even_plan;
using transfer_test::shaken;
using transfer_test::text_of;
using transfer_test::tiny_job;

std::int64_t weights_of_rank(const Ownership& ownership, int rank) {
    std::int64_t elements = 0;
    for (const Block& block : ownership.blocks()) {
        const Interval owned = ownership.owned(rank, block, StateKind::kWeights);
        if (!owned.empty()) elements += owned.size();
    }
    return elements;
}

TEST(Ownership, CountsTheParametersOfEveryRankToTheElement) {
    for (const char* name : {"gpt3-175b", "llama3.1-70b", "gpt2-124m"}) {
        const Model model = read_model(shipped_catalogue(), name);
        const Job job = job_of(model, 1, 64);
        for (const auto& [tensor, pipeline] : {std::pair{1, 1}, {1, 4}, {4, 1}, {4, 2}, {2, 3}}) {
            if (model.heads % tensor != 0) continue;
            const Layout layout = layout_of(tensor, pipeline, 1, pipeline > 1 ? 2 : 1);
            const Plan plan = even_plan(job, layout);
            const Ownership ownership(job, plan);
            for (int stage = 0; stage < pipeline; ++stage) {
                std::int64_t wanted = 0;
                for (int chunk = 0; chunk < layout.virtual_pipeline; ++chunk) {
                    const int k = chunk * pipeline + stage;
                    wanted += rank_parameters(job, layout, k, plan.layers(0, k));
                }
                for (int t = 0; t < tensor; ++t)
                    EXPECT_EQ(weights_of_rank(ownership, plan.rank(t, 0, 0, stage)), wanted)
                        << name << " " << describe(layout) << " stage " << stage;
            }
        }
    }
}

TEST(Ownership, ReplicasShareTheOptimizerStateOfABlockEvenly) {
    const Job job = job_of(read_model(shipped_catalogue(), "gpt3-175b"), 1, 1536);
    Layout layout = layout_of(8, 16, 8);
    layout.distributed_optimizer = true;
    const Ownership ownership(job, even_plan(job, layout));
    const std::int64_t shard = layer_parameters(job.model).split / 8 / 8;
    for (int replica = 0; replica < 8; ++replica)
        EXPECT_EQ(ownership.owned(8 * replica + 3, {BlockKind::kLayerSplit, 2}, StateKind::kOptimizer),
                  (Interval{(3 * 8 + replica) * shard, (3 * 8 + replica + 1) * shard}));
}

TEST(Ownership, AgreesWithEveryElementOfSmallPlans) {
    std::mt19937_64 random(11);
    for (const bool tied : {false, true}) {
        const Job job = tiny_job(tied);
        for (const Layout& layout : all_layouts(8)) {
            const Plan plan = shaken(job, layout, 8, random() % 2 == 1, random);
            const Ownership ownership(job, plan);
            const auto wanted = transfer_test::elements_of_gpus(job, plan, 8);
            for (int rank = 0; rank < plan.layout.world_size(); ++rank) {
                std::set<transfer_test::Element> owned;
                for (const Block& block : ownership.blocks())
                    for (const StateKind kind : {StateKind::kWeights, StateKind::kOptimizer}) {
                        const Interval part = ownership.owned(rank, block, kind);
                        for (std::int64_t e = part.begin; e < part.end; ++e)
                            owned.insert({block.kind, block.layer, kind, e});
                    }
                EXPECT_EQ(owned, wanted[static_cast<std::size_t>(plan.gpu_of_rank[static_cast<std::size_t>(rank)])])
                    << text_of(plan) << " rank " << rank;
            }
        }
    }
}

TEST(Ownership, TensorsOfALayerFillItsUnits) {
    for (const char* name : {"gpt3-175b", "llama3.1-70b", "gpt2-124m", "bloom-176b"}) {
        const Model model = read_model(shipped_catalogue(), name);
        std::int64_t unit = 0;
        for (const SplitTensor& tensor : split_tensors(model)) unit += tensor.rows_of_unit * tensor.row;
        EXPECT_EQ(unit * split_units(model), layer_parameters(model).split) << name;
    }
}

TEST(Ownership, PartsOfAnIntervalCoverItOnce) {
    for (std::int64_t size = 0; size < 30; ++size)
        for (std::int64_t parts = 1; parts < 12; ++parts) {
            std::int64_t at = 5;
            for (std::int64_t i = 0; i < parts; ++i) {
                const Interval part = part_of({5, 5 + size}, i, parts);
                EXPECT_EQ(part.begin, at);
                EXPECT_LE(part.size(), (size + parts - 1) / parts);
                at = part.end;
            }
            EXPECT_EQ(at, 5 + size);
        }
}

TEST(Ownership, RefusesAPlanOfAnotherModel) {
    const Job job = tiny_job(true);
    Plan plan = even_plan(job, layout_of(1, 2, 2));
    plan.layers_of_cell[1] += 1;
    EXPECT_THROW(Ownership(job, plan), std::invalid_argument);
    plan.layers_of_cell.pop_back();
    EXPECT_THROW(Ownership(job, plan), std::invalid_argument);
}

}  // namespace
}  // namespace headway::scenarios
