#include "scenarios/costs/iteration_costs.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <stdexcept>

#include "scenarios/costs/layout_costs.h"
#include "tests/scenarios/costs/shipped_job.h"

namespace headway::scenarios {
namespace {

Job job_145b() {
    return job_of(gpt(80, 12288, 96), 2, 2304, "megatron-lm-2021");
}
Layout layout_145b() {
    Layout layout = layout_of(8, 8, 24, 2);
    layout.recompute = Recompute::kFull;
    return layout;
}

IterationCosts costs_of(const Job& job, const Layout& layout, const Cluster& cluster) {
    return iteration_costs(job, cluster, plan_of(layout, job, cluster));
}

TEST(IterationCosts, PutEmbeddingAndLogitsWhereTheyAre) {
    const IterationCosts costs = costs_of(job_145b(), layout_145b(), dgx_a100(192));
    const auto& stages = costs.virtual_stages.at(0);
    ASSERT_EQ(stages.size(), 16u);
    EXPECT_EQ(stages[1].forward.total(), stages[14].forward.total());
    EXPECT_GT(stages[0].forward.total(), stages[1].forward.total());
    EXPECT_GT(stages[15].forward.total(), stages[0].forward.total());
    for (std::size_t stage = 1; stage < 7; ++stage) EXPECT_EQ(costs.stages[stage].reduce_tied_embedding, Duration());
    EXPECT_GT(costs.stages[0].reduce_tied_embedding, Duration());
    EXPECT_EQ(costs.stages[0].reduce_tied_embedding, costs.stages[7].reduce_tied_embedding);
}

TEST(IterationCosts, SplitBackwardAddsUp) {
    const IterationCosts costs = costs_of(job_145b(), layout_145b(), dgx_a100(192));
    for (const VirtualStageCosts& stage : costs.virtual_stages.at(0)) {
        EXPECT_EQ(stage.backward_input.total() + stage.backward_weight.total(), stage.backward.total());
        EXPECT_GT(stage.backward_weight.compute, Duration());
        EXPECT_GE(stage.backward_weight.fixed, Duration());
        EXPECT_EQ(stage.backward_weight.communication, Duration());
    }
}

TEST(IterationCosts, TakeLayersAsThePlanGivesThem) {
    const Job job = job_145b();
    const Cluster cluster = dgx_a100(192);
    Plan plan = plan_of(layout_145b(), job, cluster);
    const IterationCosts even = iteration_costs(job, cluster, plan);
    for (int replica = 0; replica < plan.layout.data; ++replica) {
        const auto first = static_cast<std::size_t>(replica * plan.layout.virtual_stages());
        plan.layers_of_cell[first + 3] -= 2;
        plan.layers_of_cell[first + 4] += 2;
    }
    const IterationCosts moved = iteration_costs(job, cluster, plan);
    EXPECT_LT(moved.virtual_stages[0][3].forward.total(), even.virtual_stages[0][3].forward.total());
    EXPECT_GT(moved.virtual_stages[0][4].backward.total(), even.virtual_stages[0][4].backward.total());
    EXPECT_GT(moved.stages[4].reduce_bytes_per_rank[0], even.stages[4].reduce_bytes_per_rank[0]);
}

TEST(IterationCosts, MessagesCarryTheActivationsOfAMicroBatch) {
    const IterationCosts sliced = costs_of(job_145b(), layout_145b(), dgx_a100(192));
    EXPECT_EQ(sliced.activation.bytes_per_rank.count(), 2ll * 2048 * 12288 * 2 / 8);
    Job job = job_145b();
    job.stack.scatter_gather = false;
    const IterationCosts whole = costs_of(job, layout_145b(), dgx_a100(192));
    EXPECT_EQ(whole.activation.bytes_per_rank.count(), 2ll * 2048 * 12288 * 2);
    EXPECT_GT(whole.activation.across_nodes - whole.activation.overhead,
              sliced.activation.across_nodes - sliced.activation.overhead);
    EXPECT_GT(whole.activation.across_nodes, whole.activation.inside_node);
}

TEST(IterationCosts, DistributedOptimizerReducesAndGathersInsteadOfAllReducing) {
    const Job job = job_of(gpt(24, 4096, 32), 1, 64, "nemo-2025");
    Layout layout = layout_of(8, 1, 4);
    const Cluster cluster = dgx_a100(4);
    const IterationCosts plain_costs = costs_of(job, layout, cluster);
    const StageCosts& plain = plain_costs.stages.at(0);
    layout.distributed_optimizer = true;
    const IterationCosts shared_costs = costs_of(job, layout, cluster);
    const StageCosts& shared = shared_costs.stages.at(0);
    EXPECT_EQ(plain.gather_parameters[0], Duration());
    EXPECT_GT(shared.gather_parameters[0], Duration());
    EXPECT_LT(shared.reduce_gradients[0], plain.reduce_gradients[0]);
    EXPECT_LT(shared_costs.virtual_stages[0][0].optimizer.memory, plain_costs.virtual_stages[0][0].optimizer.memory);
}

TEST(IterationCosts, ContextRanksReduceGradientsToo) {
    const Job job = job_of(read_model(shipped_catalogue(), "llama3.1-8b"), 1, 8, "nemo-2025");
    Layout layout = layout_of(1, 1, 1);
    layout.context = 2;
    EXPECT_GT(costs_of(job, layout, dgx_a100(1)).stages.at(0).reduce_gradients[0], Duration());
}

TEST(IterationCosts, SlowHostStretchesSmallLayersOnly) {
    Job small = job_of(gpt(24, 1024, 16, 1024), 1, 8, "megatron-deepspeed-2023");
    Job large = job_of(gpt(24, 8192, 64), 4, 8, "megatron-deepspeed-2023");
    const auto forward = [](const Job& job) {
        return costs_of(job, layout_of(1, 1, 1), dgx_a100(1)).virtual_stages[0][0].forward;
    };
    const Work small_before = forward(small), large_before = forward(large);
    small.stack.host_forward = small.stack.host_forward * 2;
    large.stack.host_forward = large.stack.host_forward * 2;
    EXPECT_GT(forward(small).total(), small_before.total().scaled(1.5));
    EXPECT_EQ(forward(small).compute, small_before.compute);
    EXPECT_EQ(forward(large).total(), large_before.total());
}

TEST(IterationCosts, GrowWithMicroBatchAndShrinkWithTensorRanks) {
    const auto forward = [](int micro_batch, int tensor) {
        return costs_of(job_of(gpt(24, 6144, 48), micro_batch, 64), layout_of(tensor, 1, 1), dgx_a100(1))
            .virtual_stages[0][0]
            .forward.total();
    };
    for (const int tensor : {1, 2, 4}) {
        for (const int micro_batch : {1, 2, 4, 8}) {
            EXPECT_GT(forward(2 * micro_batch, tensor), forward(micro_batch, tensor));
            EXPECT_LT(forward(micro_batch, 2 * tensor), forward(micro_batch, tensor));
        }
    }
}

TEST(IterationCosts, PeakAddsUpTheGpusOfThePlan) {
    const Job job = job_of(gpt(24, 1024, 16), 1, 8);
    EXPECT_DOUBLE_EQ(costs_of(job, layout_of(1, 1, 4), dgx_a100(1)).peak.value, 4 * 312e12);
}

TEST(IterationCosts, OfMixedGpusHaveOneEntryAType) {
    Cluster cluster = dgx_a100(1);
    NodeGroup old = cluster.node_groups[0];
    old.node.gpu = read_gpu(shipped_catalogue(), "V100-SXM2-32GB");
    cluster.node_groups.push_back(old);
    const Job job = job_of(gpt(24, 2048, 16), 1, 16);
    const IterationCosts costs = costs_of(job, layout_of(8, 2, 1), cluster);
    ASSERT_EQ(costs.virtual_stages.size(), 2u);
    EXPECT_GT(costs.virtual_stages[1][0].forward.total(), costs.virtual_stages[0][0].forward.total());
    EXPECT_EQ(gpu_type_index(cluster, 3), 0);
    EXPECT_EQ(gpu_type_index(cluster, 12), 1);
    const IterationCosts one = costs_of(job, layout_of(8, 1, 1), cluster);
    EXPECT_TRUE(one.virtual_stages[1].empty());
}

/// Two racks' worth of nodes, the second half with older GPUs and a slower network.
Cluster half_and_half() {
    Cluster cluster = dgx_a100(2);
    NodeGroup old = cluster.node_groups[0];
    old.node.gpu = read_gpu(shipped_catalogue(), "V100-SXM2-32GB");
    old.node.network.bandwidth = old.node.network.bandwidth * 0.25;
    cluster.node_groups.push_back(old);
    return cluster;
}

TEST(IterationCosts, OfUnevenReplicasAreThoseOfTheirCells) {
    const Job job = job_of(gpt(24, 2048, 16), 1, 16);
    const Cluster cluster = half_and_half();
    Plan plan = plan_of(layout_of(8, 2, 2), job, cluster);
    plan.layers_of_cell = {12, 12, 15, 9};
    const IterationCosts costs = iteration_costs(job, cluster, plan);
    for (int replica = 0; replica < 2; ++replica) {
        Plan uniform = plan;
        const std::vector<int> split{plan.layers(replica, 0), plan.layers(replica, 1)};
        uniform.layers_of_cell = same_layers(split, 2);
        const IterationCosts alone = iteration_costs(job, cluster, uniform);
        EXPECT_TRUE(alone.class_of_cell.empty());
        for (int type = 0; type < 2; ++type)
            for (int k = 0; k < 2; ++k) {
                const VirtualStageCosts& cell = costs.of(type, plan.layout, replica, k);
                const VirtualStageCosts& same = alone.of(type, plan.layout, replica, k);
                EXPECT_EQ(cell.forward.total(), same.forward.total());
                EXPECT_EQ(cell.backward.total(), same.backward.total());
                EXPECT_EQ(cell.optimizer.total(), same.optimizer.total());
            }
        for (std::size_t stage = 0; stage < 2; ++stage)
            EXPECT_LE(alone.stages[stage].reduce_gradients[0], costs.stages[stage].reduce_gradients[0])
                << "the fullest cell counts";
    }
}

TEST(IterationCosts, CollectivesAndMessagesTakeTheSlowerKindOfNode) {
    const Job job = job_of(gpt(24, 2048, 16), 1, 16);
    const Cluster mixed = half_and_half();
    Cluster fast = mixed, slow = mixed;
    fast.node_groups[1] = fast.node_groups[0];
    slow.node_groups[0] = slow.node_groups[1];
    const Layout layout = layout_of(8, 2, 2);  // each stage on one node of each kind
    Plan plan = plan_of(layout, job, mixed);
    for (std::size_t rank = 0; rank < 32; ++rank)
        plan.gpu_of_rank[rank] = static_cast<int>(rank % 8 + (rank / 8 % 2) * 16 + (rank / 16) * 8);
    const IterationCosts both = iteration_costs(job, mixed, plan), of_fast = iteration_costs(job, fast, plan),
                         of_slow = iteration_costs(job, slow, plan);
    for (std::size_t stage = 0; stage < 2; ++stage) {
        EXPECT_EQ(both.stages[stage].reduce_gradients[0], of_slow.stages[stage].reduce_gradients[0]);
        EXPECT_GT(both.stages[stage].reduce_gradients[0], of_fast.stages[stage].reduce_gradients[0]);
    }
    EXPECT_EQ(both.activation.across_nodes, of_slow.activation.across_nodes);
    EXPECT_GT(both.activation.across_nodes, of_fast.activation.across_nodes);
    EXPECT_DOUBLE_EQ(both.peak.value * 2.0, of_fast.peak.value + of_slow.peak.value);
}

bool equal_costs(const IterationCosts& a, const IterationCosts& b) {
    if (a.class_of_cell != b.class_of_cell || a.virtual_stages.size() != b.virtual_stages.size()) return false;
    for (std::size_t type = 0; type < a.virtual_stages.size(); ++type) {
        if (a.virtual_stages[type].size() != b.virtual_stages[type].size()) return false;
        for (std::size_t i = 0; i < a.virtual_stages[type].size(); ++i) {
            const VirtualStageCosts &x = a.virtual_stages[type][i], &y = b.virtual_stages[type][i];
            if (x.forward.total() != y.forward.total() || x.backward.total() != y.backward.total() ||
                x.optimizer.total() != y.optimizer.total())
                return false;
        }
    }
    for (std::size_t stage = 0; stage < a.stages.size(); ++stage)
        if (a.stages[stage].reduce_gradients != b.stages[stage].reduce_gradients ||
            a.stages[stage].gather_parameters != b.stages[stage].gather_parameters ||
            a.stages[stage].optimizer.total() != b.stages[stage].optimizer.total())
            return false;
    return a.activation.across_nodes == b.activation.across_nodes && a.peak.value == b.peak.value;
}

TEST(LayoutCosts, SayWhatIterationCostsSayForEverySplitAndPlacement) {
    const Job job = job_of(gpt(24, 2048, 16), 1, 16);
    const Cluster cluster = half_and_half();
    Plan plan = plan_of(layout_of(4, 4, 2), job, cluster);
    LayoutCosts remembered(job, cluster, plan.layout, plan.gpu_of_rank);
    IterationCosts reused;
    for (int swap = 0; swap < 6; ++swap) {
        for (const std::vector<int>& split : {std::vector<int>{6, 6, 6, 6}, {1, 9, 9, 5}, {0, 10, 4, 10}}) {
            std::copy(split.begin(), split.end(), plan.layers_of_cell.begin() + 4 * (swap % 2));
            remembered.costs(plan, reused);
            EXPECT_TRUE(equal_costs(reused, iteration_costs(job, cluster, plan)));
        }
        for (int i = 0; i < 4; ++i)
            std::swap(plan.gpu_of_rank[static_cast<std::size_t>(swap * 4 + i)],
                      plan.gpu_of_rank[static_cast<std::size_t>(31 - swap - 4 * i)]);
        EXPECT_THROW(remembered.costs(plan), std::invalid_argument) << "other GPUs";
        remembered.place(plan.gpu_of_rank);
    }
}

TEST(IterationCosts, RejectPlansThatDoNotFitJobOrCluster) {
    const Job job = job_of(gpt(24, 1024, 16), 1, 8);
    const Cluster cluster = dgx_a100(1);
    const Plan plan = plan_of(layout_of(2, 2, 2), job, cluster);
    Plan dropped = plan;
    dropped.layers_of_cell[0] -= 1;
    EXPECT_THROW(iteration_costs(job, cluster, dropped), std::invalid_argument);
    Plan elsewhere = plan;
    elsewhere.gpu_of_rank[0] = 8;
    EXPECT_THROW(iteration_costs(job, cluster, elsewhere), std::invalid_argument);
    Plan short_of_ranks = plan;
    short_of_ranks.gpu_of_rank.pop_back();
    EXPECT_THROW(iteration_costs(job, cluster, short_of_ranks), std::invalid_argument);
}

}  // namespace
}  // namespace headway::scenarios
