#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>

#include "scenarios/costs/iteration_costs.h"
#include "scenarios/timing/evaluator.h"
#include "scenarios/timing/step_times.h"
#include "tests/paths.h"
#include "tests/scenarios/costs/shipped_job.h"
#include "tests/scenarios/timing/reference_iteration.h"

/// Plans whose replicas split the model in their own ways, on two kinds of GPUs, with the costs of a real shape.
namespace headway::scenarios::timing_test {
namespace {

Cluster two_kinds() {
    Cluster cluster = dgx_a100(2);
    NodeGroup old = cluster.node_groups[0];
    old.node.gpu = read_gpu(shipped_catalogue(), "V100-SXM2-32GB");
    old.node.network.bandwidth = old.node.network.bandwidth * 0.5;
    cluster.node_groups.push_back(old);
    return cluster;
}

struct UnevenPlan {
    Job job;
    Cluster cluster = two_kinds();
    Plan plan;
    Conditions conditions;
};

UnevenPlan uneven_plan(std::uint64_t seed) {
    std::mt19937_64 random(seed);
    const auto pick = [&](int low, int high) { return std::uniform_int_distribution<int>(low, high)(random); };
    UnevenPlan out;
    const int pipeline = 1 << pick(0, 2), tensor = 1 << pick(0, 2), data = 32 / (pipeline * tensor);
    Layout layout = layout_of(tensor, pipeline, data);
    switch (pick(0, 3)) {
        case 0:
            layout.schedule = Schedule::kGPipe;
            break;
        case 1:
            layout.schedule = Schedule::kZeroBubble;
            break;
        case 2:
            if (pipeline == 1) break;
            layout.schedule = Schedule::kInterleaved;
            layout.virtual_pipeline = 2;
            break;
        default:
            break;
    }
    layout.distributed_optimizer = pick(0, 1) == 1;
    layout.overlap_grad_reduce = pick(0, 1) == 1;
    layout.overlap_param_gather = layout.distributed_optimizer && pick(0, 1) == 1;
    const int multiple = layout.virtual_pipeline > 1 ? pipeline : 1;
    std::vector<int> shares;
    for (int replica = 0; replica < data; ++replica) shares.push_back(multiple * pick(1, 3));
    out.job = job_of(gpt(24, 2048, 16), 1, std::accumulate(shares.begin(), shares.end(), 0));
    Plan& plan = out.plan;
    plan.layout = layout;
    plan.micro_batches_of_replica = shares;
    for (int rank = 0; rank < 32; ++rank) plan.gpu_of_rank.push_back(rank);
    std::shuffle(plan.gpu_of_rank.begin(), plan.gpu_of_rank.end(), random);
    for (int replica = 0; replica < data; ++replica) {
        std::vector<int> split(static_cast<std::size_t>(layout.virtual_stages()), 0);
        for (int layer = 0; layer < 24; ++layer)
            ++split[static_cast<std::size_t>(pick(0, layout.virtual_stages() - 1))];
        plan.layers_of_cell.insert(plan.layers_of_cell.end(), split.begin(), split.end());
    }
    if (pick(0, 1) == 1)
        for (int gpu = 0; gpu < 32; ++gpu)
            out.conditions.gpus.push_back({pick(40, 100) * 0.01, pick(80, 100) * 0.01, 1.0});
    return out;
}

std::uint64_t uneven_seeds(std::uint64_t brief) {
    return tests::long_tests() ? brief * 20 : brief;
}

TEST(UnevenPlans, AgreeWithWorkersThatWalkThroughTheirPrograms) {
    for (std::uint64_t seed = 1; seed <= uneven_seeds(150); ++seed) {
        const UnevenPlan uneven = uneven_plan(seed);
        const StepTimes times = step_times(iteration_costs(uneven.job, uneven.cluster, uneven.plan), uneven.plan,
                                           uneven.cluster, uneven.conditions);
        const std::int64_t expected = reference_iteration(uneven.plan, true, times);
        ASSERT_EQ(Evaluator(uneven.plan, true).iteration_time(times).ns(), expected)
            << "seed " << seed << ": " << describe(uneven.plan.layout);
    }
}

TEST(UnevenPlans, EachCellTakesWhatItWouldInAPlanOfItsOwnSplit) {
    for (std::uint64_t seed = 1; seed <= uneven_seeds(40); ++seed) {
        const UnevenPlan uneven = uneven_plan(seed);
        const Plan& plan = uneven.plan;
        const StepTimes times =
            step_times(iteration_costs(uneven.job, uneven.cluster, plan), plan, uneven.cluster, uneven.conditions);
        const auto cells = static_cast<std::size_t>(plan.layout.virtual_stages());
        std::vector<std::int64_t> longest(cells, 0);
        for (int replica = 0; replica < plan.layout.data; ++replica) {
            const auto first = plan.layers_of_cell.begin() + static_cast<std::ptrdiff_t>(cells) * replica;
            Plan alone = plan;
            alone.layers_of_cell = same_layers({first, first + static_cast<std::ptrdiff_t>(cells)}, plan.layout.data);
            const StepTimes own = step_times(iteration_costs(uneven.job, uneven.cluster, alone), alone, uneven.cluster,
                                             uneven.conditions);
            const std::size_t from = static_cast<std::size_t>(replica) * cells;
            for (std::size_t i = from; i < from + cells; ++i) {
                ASSERT_EQ(times.forward[i], own.forward[i]) << "seed " << seed;
                ASSERT_EQ(times.backward[i], own.backward[i]) << "seed " << seed;
            }
            for (std::size_t place = 0; place < cells; ++place)
                longest[place] = std::max(longest[place], own.reduce_gradients[place]);
        }
        EXPECT_EQ(times.reduce_gradients, longest) << "of the fullest cell; seed " << seed;
    }
}

TEST(UnevenPlans, NamingReplicasOtherwiseChangesNothing) {
    for (std::uint64_t seed = 1; seed <= uneven_seeds(40); ++seed) {
        const UnevenPlan uneven = uneven_plan(seed);
        const Plan& plan = uneven.plan;
        Plan turned = plan;
        const Layout& layout = plan.layout;
        std::rotate(turned.micro_batches_of_replica.begin(), turned.micro_batches_of_replica.begin() + 1,
                    turned.micro_batches_of_replica.end());
        std::rotate(turned.layers_of_cell.begin(), turned.layers_of_cell.begin() + layout.virtual_stages(),
                    turned.layers_of_cell.end());
        for (int stage = 0; stage < layout.pipeline; ++stage)
            for (int replica = 0; replica < layout.data; ++replica)
                for (int member = 0; member < layout.tensor; ++member)
                    turned.gpu_of_rank[static_cast<std::size_t>(turned.rank(member, 0, replica, stage))] =
                        plan.gpu_of_worker((replica + 1) % layout.data, stage, member);
        const auto iteration = [&](const Plan& of) {
            return Evaluator(of, true).iteration_time(
                step_times(iteration_costs(uneven.job, uneven.cluster, of), of, uneven.cluster, uneven.conditions));
        };
        ASSERT_EQ(iteration(turned), iteration(plan)) << "seed " << seed << ": " << describe(layout);
    }
}

}  // namespace
}  // namespace headway::scenarios::timing_test
