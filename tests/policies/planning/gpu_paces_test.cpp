#include "policies/planning/gpu_paces.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "scenarios/costs/iteration_costs.h"
#include "scenarios/language/strategy.h"
#include "tests/scenarios/costs/shipped_job.h"

namespace headway::policies {
namespace {

/// Two stages, eight replicas of one GPU a worker, on two nodes.
class GpuPacesOf16 : public ::testing::Test {
  protected:
    GpuPacesOf16() {
        scenarios::Strategy strategy;
        strategy.layout.pipeline = 2;
        strategy.layout.data = 8;
        plan_ = scenarios::initial_plan(strategy, job_, cluster_);
        costs_ = scenarios::iteration_costs(job_, cluster_, plan_);
    }

    /// `slower` [16 GPUs]: compute time over what costs say.
    Observation seen(const std::vector<double>& slower) const { return seen(slower, plan_, costs_); }
    static Observation seen(const std::vector<double>& slower, const scenarios::Plan& plan,
                            const scenarios::IterationCosts& costs) {
        Observation observation;
        observation.plan = plan;
        observation.iteration = Duration::seconds(1);
        for (std::size_t rank = 0; rank < plan.gpu_of_rank.size(); ++rank) {
            const int replica = static_cast<int>(rank) % plan.layout.data;
            const int stage = static_cast<int>(rank) / plan.layout.data;
            const auto& cell = costs.of(0, plan.layout, replica, stage);
            scenarios::Work work =
                (cell.forward + cell.backward) * plan.micro_batches_of_replica[static_cast<std::size_t>(replica)];
            work += cell.optimizer;
            work += costs.stages[static_cast<std::size_t>(stage)].optimizer;
            RankObservation one;
            one.measured.gpu = plan.gpu_of_rank[rank];
            one.measured.compute = work.total().scaled(slower[static_cast<std::size_t>(one.measured.gpu)]);
            one.measured.sm_clock_mhz = 1410.0;
            observation.ranks.push_back(one);
        }
        return observation;
    }

    const scenarios::Job job_ = scenarios::job_of(scenarios::gpt(8, 1024, 16, 1024), 1, 64);
    const scenarios::Cluster cluster_ = scenarios::dgx_a100(2);
    scenarios::Plan plan_;
    scenarios::IterationCosts costs_;
};

TEST_F(GpuPacesOf16, ScalesWhatChangedToTheShareOfTheIntervalThatItIsDueTo) {
    const std::vector<double> healthy(16, 1.0);
    std::vector<double> slower = healthy;
    const auto pace_after = [&](double time, double share) {
        GpuPaces paces(cluster_);
        paces.update(seen(healthy), costs_, {});
        slower[5] = time;
        EXPECT_TRUE(paces.update(seen(slower), costs_, {}, share));
        EXPECT_EQ(paces.paces()[4], scenarios::GpuPace());
        return paces;
    };
    GpuPaces paces = pace_after(1.25, 0.25);  // a quarter of the interval at twice its time
    EXPECT_NEAR(paces.paces()[5].compute, pace_after(2.0, 1.0).paces()[5].compute, 0.005);
    slower[5] = 2.02;  // what is measured of a whole interval counts instead
    paces.update(seen(slower), costs_, {});
    EXPECT_NEAR(paces.paces()[5].compute, pace_after(2.02, 1.0).paces()[5].compute, 0.005);
    slower[5] = 1.51;  // half of one at the healthy pace again
    paces.update(seen(slower), costs_, {}, 0.5);
    EXPECT_NEAR(paces.paces()[5].compute, 1.0, 0.03);
}

TEST_F(GpuPacesOf16, ExpectsWhatWasLeftOutToBeWellAfterAsLongAsItWasSlow) {
    scenarios::Plan without = plan_;
    without.layout.data = 7;
    std::erase_if(without.gpu_of_rank, [](int gpu) { return gpu % 8 == 5; });
    without.micro_batches_of_replica = {10, 9, 9, 9, 9, 9, 9};
    without.layers_of_cell.resize(14);
    const scenarios::IterationCosts costs_without = scenarios::iteration_costs(job_, cluster_, without);
    GpuPaces paces(cluster_);
    std::vector<double> slower(16, 1.0);
    const auto all = [&](double minutes) {
        Observation observation = seen(slower);
        observation.now = Duration::seconds(60.0 * minutes);
        return paces.update(observation, costs_, {});
    };
    const auto left_out = [&](double minutes) {
        Observation observation = seen(slower, without, costs_without);
        observation.now = Duration::seconds(60.0 * minutes);
        return paces.update(observation, costs_without, {});
    };
    all(0);
    slower[5] = 2.0;
    all(10);
    all(25);
    const scenarios::GpuPace slow = paces.paces()[5];
    EXPECT_LT(slow.compute, 0.6);
    left_out(30);
    left_out(39);
    EXPECT_EQ(paces.paces()[5], slow) << "slow for 15 minutes, left out for 14";
    EXPECT_TRUE(left_out(41));
    EXPECT_EQ(paces.paces()[5], scenarios::GpuPace());
    all(42);
    EXPECT_EQ(paces.paces()[5], slow) << "it is not";
    left_out(43);
    left_out(73);
    EXPECT_EQ(paces.paces()[5], slow) << "slow for 32 minutes by now";
    EXPECT_TRUE(left_out(75));
    EXPECT_EQ(paces.paces()[5], scenarios::GpuPace());
}

TEST_F(GpuPacesOf16, SeesASlowGpuAtOnce) {
    GpuPaces paces(cluster_);
    paces.update(seen(std::vector<double>(16, 1.0)), costs_, {});
    std::vector<double> slower(16, 1.0);
    slower[5] = 1.5;
    EXPECT_TRUE(paces.update(seen(slower), costs_, {}));
    EXPECT_NEAR(paces.paces()[5].compute, 1 / 1.5, 0.1);
    EXPECT_EQ(paces.paces()[4], scenarios::GpuPace());
}

TEST_F(GpuPacesOf16, SeesASlowNodeOfTwoAtOnce) {
    GpuPaces paces(cluster_);
    paces.update(seen(std::vector<double>(16, 1.0)), costs_, {});
    std::vector<double> slower(16, 1.0);
    for (std::size_t rank = 8; rank < 16; ++rank) slower[rank] = 1.4;
    paces.update(seen(slower), costs_, {});
    EXPECT_LT(paces.paces()[8].compute, 0.8);
    EXPECT_EQ(paces.paces()[0], scenarios::GpuPace());
}

TEST_F(GpuPacesOf16, TakesReplicasWhoseDataDifferFromOneIntervalToTheNextForHealthy) {
    std::mt19937 random(7);
    std::normal_distribution<double> spread(0.0, 0.05);
    GpuPaces paces(cluster_);
    for (int interval = 0; interval < 3; ++interval) paces.update(seen(std::vector<double>(16, 1.0)), costs_, {});
    int off = 0;
    for (int interval = 0; interval < 200; ++interval) {
        std::vector<double> slower(16);
        for (std::size_t replica = 0; replica < 8; ++replica)
            slower[replica] = slower[replica + 8] = std::exp(spread(random));
        paces.update(seen(slower), costs_, {});
        for (const scenarios::GpuPace& pace : paces.paces()) off += pace == scenarios::GpuPace() ? 0 : 1;
    }
    EXPECT_LT(off, 16) << "of 3,200";
}

TEST_F(GpuPacesOf16, SeesGpusAlikeWhereAllAreSlower) {
    GpuPaces paces(cluster_);
    paces.update(seen(std::vector<double>(16, 1.0)), costs_, {});
    paces.update(seen(std::vector<double>(16, 1.3)), costs_, {});
    for (const scenarios::GpuPace& pace : paces.paces())
        EXPECT_NEAR(pace.compute, paces.paces()[0].compute, 0.02) << "launches do not stretch";
}

}  // namespace
}  // namespace headway::policies
