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
    Observation seen(const std::vector<double>& slower) const {
        Observation observation;
        observation.plan = plan_;
        observation.iteration = Duration::seconds(1);
        for (std::size_t rank = 0; rank < slower.size(); ++rank) {
            const int replica = static_cast<int>(rank) % 8, stage = static_cast<int>(rank) / 8;
            const auto& cell = costs_.of(0, plan_.layout, replica, stage);
            scenarios::Work work =
                (cell.forward + cell.backward) * plan_.micro_batches_of_replica[static_cast<std::size_t>(replica)];
            work += cell.optimizer;
            work += costs_.stages[static_cast<std::size_t>(stage)].optimizer;
            RankObservation one;
            one.measured.gpu = plan_.gpu_of_rank[rank];
            one.measured.compute = work.total().scaled(slower[rank]);
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
