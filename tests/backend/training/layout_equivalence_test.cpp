#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <map>
#include <ostream>
#include <string>
#include <vector>

#include "tests/backend/training/training_case.h"

/// A run under any plan is the run of one process, to rounding.
namespace headway::tests {
namespace {

using scenarios::Job;
using scenarios::Layout;
using scenarios::Plan;
using scenarios::Recompute;
using scenarios::Schedule;

struct EquivalenceCase {
    std::string name;
    Job job;
    Plan plan;
    int processes = 0;
};

void PrintTo(const EquivalenceCase& one, std::ostream* out) {
    *out << one.name << ": " << scenarios::describe(one.plan.layout);
}

Layout degrees(int tensor, int pipeline, int data) {
    Layout layout;
    layout.tensor = tensor;
    layout.pipeline = pipeline;
    layout.data = data;
    return layout;
}

Layout with(Layout layout, const std::function<void(Layout&)>& change) {
    change(layout);
    return layout;
}

void everything_overlapped(Layout& layout) {
    layout.distributed_optimizer = true;
    layout.overlap_grad_reduce = layout.overlap_param_gather = true;
    layout.overlap_pipeline_comm = true;
}

/// Plans of one job. What needs no tensor ranks comes first.
std::vector<EquivalenceCase> cases_of(const Job& job) {
    std::vector<EquivalenceCase> cases;
    const auto add = [&](const std::string& name, const Layout& layout) -> Plan& {
        cases.push_back({name, job, even_plan(job, layout), 0});
        return cases.back().plan;
    };
    const auto interleaved = [](Layout& layout) {
        layout.schedule = Schedule::kInterleaved;
        layout.virtual_pipeline = 2;
    };
    add("GPipe", with(degrees(1, 4, 1), [](Layout& l) { l.schedule = Schedule::kGPipe; }));
    add("OneForwardOneBackward", degrees(1, 4, 1));
    add("PipelineOverlapped", with(degrees(1, 4, 1), [](Layout& l) { l.overlap_pipeline_comm = true; }));
    add("Interleaved", with(degrees(1, 2, 1), interleaved));
    add("InterleavedOverlapped", with(degrees(1, 2, 1), [&](Layout& l) {
            interleaved(l);
            l.overlap_pipeline_comm = true;
        }));
    add("ZeroBubble", with(degrees(1, 4, 1), [](Layout& l) { l.schedule = Schedule::kZeroBubble; }));
    add("ZeroBubbleOfTwiceTheMemory", with(degrees(1, 4, 1), [](Layout& l) {
            l.schedule = Schedule::kZeroBubble;
            l.zero_bubble_memory = 2;
        }));
    add("ZeroBubbleOverlapped", with(degrees(1, 2, 2), [](Layout& l) {
            l.schedule = Schedule::kZeroBubble;
            everything_overlapped(l);
        }));
    add("Data", degrees(1, 1, 4));
    add("DataOverlapped", with(degrees(1, 1, 4), [](Layout& l) { l.overlap_grad_reduce = true; }));
    add("DataOfUnevenShards", with(degrees(1, 1, 3), [](Layout& l) { l.distributed_optimizer = true; }));
    add("DistributedOptimizer", with(degrees(1, 1, 4), [](Layout& l) { l.distributed_optimizer = true; }));
    add("DistributedOptimizerOverlapped", with(degrees(1, 2, 2), everything_overlapped));
    add("DistributedOptimizerGathersBehind",
        with(degrees(1, 2, 2), [](Layout& l) { l.distributed_optimizer = l.overlap_param_gather = true; }));
    add("DistributedOptimizerReducesBehind",
        with(degrees(1, 2, 2), [](Layout& l) { l.distributed_optimizer = l.overlap_grad_reduce = true; }));
    add("InterleavedDistributed", with(degrees(1, 2, 2), [&](Layout& l) {
            interleaved(l);
            everything_overlapped(l);
        }));
    add("UnevenLayers", degrees(1, 2, 1)).layers_of_cell = {1, 3};
    add("AStageWithoutLayers", degrees(1, 3, 1)).layers_of_cell = {2, 2, 0};
    add("UnevenShares", degrees(1, 1, 3)).micro_batches_of_replica = {1, 5, 2};
    {
        Plan& plan = add("LayersApart", degrees(1, 2, 2));
        plan.layers_of_cell = {1, 3, 3, 1};
        plan.micro_batches_of_replica = {3, 5};
    }
    {
        Plan& plan = add("LayersApartDistributed", with(degrees(1, 2, 3), everything_overlapped));
        plan.layers_of_cell = {1, 3, 3, 1, 2, 2};
        plan.micro_batches_of_replica = {3, 1, 4};
    }
    for (const bool overlapped : {false, true}) {
        Plan& plan = add(overlapped ? "LayersApartInterleavedOverlapped" : "LayersApartInterleaved",
                         with(degrees(1, 2, 2), [&](Layout& l) {
                             interleaved(l);
                             l.distributed_optimizer = true;
                             if (overlapped) everything_overlapped(l);
                         }));
        plan.layers_of_cell = {2, 0, 1, 1, 0, 1, 2, 1};  // layer 1 is in different chunks of one stage
        plan.micro_batches_of_replica = {6, 2};
    }
    {
        Plan& plan = add("OthersIdle", degrees(1, 2, 2));
        plan.gpu_of_rank = {5, 0, 3, 2};
        cases.back().processes = 6;
    }
    for (const Recompute recompute : {Recompute::kSelective, Recompute::kFull})
        add(recompute == Recompute::kFull ? "RecomputeFull" : "RecomputeSelective",
            with(degrees(1, 2, 1), [&](Layout& l) { l.recompute = recompute; }));
    return cases;
}

/// Plans with tensor ranks.
std::vector<EquivalenceCase> tensor_cases_of(const Job& job) {
    std::vector<EquivalenceCase> cases;
    const auto add = [&](const std::string& name, const Layout& layout) -> Plan& {
        cases.push_back({name, job, even_plan(job, layout), 0});
        return cases.back().plan;
    };
    add("Tensor", degrees(2, 1, 1));
    add("TensorSequence", with(degrees(2, 1, 1), [](Layout& l) { l.sequence_parallel = true; }));
    add("TensorPipelineData", degrees(2, 2, 2));
    add("TensorSequencePipelineDataOverlapped", with(degrees(2, 2, 2), [](Layout& l) {
            l.sequence_parallel = true;
            everything_overlapped(l);
        }));
    for (const Recompute recompute : {Recompute::kSelective, Recompute::kFull})
        add(recompute == Recompute::kFull ? "TensorSequenceRecomputeFull" : "TensorSequenceRecomputeSelective",
            with(degrees(2, 1, 2), [&](Layout& l) {
                l.sequence_parallel = true;
                l.recompute = recompute;
            }));
    add("TensorSequenceZeroBubble", with(degrees(2, 2, 2), [](Layout& l) {
            l.sequence_parallel = true;
            l.schedule = Schedule::kZeroBubble;
            l.distributed_optimizer = true;
        }));
    Plan& apart = add("TensorSequenceInterleavedApart", with(degrees(2, 2, 2), [](Layout& l) {
                          l.sequence_parallel = true;
                          l.schedule = Schedule::kInterleaved;
                          l.virtual_pipeline = 2;
                          everything_overlapped(l);
                          l.recompute = Recompute::kSelective;
                      }));
    apart.layers_of_cell = {1, 1, 1, 1, 0, 1, 2, 1};
    apart.micro_batches_of_replica = {2, 6};
    return cases;
}

Job tied(Job job, bool value) {
    job.model.tied_embedding = value;
    job.model.name += value ? ", tied" : ", untied";
    return job;
}

std::vector<EquivalenceCase> all_cases() {
    std::vector<EquivalenceCase> all;
    const auto add = [&](const std::string& family, std::vector<EquivalenceCase> cases) {
        for (EquivalenceCase& one : cases) {
            one.name = family + one.name;
            all.push_back(std::move(one));
        }
    };
    add("Gpt2", cases_of(gpt2_in_small()));
    add("Gpt2", tensor_cases_of(gpt2_in_small()));
    add("Llama", cases_of(llama_in_small()));
    add("Llama", tensor_cases_of(llama_in_small()));
    add("UntiedGpt2", tensor_cases_of(tied(gpt2_in_small(), false)));
    add("TiedLlama", tensor_cases_of(tied(llama_in_small(), true)));
    return all;
}

/// Of one process, trained once.
const TrainingOutcome& reference(const Job& job, backend::DataType type) {
    static std::map<std::pair<std::string, int>, TrainingOutcome> known;
    const auto [at, fresh] = known.try_emplace({job.model.name, static_cast<int>(type)});
    if (fresh) at->second = train({.job = job, .plan = even_plan(job, Layout()), .type = type});
    return at->second;
}

class LayoutEquivalence : public ::testing::TestWithParam<EquivalenceCase> {
  protected:
    TrainingOutcome run(backend::DataType type) const {
        return train({.job = GetParam().job, .plan = GetParam().plan, .processes = GetParam().processes, .type = type});
    }
};

TEST_P(LayoutEquivalence, InFloat64) {
    const TrainingOutcome& one = reference(GetParam().job, backend::DataType::kFloat64);
    const TrainingOutcome many = run(backend::DataType::kFloat64);
    EXPECT_LE(largest_difference(many.losses, one.losses), 1e-14);
    EXPECT_LE(largest_difference(many.gradient_norms, one.gradient_norms), 1e-13);
    EXPECT_LE(largest_difference(many.state, one.state), 1e-11);
}

TEST_P(LayoutEquivalence, InFloat32) {
    const TrainingOutcome& one = reference(GetParam().job, backend::DataType::kFloat32);
    const TrainingOutcome many = run(backend::DataType::kFloat32);
    EXPECT_LE(largest_difference(many.losses, one.losses), 1e-6);
    EXPECT_LE(largest_difference(many.gradient_norms, one.gradient_norms), 2e-5);
}

INSTANTIATE_TEST_SUITE_P(Plans, LayoutEquivalence, ::testing::ValuesIn(all_cases()),
                         [](const auto& one) { return one.param.name; });

TEST(Training, OneProcessLearns) {
    const TrainingOutcome& one = reference(gpt2_in_small(), backend::DataType::kFloat64);
    EXPECT_NEAR(one.losses.front(), std::log(40.0), 0.05);  // it knows nothing
    EXPECT_LT(one.losses.back(), one.losses.front() - 0.5);
    // The norm is clipped, so that a wrong one shows in the losses.
    EXPECT_GT(one.gradient_norms.front(), gpt2_in_small().training->clip_gradient_norm);
}

}  // namespace
}  // namespace headway::tests
