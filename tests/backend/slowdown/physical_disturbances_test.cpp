#include "backend/slowdown/physical_disturbances.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/backend/cluster/small_deployment.h"

namespace headway::backend {
namespace {

using scenarios::Duration;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

PhysicalDisturbances disturbed(const std::string& list) {
    return PhysicalDisturbances(small_deployment("{data: 2, pipeline: 2}", "disturbances: " + list + "\n"));
}

TEST(PhysicalDisturbances, SlowTheGpusTheyNameWhileTheyLast) {
    const PhysicalDisturbances d = disturbed(
        "[{start: 1 s, duration: 2 s, co_tenant: {gpu: 1, compute_share: 0.5, memory_share: 0.2}}, "
        "{start: 2 s, speed_factor: {node: 0, factor: 0.5}}]");
    const auto compute = [&](int gpu, double s) { return d.gpu(gpu, Duration::seconds(s)).compute; };
    EXPECT_DOUBLE_EQ(compute(1, 0.5), 1.0);
    EXPECT_DOUBLE_EQ(compute(1, 1.0), 0.5);
    EXPECT_DOUBLE_EQ(d.gpu(1, Duration::seconds(1.5)).memory, 0.8);
    EXPECT_DOUBLE_EQ(compute(1, 2.5), 0.25) << "factors multiply";
    EXPECT_DOUBLE_EQ(compute(1, 3.0), 0.5) << "the end is no part of it";
    EXPECT_DOUBLE_EQ(compute(0, 2.5), 0.5);
    EXPECT_DOUBLE_EQ(compute(2, 2.5), 1.0) << "another node";
}

TEST(PhysicalDisturbances, FollowARecordedSeries) {
    const PhysicalDisturbances d = disturbed(
        "[{start: 10 s, speed_factor: {gpu: 3, series: [{time: 0 s, factor: 0.9}, {time: 5 s, factor: 0.4}]}}]");
    EXPECT_DOUBLE_EQ(d.gpu(3, Duration::seconds(12)).compute, 0.9);
    EXPECT_DOUBLE_EQ(d.gpu(3, Duration::seconds(15)).compute, 0.4);
}

TEST(PhysicalDisturbances, APowerCapLeavesTheClockThatItAllows) {
    const PhysicalDisturbances d =
        disturbed("[{start: 0 s, power_cap: {gpu: 0, limit: 20 W}}, {start: 0 s, power_cap: {gpu: 0, limit: 25 W}}]");
    // 40 W with 5 W idle: a share of 15/35 of the dynamic power, and its cube root of the clock.
    EXPECT_NEAR(d.gpu(0, Duration()).compute, std::cbrt(15.0 / 35.0), 1e-9);
    EXPECT_DOUBLE_EQ(d.gpu(1, Duration()).compute, 1.0);
}

TEST(PhysicalDisturbances, SlowTheLinksTheyName) {
    const PhysicalDisturbances d = disturbed(
        "[{start: 0 s, link_bandwidth: {node_network: 1, factor: 0.25}}, "
        "{start: 0 s, link_delay: {pipeline_hop: 0, delay: 3 ms}}]");
    EXPECT_TRUE(d.acts_on_links());
    EXPECT_TRUE(d.link(0, 1, 0, 0, Duration()).healthy()) << "inside node 0";
    EXPECT_DOUBLE_EQ(d.link(0, 2, 1, 1, Duration()).bandwidth, 0.25);
    EXPECT_EQ(d.link(0, 2, 1, 1, Duration()).delay, Duration());
    EXPECT_EQ(d.link(0, 1, 0, 1, Duration()).delay, Duration::milliseconds(3)) << "from stage 0 to 1";
    EXPECT_EQ(d.link(1, 0, 1, 0, Duration()).delay, Duration::milliseconds(3)) << "and back";
    EXPECT_FALSE(disturbed("[{start: 0 s, jitter: {spread: 0.1}}]").acts_on_links());
}

TEST(PhysicalDisturbances, AFlappingLinkHoldsMessagesUntilItIsUp) {
    const PhysicalDisturbances d = disturbed("[{start: 1 s, link_flap: {node_network: 0, down: 100 ms, period: 1 s}}]");
    const auto delay = [&](double s) { return d.link(0, 2, 0, 0, Duration::seconds(s)).delay; };
    EXPECT_EQ(delay(0.5), Duration());
    EXPECT_EQ(delay(1.0), Duration::milliseconds(100));
    EXPECT_EQ(delay(2.03), Duration::milliseconds(70));
    EXPECT_EQ(delay(2.5), Duration());
}

TEST(PhysicalDisturbances, KillTheProcessesOfWhatIsLost) {
    const PhysicalDisturbances d = disturbed("[{start: 9 s, gpu_loss: {gpu: 1}}, {start: 3 s, node_loss: {node: 1}}]");
    ASSERT_EQ(d.losses().size(), 3u);
    EXPECT_EQ(d.losses()[0].gpu, 2);
    EXPECT_EQ(d.losses()[1].gpu, 3);
    EXPECT_EQ(d.losses()[2].gpu, 1);
    EXPECT_EQ(d.losses()[2].at, Duration::seconds(9));
    EXPECT_EQ(d.losses()[2].disturbance, 0);
}

TEST(PhysicalDisturbances, SayWhatWillNotBeFelt) {
    const PhysicalDisturbances d = disturbed(
        "[{start: 0 s, name: hot, airflow: {gpu: 1, resistance_factor: 2}}, {start: 0 s, jitter: {spread: 0.1}}, "
        "{start: 0 s, co_tenant: {gpu: 1, compute_share: 0.5}}, {start: 0 s, gpu_loss: {gpu: 0}}]");
    EXPECT_THAT(d.not_physical(true), ElementsAre(HasSubstr("'hot' (airflow) will not be felt"),
                                                  HasSubstr("GPU 0 is the process that writes the record")));
    EXPECT_EQ(d.not_physical(false).size(), 3u) << "jitter needs a pace";
    EXPECT_THAT(disturbed("[]").not_physical(false), IsEmpty());
}

}  // namespace
}  // namespace headway::backend
