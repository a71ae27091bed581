#include "backend/telemetry/iteration_measurement.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/backend/cluster/small_deployment.h"

namespace headway::backend {
namespace {

using policies::GroupMeasurement;
using scenarios::Duration;
using scenarios::Op;

Duration ms(double value) {
    return Duration::milliseconds(value);
}

/// Puts an instruction behind those before it.
class Steps {
  public:
    Steps& add(Op op, double took_ms, double exposed_ms = 0.0, std::int64_t bytes = 0, int micro_batch = 0) {
        TimedInstruction timed;
        timed.instruction = {op, 0, false, micro_batch};
        timed.begin = now_;
        now_ += ms(took_ms);
        timed.end = now_;
        timed.exposed = ms(exposed_ms);
        timed.bytes = bytes;
        rank_.step.instructions.push_back(timed);
        return *this;
    }
    RankStep take(std::int64_t memory = 0) {
        rank_.step.end = now_;
        rank_.memory_bytes = memory;
        return rank_;
    }

  private:
    RankStep rank_;
    Duration now_;
};

struct Measured {
    explicit Measured(const std::string& strategy)
        : scenario(small_deployment(strategy)), plan(initial_plan_of(scenario)) {}
    scenarios::Scenario scenario;
    scenarios::Plan plan;
};

TEST(IterationMeasurement, WhatTheLastOneWaitsIsCommunicationAndTheRestIdle) {
    const Measured job("{data: 4}");
    IterationMeasurement measurement(job.scenario.job, job.scenario.cluster, job.plan);
    std::vector<RankStep> ranks;
    for (const double compute : {10.0, 10.0, 20.0, 10.0})  // the third is slow; all wait for it in the reduction
        ranks.push_back(Steps()
                            .add(Op::kForward, compute)
                            .add(Op::kReduceGradients, 22.0 - compute, 22.0 - compute, 3'000'000)
                            .add(Op::kOptimizerStep, 2.0, 0.5)
                            .take(77));
    const std::vector<RankShares> shares = measurement.add(ranks, ms(24));
    EXPECT_EQ(shares[0].compute, ms(11.5));
    EXPECT_EQ(shares[0].data, ms(2.5)) << "2 ms for the slow one's reduction, 0.5 ms for the norm";
    EXPECT_EQ(shares[0].idle, ms(10.0));
    EXPECT_EQ(shares[2].compute, ms(21.5));
    EXPECT_EQ(shares[2].idle, Duration());
    const auto measured = measurement.ranks();
    ASSERT_EQ(measured.size(), 4u);
    EXPECT_EQ(measured[2].compute, ms(21.5));
    EXPECT_EQ(measured[2].exposed_communication, ms(2.5));
    EXPECT_EQ(measured[2].memory_used_bytes, 77);
    EXPECT_EQ(measured[2].sm_clock_mhz, job.scenario.cluster.gpu_type(2).boost_clock.value) << "nominal: no sensor";
    const auto groups = measurement.groups();
    ASSERT_EQ(groups.size(), 1u);
    EXPECT_EQ(groups[0].kind, GroupMeasurement::Kind::kData);
    EXPECT_NEAR(groups[0].bus_bytes_per_second, 3e6 / 2e-3, 1.0);
}

TEST(IterationMeasurement, AveragesOverIterations) {
    const Measured job("{data: 4}");
    IterationMeasurement measurement(job.scenario.job, job.scenario.cluster, job.plan);
    EXPECT_TRUE(measurement.ranks().empty());
    for (const double compute : {10.0, 30.0}) {
        std::vector<RankStep> ranks(4, Steps().add(Op::kForward, compute).take());
        measurement.add(ranks, ms(compute));
    }
    EXPECT_EQ(measurement.ranks()[1].compute, ms(20));
}

TEST(IterationMeasurement, MessagesAreTimedByTheEndThatCameLast) {
    const Measured job("{pipeline: 2, data: 2}");
    IterationMeasurement measurement(job.scenario.job, job.scenario.cluster, job.plan);
    std::vector<RankStep> ranks(4);
    for (int replica = 0; replica < 2; ++replica) {
        ranks[static_cast<std::size_t>(job.plan.rank(0, 0, replica, 0))] =
            Steps().add(Op::kForward, 10).add(Op::kSendActivation, 1, 1, 1'000'000).take();
        ranks[static_cast<std::size_t>(job.plan.rank(0, 0, replica, 1))] =
            Steps().add(Op::kReceiveActivation, 11, 11, 1'000'000).add(Op::kForward, 10).take();
    }
    const std::vector<RankShares> shares = measurement.add(ranks, ms(21));
    for (int rank = 0; rank < 4; ++rank) {
        EXPECT_EQ(shares[static_cast<std::size_t>(rank)].pipeline, ms(1)) << rank;
        EXPECT_EQ(shares[static_cast<std::size_t>(rank)].idle, ms(11)) << rank;
        EXPECT_EQ(shares[static_cast<std::size_t>(rank)].compute, ms(10)) << rank;
    }
    const auto groups = measurement.groups();
    ASSERT_EQ(groups.size(), 2u);
    EXPECT_EQ(groups[0].kind, GroupMeasurement::Kind::kPipeline);
    EXPECT_EQ(groups[0].index, job.plan.worker(0, 0));
    EXPECT_EQ(groups[1].index, job.plan.worker(1, 0));
    EXPECT_NEAR(groups[0].bus_bytes_per_second, 1e9, 1e3);
}

TEST(IterationMeasurement, WaitingInTensorCollectivesIsExposedCommunication) {
    const Measured job("{tensor: 2, data: 2}");
    IterationMeasurement measurement(job.scenario.job, job.scenario.cluster, job.plan);
    std::vector<RankStep> ranks;
    for (const double wait : {6.0, 2.0, 6.0, 2.0}) ranks.push_back(Steps().add(Op::kForward, 20, wait).take());
    const std::vector<RankShares> shares = measurement.add(ranks, ms(20));
    EXPECT_EQ(shares[0].tensor, ms(6));
    EXPECT_EQ(shares[1].tensor, ms(2));
    EXPECT_EQ(shares[1].compute, ms(18));
    const auto groups = measurement.groups();
    ASSERT_EQ(groups.size(), 2u);
    EXPECT_EQ(groups[0].kind, GroupMeasurement::Kind::kTensor);
    // 4 layers, 4 all-reduces each, one at each edge; 8 micro-batches of 16 tokens of 32 floats; 2 (t-1)/t = 1.
    EXPECT_NEAR(groups[0].bus_bytes_per_second, (4 * 4 + 2) * 8 * 16 * 32 * 4 / 2e-3, 1.0);
}

TEST(IterationMeasurement, TheTimelineHasEachMessageOnce) {
    const Measured job("{pipeline: 2, data: 2}");
    std::vector<RankStep> ranks(4);
    for (int replica = 0; replica < 2; ++replica) {
        ranks[static_cast<std::size_t>(job.plan.rank(0, 0, replica, 0))] =
            Steps().add(Op::kForward, 10, 0, 0, 3).add(Op::kSendActivation, 1, 1, 8, 3).take();
        ranks[static_cast<std::size_t>(job.plan.rank(0, 0, replica, 1))] =
            Steps().add(Op::kReceiveActivation, 11, 11, 8, 3).add(Op::kForward, 10, 0, 0, 3).take();
    }
    const auto entries = timeline_of(job.plan, ranks);
    ASSERT_EQ(entries.size(), 6u);
    EXPECT_EQ(entries[1].op, static_cast<std::uint8_t>(Op::kSendActivation));
    EXPECT_EQ(entries[1].start_ns, ms(10).ns());
    EXPECT_EQ(entries[1].end_ns, ms(11).ns());
    EXPECT_EQ(entries[1].micro_batch, 3);
    EXPECT_EQ(entries[2].worker, 1);
}

}  // namespace
}  // namespace headway::backend
