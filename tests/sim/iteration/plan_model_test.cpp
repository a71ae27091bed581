#include "sim/iteration/plan_model.h"

#include <gtest/gtest.h>

#include <random>

#include "tests/paths.h"
#include "tests/sim/small_jobs.h"

namespace headway::sim {
namespace {

using tests::PlainCosts;

/// A cluster with its network, on which plans are tried.
class Machine {
  public:
    explicit Machine(scenarios::Cluster cluster)
        : cluster_(std::move(cluster)), topology_(cluster_), network_(topology_), timeline_(scenario_of(cluster_)) {}

    std::unique_ptr<PlanModel> model(const scenarios::Plan& plan, Path path, const PlainCosts& costs = {},
                                     bool memo = true) {
        SimulationOptions options;
        options.path = path;
        options.memo = memo;
        return std::make_unique<PlanModel>(cluster_, topology_, network_, plan,
                                           tests::plain_costs(plan, cluster_, costs), false, options);
    }
    ClusterState healthy() const {
        return {std::vector<scenarios::GpuPace>(static_cast<std::size_t>(cluster_.gpus())), timeline_.healthy(), {}};
    }

  private:
    static scenarios::Scenario scenario_of(const scenarios::Cluster& cluster) {
        scenarios::Scenario scenario;
        scenario.cluster = cluster;
        return scenario;
    }
    scenarios::Cluster cluster_;
    Topology topology_;
    SharedNetwork network_;
    Timeline timeline_;
};

double ms(Duration d) {
    return d.ms();
}

TEST(PlanModel, OneWorkerTakesItsWorkAndTheOptimizer) {
    Machine machine(tests::plain_cluster(1, 1, 1));
    const auto model = machine.model(tests::plain_plan(1, 1, 1, 4), Path::kAutomatic);
    EXPECT_EQ(ms(model->steady(machine.healthy()).duration), 4 * 30.0 + 5.0);
}

TEST(PlanModel, OnlyComputeBoundWorkStretchesWithTheClock) {
    Machine machine(tests::plain_cluster(1, 1, 1));
    PlainCosts costs;
    costs.compute_bound = 0.6;
    const auto model = machine.model(tests::plain_plan(1, 1, 1, 4), Path::kAutomatic, costs);
    ClusterState slow = machine.healthy();
    slow.paces[0].compute = 0.5;
    EXPECT_NEAR(ms(model->steady(slow).duration), (4 * 30.0 + 5.0) * (0.4 + 0.6 * 2.0), 1e-6);
}

TEST(PlanModel, AReductionAcrossNodesTakesExactlyWhatTheCostsSay) {
    Machine machine(tests::plain_cluster(4, 1, 4));
    for (const Path path : {Path::kAutomatic, Path::kLongestPath, Path::kFlows, Path::kFlowsUnfolded}) {
        const auto model = machine.model(tests::plain_plan(1, 1, 4, 3), path);
        EXPECT_EQ(ms(model->steady(machine.healthy()).duration), 3 * 30.0 + 30.0 + 5.0);
    }
}

TEST(PlanModel, AHalfSpeedNicDoublesTheWirePartOfAReduction) {
    // 30 ms of which three quarters are wire time of the ring.
    Machine machine(tests::plain_cluster(4, 1, 4));
    ClusterState state = machine.healthy();
    state.environment.node_network[2] = 0.5;
    for (const Path path : {Path::kLongestPath, Path::kFlowsUnfolded}) {
        const auto model = machine.model(tests::plain_plan(1, 1, 4, 3), path);
        EXPECT_NEAR(ms(model->steady(state).duration), 3 * 30.0 + 30.0 + 0.75 * 30.0 + 5.0, 1e-5);
    }
}

TEST(PlanModel, AHalfSpeedUplinkDelaysWhatCrossesItAlone) {
    // Two nodes in two racks, one GPU each: a healthy uplink carries exactly one NIC. The message of 1 ms is 0.99 ms of
    // wire.
    Machine machine(tests::plain_cluster(2, 1, 1));
    ClusterState state = machine.healthy();
    state.environment.uplink_factor[0] = 0.5;
    for (const Path path : {Path::kLongestPath, Path::kFlowsUnfolded}) {
        const auto model = machine.model(tests::plain_plan(1, 2, 1, 1), path);
        EXPECT_EQ(ms(model->steady(machine.healthy()).duration), 4 * 15.0 + 2 * 1.0 + 5.0);
        EXPECT_NEAR(ms(model->steady(state).duration), 4 * 15.0 + 2 * 1.0 + 2 * 0.99 + 5.0, 1e-5);
    }
}

TEST(PlanModel, AnOversubscribedUplinkIsSharedByTheReplicasOfARack) {
    // Two replicas of two stages; rack 0 holds both first stages. Both send at once over an uplink of one NIC.
    scenarios::Plan plan = tests::plain_plan(1, 2, 2, 1);
    Machine machine(tests::plain_cluster(4, 1, 2, 2.0));
    PlainCosts costs;
    costs.reduce_ms = 0.0;
    const double alone = 4 * 15.0 + 2 * 1.0 + 5.0;
    EXPECT_EQ(ms(machine.model(plan, Path::kLongestPath, costs)->steady(machine.healthy()).duration), alone);
    for (const Path path : {Path::kAutomatic, Path::kFlows, Path::kFlowsUnfolded}) {
        const IterationTimes times = machine.model(plan, path, costs)->steady(machine.healthy());
        EXPECT_NEAR(ms(times.duration), alone + 2 * 0.99, 1e-5);
        EXPECT_NEAR(ms(times.contention), 2 * 0.99, 1e-5) << "the difference is reported";
    }
}

TEST(PlanModel, DelaysActOnTheirOwnMessages) {
    Machine machine(tests::plain_cluster(2, 1, 2));
    const auto model = machine.model(tests::plain_plan(1, 2, 1, 1), Path::kAutomatic);
    const double healthy = ms(model->steady(machine.healthy()).duration);
    ClusterState state = machine.healthy();
    state.environment.node_delay[1] = Duration::milliseconds(3);  // sends the gradient
    EXPECT_NEAR(ms(model->steady(state).duration), healthy + 3.0, 1e-9);
    state = machine.healthy();
    state.environment.hop_delay = {Duration::milliseconds(3)};
    EXPECT_NEAR(ms(model->steady(state).duration), healthy + 6.0, 1e-9);
    state = machine.healthy();
    state.environment.hop_factor = {0.5};
    EXPECT_NEAR(ms(model->steady(state).duration), healthy + 2 * 0.99, 1e-5);
}

TEST(PlanModel, PathsAgreeToRoundingWhereNothingContends) {
    std::mt19937_64 random(3);
    const int rounds = headway::tests::long_tests() ? 400 : 60;
    int compared = 0;
    Machine machine(tests::plain_cluster(16, 2, 4));
    for (int round = 0; round < rounds; ++round) {
        const auto pick = [&](int low, int high) { return std::uniform_int_distribution<int>(low, high)(random); };
        const int pipeline = pick(1, 4), data = pick(1, 16 / pipeline);
        const bool interleaved = pipeline > 1 && pick(0, 1) == 1;
        scenarios::Plan plan = tests::plain_plan(
            2, pipeline, data, interleaved ? pipeline * pick(1, 3) : pick(1, 9),
            interleaved ? scenarios::Schedule::kInterleaved : static_cast<scenarios::Schedule>(pick(0, 1)),
            interleaved ? 2 : 1);
        plan.layout.distributed_optimizer = pick(0, 1) == 1;
        if (pick(0, 1) == 1)  // replicas that split the model differently
            for (int& layers : plan.layers_of_cell) layers = pick(0, 3);
        ClusterState state = machine.healthy();
        for (scenarios::GpuPace& pace : state.paces) pace.compute = pick(80, 100) * 0.01;
        PlainCosts costs;
        costs.gather_ms = 10.0;
        const IterationTimes longest = machine.model(plan, Path::kLongestPath, costs)->steady(state);
        for (const Path path : {Path::kAutomatic, Path::kFlows, Path::kFlowsUnfolded}) {
            const auto model = machine.model(plan, path, costs);
            const IterationTimes times = model->steady(state);
            if (model->contended_flows() > 0) continue;
            ++compared;
            EXPECT_EQ(times.duration, longest.duration)
                << "round " << round << " p" << pipeline << " d" << data << (interleaved ? " interleaved" : "");
        }
    }
    EXPECT_GT(compared, rounds) << "of " << 3 * rounds;
}

TEST(PlanModel, WorkerTimesAddUpToTheIteration) {
    scenarios::Plan plan = tests::plain_plan(1, 4, 2, 6);
    plan.layout.overlap_grad_reduce = true;
    plan.layout.overlap_pipeline_comm = true;
    Machine machine(tests::plain_cluster(8, 1, 4, 4.0));
    const auto model = machine.model(plan, Path::kAutomatic);
    ClusterState later = machine.healthy();
    later.paces[3].compute = 0.5;
    const IterationTimes steady = model->steady(machine.healthy());
    const IterationTimes changing =
        model->changing({{Duration(), machine.healthy()}, {Duration::milliseconds(70), later}});
    for (const IterationTimes* times : {&steady, &changing})
        for (const scenarios::WorkerTimes& worker : times->workers)
            EXPECT_EQ(worker.compute + worker.data_exposed + worker.idle, times->duration);
    EXPECT_GT(changing.duration, steady.duration);
}

TEST(PlanModel, AChangeWithinAnIterationCountsFromItsMomentOn) {
    Machine machine(tests::plain_cluster(1, 1, 1));
    for (const Path path : {Path::kAutomatic, Path::kLongestPath}) {
        const auto model = machine.model(tests::plain_plan(1, 1, 1, 4), path);
        ClusterState half = machine.healthy();
        half.paces[0].compute = 0.5;
        // 45 of 125 ms at full speed, the rest at half.
        EXPECT_NEAR(ms(model->changing({{Duration(), machine.healthy()}, {Duration::milliseconds(45), half}}).duration),
                    45.0 + 160.0, 1e-5);
        // And back to full speed 60 ms later.
        EXPECT_NEAR(ms(model
                           ->changing({{Duration(), machine.healthy()},
                                       {Duration::milliseconds(45), half},
                                       {Duration::milliseconds(105), machine.healthy()}})
                           .duration),
                    45.0 + 60.0 + 50.0, 1e-5);
    }
}

TEST(PlanModel, TheMemoChangesNothing) {
    scenarios::Plan plan = tests::plain_plan(1, 4, 2, 6);
    plan.layout.overlap_grad_reduce = true;
    plan.layout.overlap_pipeline_comm = true;
    Machine machine(tests::plain_cluster(8, 1, 4, 4.0));
    const auto with = machine.model(plan, Path::kAutomatic, {}, true);
    const auto without = machine.model(plan, Path::kAutomatic, {}, false);
    std::mt19937_64 random(5);
    for (int i = 0; i < 60; ++i) {
        ClusterState state = machine.healthy();
        state.paces[random() % 8].compute = 0.5 + 0.1 * static_cast<double>(random() % 5);
        state.environment.node_network[random() % 8] = 0.25 * static_cast<double>(1 + random() % 4);
        EXPECT_EQ(with->steady(state).duration, without->steady(state).duration);
        EXPECT_EQ(with->steady(state, &state).duration, without->steady(state, &state).duration);
    }
    EXPECT_GT(with->memo_hits(), 0);
    EXPECT_EQ(without->memo_hits(), 0);
    EXPECT_LT(with->flow_iterations(), without->flow_iterations());
}

TEST(PlanModel, ScalesOfGpusStretchWhatTheirWorkersDo) {
    const scenarios::Cluster cluster = tests::plain_cluster(2, 1, 2);
    const Topology topology(cluster);
    SharedNetwork network(topology);
    const scenarios::Plan plan = tests::plain_plan(1, 2, 1, 5);
    scenarios::IterationCosts costs = tests::plain_costs(plan, cluster);
    const Machine machine(cluster);
    PlanModel plain(cluster, topology, network, plan, costs, false, {});
    costs.gpu_scales = {{2.0, 3.0, 0.5, 0.5}, {2.0, 3.0, 0.5, 0.5}};
    PlanModel scaled(cluster, topology, network, plan, costs, false, {});
    const scenarios::StepTimes before = plain.times_of(machine.healthy()), after = scaled.times_of(machine.healthy());
    for (std::size_t cell = 0; cell < 2; ++cell) {
        EXPECT_EQ(after.forward[cell], 2 * before.forward[cell]);
        EXPECT_EQ(after.backward[cell], 3 * before.backward[cell]);
    }
    EXPECT_EQ(after.send_activation[0] * 2, before.send_activation[0]);
    EXPECT_EQ(after.send_gradient[1] * 2, before.send_gradient[1]);
    EXPECT_EQ(after.optimizer, before.optimizer);
    PlanModel fast(cluster, topology, network, plan, costs, false, {.path = Path::kLongestPath});
    EXPECT_EQ(scaled.steady(machine.healthy()).duration, fast.steady(machine.healthy()).duration);
}

}  // namespace
}  // namespace headway::sim
