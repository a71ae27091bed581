#include "scenarios/language/generator.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>

#include "tests/scenarios/language/small_scenario.h"

namespace headway::scenarios {
namespace {

using testing::HasSubstr;

const char* const kAllFamilies =
    "{horizon: 20 d, airflow: {per_day: 1}, inlet: {per_day: 0.5}, power_cap: {per_day: 0.5}, co_tenant: {per_day: "
    "0.5}, speed_factor: {per_day: 0.5}, link_bandwidth: {per_day: 0.5}, "
    "link_delay: {per_day: 0.5}, link_flap: {per_day: 0.5}, gpu_loss: {per_day: 0.2}, node_loss: {per_day: 0.2}, "
    "node_arrival: {per_day: 1}, sequence_lengths: {per_day: 1}, jitter: {per_day: 1}}";

Scenario generated(const std::vector<Override>& more) {
    std::vector<Override> overrides{
        {"cluster.nodes", "8"}, {"strategy.data", "16"}, {"job.global_batch", "64"}, {"disturbances", "[]"}};
    overrides.insert(overrides.end(), more.begin(), more.end());
    return read_small(overrides);
}

std::map<std::string, int> counts(const Scenario& scenario) {
    std::map<std::string, int> count;
    for (const Disturbance& disturbance : scenario.disturbances) ++count[kind_of(disturbance.cause)];
    return count;
}

TEST(GeneratedDisturbances, AreTheSameBytesForTheSameSeed) {
    const Scenario a = generated({{"generate", kAllFamilies}});
    EXPECT_EQ(write_scenario(a), write_scenario(generated({{"generate", kAllFamilies}})));
    EXPECT_NE(a.disturbances, generated({{"generate", kAllFamilies}, {"seed", "8"}}).disturbances);
}

TEST(GeneratedDisturbances, StandInTheResolvedScenario) {
    const Scenario scenario = generated({{"generate", kAllFamilies}});
    EXPECT_FALSE(scenario.generate);
    const std::string text = write_scenario(scenario);
    EXPECT_TRUE(parse_scenario(text, "r.yaml", "/nonexistent", Catalogue{"/nonexistent"}) == scenario);
}

TEST(GeneratedDisturbances, CoverEveryFamily) {
    const auto count = counts(generated({{"generate", kAllFamilies}}));
    for (const char* kind : kCauseKinds) EXPECT_GT(count.count(kind), 0u) << kind;
}

TEST(GeneratedDisturbances, OfOneFamilyDoNotDependOnTheOthers) {
    const auto airflow_only = [](const Scenario& scenario) {
        std::vector<Disturbance> chosen;
        for (const Disturbance& disturbance : scenario.disturbances) {
            if (std::holds_alternative<Airflow>(disturbance.cause)) chosen.push_back(disturbance);
        }
        return chosen;
    };
    const Scenario all = generated({{"generate", kAllFamilies}});
    const Scenario one = generated({{"generate", "{horizon: 20 d, airflow: {per_day: 1}}"}});
    EXPECT_EQ(airflow_only(all), one.disturbances);
}

TEST(GeneratedDisturbances, ComeAtTheRateAsked) {
    // 64 GPUs, 20 days, 1 a GPU and day: 1280 +- 36.
    const auto count = counts(generated({{"generate", "{horizon: 20 d, airflow: {per_day: 1}}"}}));
    EXPECT_NEAR(count.at("airflow"), 1280, 4 * 36);
}

TEST(GeneratedDisturbances, StayInTheirRanges) {
    const Scenario scenario = generated({{"generate",
                                          "{horizon: 20 d, airflow: {per_day: 1, severity_min: 1.5, severity_max: 2, "
                                          "shortest: 1 min, longest: 2 min}}"}});
    std::set<int> gpus;
    for (const Disturbance& disturbance : scenario.disturbances) {
        const auto& airflow = std::get<Airflow>(disturbance.cause);
        EXPECT_GE(airflow.resistance_factor, 1.5);
        EXPECT_LE(airflow.resistance_factor, 2.0);
        EXPECT_GE(*disturbance.duration, Duration::seconds(60));
        EXPECT_LE(*disturbance.duration, Duration::milliseconds(120'001));
        EXPECT_LT(disturbance.start, Duration::seconds(20 * 86400));
        gpus.insert(airflow.at.gpu);
    }
    EXPECT_EQ(gpus.size(), 64u);
    EXPECT_TRUE(std::is_sorted(scenario.disturbances.begin(), scenario.disturbances.end(),
                               [](const auto& a, const auto& b) { return a.start < b.start; }));
}

TEST(GeneratedDisturbances, NeverLoseWhatIsGone) {
    // Reading checks it; at this rate nearly every loss meets a part that is being repaired.
    const Scenario scenario =
        generated({{"cluster.facility.node_repair", "5 d"},
                   {"cluster.facility.gpu_repair", "5 d"},
                   {"generate", "{horizon: 20 d, node_loss: {per_day: 5}, gpu_loss: {per_day: 5}}"}});
    EXPECT_FALSE(scenario.disturbances.empty());
    EXPECT_LE(scenario.disturbances.size(), 64u * 4u);  // each GPU is gone for 5 of the 20 days at a time
}

TEST(GeneratedDisturbances, NeedAnEndAndSaneRates) {
    EXPECT_THAT(error_of(small_scenario(), {{"generate", "{airflow: {per_day: 1}}"}}),
                HasSubstr("generate: 'horizon' is missing"));
    EXPECT_THAT(error_of(small_scenario(), {{"generate", "{horizon: 300 d, airflow: {per_day: 1000000}}"}}),
                HasSubstr("generate: airflow: about 2400000000 events are to be expected (at most 100000 in all)"));
    EXPECT_THAT(error_of(small_scenario(), {{"generate", "{horizon: 1 d, airflow: {per_day: 1, severity_min: 5}}"}}),
                HasSubstr("generate.airflow.severity_min: 5 is not allowed (at most severity_max, 3)"));
    EXPECT_THAT(error_of(small_scenario(), {{"generate", "{horizon: 1 d, airflow: {per_day: 1, shortest: 5 h}}"}}),
                HasSubstr("generate.airflow.shortest: 5 h is not allowed (at most longest, 1 h)"));
}

}  // namespace
}  // namespace headway::scenarios
