#include "scenarios/timing/step_times.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "scenarios/timing/healthy_shares.h"

namespace headway::scenarios::timing_test {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

Duration ns(std::int64_t value) {
    return Duration::nanoseconds(value);
}

/// Two racks of two nodes of two GPUs; the second node group has another GPU type.
Cluster four_nodes(bool mixed = false) {
    Cluster cluster;
    Node node;
    node.gpu.name = "fast";
    node.gpus = 2;
    node.nics = 2;
    cluster.node_groups = {{mixed ? 3 : 4, node}};
    if (mixed) {
        node.gpu.name = "slow";
        cluster.node_groups.push_back({1, node});
    }
    cluster.network.nodes_per_rack = 2;
    return cluster;
}

/// Tensor 2 in a node, two stages, two replicas: stage 0 on nodes 0 and 1 (rack 0), stage 1 on nodes 2 and 3 (rack 1).
Plan two_by_two() {
    Plan plan;
    plan.layout.tensor = 2;
    plan.layout.pipeline = 2;
    plan.layout.data = 2;
    for (int i = 0; i < 8; ++i) plan.gpu_of_rank.push_back(i);
    plan.layers_of_cell = {1, 1, 1, 1};
    plan.micro_batches_of_replica = {4, 4};
    return plan;
}

IterationCosts simple_costs(int types = 1) {
    IterationCosts costs;
    const VirtualStageCosts stage{{ns(100), ns(20), ns(5), ns(10)},
                                  {ns(200), ns(40), ns(10), ns(20)},
                                  {ns(100), ns(20), ns(5), ns(20)},
                                  {ns(100), ns(20), ns(5), ns(0)},
                                  {}};
    for (int type = 0; type < types; ++type) {
        costs.virtual_stages.push_back({stage, stage});
        for (VirtualStageCosts& of : costs.virtual_stages.back()) of.forward.compute = ns(100 * (1 + type));
    }
    costs.activation = {Bytes(1000), ns(8), ns(42), ns(2)};
    for (int s = 0; s < 2; ++s) {
        StageCosts end;
        end.reduce_gradients = {ns(300)};
        end.reduce_last_bucket = {ns(60)};
        end.reduce_bytes_per_rank = {Bytes(1)};
        end.gather_parameters = {ns(0)};
        end.gather_first_bucket = {ns(0)};
        end.gather_bytes_per_rank = {Bytes(0)};
        end.reduce_tied_embedding = ns(50);
        end.optimizer = {ns(0), ns(30), ns(3), ns(0)};
        costs.stages.push_back(end);
    }
    return costs;
}

TEST(StepTimes, AreTheCostsWhenEverythingIsHealthy) {
    const StepTimes times = step_times(simple_costs(), two_by_two(), four_nodes());
    EXPECT_THAT(times.forward, ElementsAre(135, 135, 135, 135));
    EXPECT_THAT(times.backward, ElementsAre(270, 270, 270, 270));
    EXPECT_THAT(times.backward_input, IsEmpty());
    EXPECT_THAT(times.send_activation, ElementsAre(42, 0, 42, 0));
    EXPECT_THAT(times.send_gradient, ElementsAre(0, 42, 0, 42));
    EXPECT_THAT(times.delay_activation, IsEmpty());
    EXPECT_THAT(times.reduce_gradients, ElementsAre(300, 300));
    EXPECT_THAT(times.reduce_last_bucket, ElementsAre(60, 60));
    EXPECT_THAT(times.reduce_tied_embedding, ElementsAre(50, 50));
    EXPECT_THAT(times.optimizer, Each(33));
    EXPECT_EQ(times.optimizer.size(), 4u);
}

TEST(StepTimes, FollowTheSlowestMemberOfAWorker) {
    Conditions conditions;
    conditions.gpus.resize(8);
    conditions.gpus[3].compute = 0.5;  // replica 1, stage 0, tensor 1
    const StepTimes times = step_times(simple_costs(), two_by_two(), four_nodes(), conditions);
    EXPECT_THAT(times.forward, ElementsAre(135, 135, 235, 135));
    conditions.gpus[2].memory = 0.5;  // its peer loses less
    EXPECT_EQ(step_times(simple_costs(), two_by_two(), four_nodes(), conditions).forward, times.forward);
    conditions.gpus[2].fabric = 0.5;  // communication between the two waits for both
    EXPECT_THAT(step_times(simple_costs(), two_by_two(), four_nodes(), conditions).forward,
                ElementsAre(135, 135, 245, 135));
}

TEST(StepTimes, TakeTheCostsOfEachGpuType) {
    const StepTimes times = step_times(simple_costs(2), two_by_two(), four_nodes(true));
    EXPECT_THAT(times.forward, ElementsAre(135, 135, 135, 235));  // node 3 holds replica 1, stage 1
}

TEST(StepTimes, TakeTheLayersOfEachCell) {
    IterationCosts costs = simple_costs();
    costs.virtual_stages[0].push_back(costs.virtual_stages[0][0]);
    costs.virtual_stages[0][2].forward.compute = ns(500);
    costs.virtual_stages[0][2].optimizer.memory = ns(70);
    costs.class_of_cell = {0, 1, 0, 2};  // replica 1, stage 1 holds more
    const StepTimes times = step_times(costs, two_by_two(), four_nodes());
    EXPECT_THAT(times.forward, ElementsAre(135, 135, 135, 535));
    EXPECT_THAT(times.optimizer, ElementsAre(33, 33, 33, 103));
}

TEST(StepTimes, OfManySplitsUnderOnePlacementAreThoseOfEach) {
    Conditions conditions;
    conditions.gpus.resize(8);
    conditions.gpus[2] = {0.7, 0.9, 0.8};
    conditions.gpus[3] = {0.8, 0.6, 1.0};  // neither member of the worker is slower in every part
    conditions.node_network = {1.0, 0.5, 1.0, 1.0};
    conditions.node_delay = {ns(3), ns(0), ns(7), ns(0)};
    const StepTimer timer(simple_costs(), two_by_two(), four_nodes());
    const PlacedPaces paces = timer.paces(conditions);
    StepTimes reused;
    for (const std::int64_t more : {0, 300, 50}) {
        IterationCosts costs = simple_costs();
        costs.virtual_stages[0].push_back(costs.virtual_stages[0][1]);
        costs.virtual_stages[0][2].forward.memory += ns(more);
        costs.class_of_cell = {2, 1, 2, 0};
        timer.times(costs, paces, reused);
        const StepTimes alone = step_times(costs, two_by_two(), four_nodes(), conditions);
        EXPECT_EQ(reused.forward, alone.forward);
        EXPECT_EQ(reused.backward, alone.backward);
        EXPECT_EQ(reused.send_activation, alone.send_activation);
        EXPECT_EQ(reused.delay_gradient, alone.delay_gradient);
        EXPECT_EQ(reused.reduce_gradients, alone.reduce_gradients);
        const auto slowest = std::max(costs.virtual_stages[0][2].forward.at({0.7, 0.9, 0.8}),
                                      costs.virtual_stages[0][2].forward.at({0.8, 0.6, 0.8}));
        EXPECT_EQ(reused.forward[2], slowest.ns());
    }
}

TEST(StepTimes, SendInsideANodeOverItsFabric) {
    Plan plan = two_by_two();
    plan.layout.tensor = 1;
    plan.layout.data = 4;
    plan.micro_batches_of_replica = {4, 4, 4, 4};
    plan.gpu_of_rank = {0, 2, 4, 6, 1, 3, 5, 7};  // both stages of a replica in one node
    Conditions conditions;
    conditions.gpus.resize(8);
    conditions.gpus[1].fabric = 0.5;
    conditions.node_network = {0.1, 0.1, 0.1, 0.1};
    const StepTimes times = step_times(simple_costs(), plan, four_nodes(), conditions);
    EXPECT_THAT(times.send_activation, ElementsAre(2 + 12, 0, 8, 0, 8, 0, 8, 0));
    EXPECT_THAT(times.reduce_gradients, ElementsAre(3000, 3000));
}

TEST(StepTimes, StretchMessagesAndCollectivesWithTheirSlowestLink) {
    Conditions conditions;
    conditions.node_network = {1.0, 0.5, 1.0, 1.0};  // replica 1, stage 0
    StepTimes times = step_times(simple_costs(), two_by_two(), four_nodes(), conditions);
    EXPECT_THAT(times.send_activation, ElementsAre(42, 0, 82, 0));  // 2 of 42 are the host's
    EXPECT_THAT(times.send_gradient, ElementsAre(0, 42, 0, 82));
    EXPECT_THAT(times.reduce_gradients, ElementsAre(600, 300));
    EXPECT_THAT(times.reduce_last_bucket, ElementsAre(120, 60));
    EXPECT_THAT(times.reduce_tied_embedding, ElementsAre(100, 100));  // that of replica 1; all wait for it
    conditions = {};
    conditions.rack_uplink = {1.0, 0.25};
    times = step_times(simple_costs(), two_by_two(), four_nodes(), conditions);
    EXPECT_THAT(times.send_activation, ElementsAre(162, 0, 162, 0));
    EXPECT_THAT(times.reduce_gradients, ElementsAre(300, 300));  // each stage stays in its rack
    EXPECT_THAT(times.reduce_tied_embedding, ElementsAre(200, 200));
}

TEST(StepTimes, AddDelaysOfNodesAndHops) {
    Conditions conditions;
    conditions.node_delay = {ns(0), ns(0), ns(7), ns(0)};  // replica 0, stage 1
    conditions.hop_delay = {ns(1000)};
    const StepTimes times = step_times(simple_costs(), two_by_two(), four_nodes(), conditions);
    EXPECT_THAT(times.delay_activation, ElementsAre(1000, 0, 1000, 0));
    EXPECT_THAT(times.delay_gradient, ElementsAre(0, 1007, 0, 1000));
    EXPECT_THAT(times.reduce_gradients, ElementsAre(300, 300 + 2 * 2 * 7));  // two nodes, two passes
}

TEST(StepTimes, RefuseConditionsOfAnotherCluster) {
    Conditions conditions;
    conditions.gpus.resize(7);
    EXPECT_THROW(step_times(simple_costs(), two_by_two(), four_nodes(), conditions), std::invalid_argument);
    conditions = {};
    conditions.node_network = {1.0, 0.0, 1.0, 1.0};
    EXPECT_THROW(step_times(simple_costs(), two_by_two(), four_nodes(), conditions), std::invalid_argument);
    Plan plan = two_by_two();
    plan.gpu_of_rank[0] = 8;
    EXPECT_THROW(step_times(simple_costs(), plan, four_nodes()), std::invalid_argument);
}

TEST(HealthyShares, AddUpToTheIteration) {
    const HealthyShares shares = healthy_shares(simple_costs(), two_by_two(), four_nodes(), true);
    EXPECT_EQ(shares.compute_ns + shares.bubble_ns + shares.tensor_ns + shares.pipeline_ns + shares.data_ns,
              shares.iteration_ns);
    const StepTimes times = step_times(simple_costs(), two_by_two(), four_nodes());
    EXPECT_EQ(shares.iteration_ns, Evaluator(two_by_two(), true).iteration_time(times).ns());
    EXPECT_EQ(shares.tensor_ns, 4 * (10 + 20));
    EXPECT_EQ(shares.compute_ns, 4 * (125 + 250) + 33);
    EXPECT_EQ(shares.bubble_ns, 135 + 270);  // (p - 1) (F + B)
    EXPECT_EQ(shares.data_ns, 300 + 50);
    EXPECT_EQ(shares.pipeline_ns, 5 * 42);  // one exchange a micro-batch, and one more to fill and drain
}

}  // namespace
}  // namespace headway::scenarios::timing_test
