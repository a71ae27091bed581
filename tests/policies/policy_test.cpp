#include "policies/policy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <stdexcept>

namespace headway::policies {
namespace {

TEST(PolicyRegistry, MakesEveryPolicyItLists) {
    ASSERT_FALSE(registered_policies().empty());
    for (const PolicyEntry& entry : registered_policies()) {
        EXPECT_EQ(make_policy(entry.name)->name(), entry.name);
        EXPECT_FALSE(entry.description.empty()) << entry.name;
    }
}

TEST(PolicyRegistry, ListsInOrderOfNames) {
    const auto entries = registered_policies();
    EXPECT_TRUE(std::is_sorted(entries.begin(), entries.end(), [](auto& a, auto& b) { return a.name < b.name; }));
}

TEST(PolicyRegistry, NamesTheKnownPoliciesForAnUnknownOne) {
    try {
        make_policy("statik");
        FAIL() << "made a policy that does not exist";
    } catch (const std::invalid_argument& error) {
        EXPECT_STREQ(error.what(), "no policy 'statik' (there is: static)");
    }
}

/// Observations that any policy may meet: healthy, all slow, lost.
class EveryPolicy : public ::testing::TestWithParam<PolicyEntry> {};

TEST_P(EveryPolicy, ChoosesACandidateThatExistsAndRepeatsItself) {
    Observation observation;
    observation.ranks.resize(4);
    observation.ranks[2].relative_score = 0.25;
    const std::vector<Candidate> keep = {{Candidate::Kind::kKeep, {}, {}, "keep"}};
    const std::vector<Candidate> wait = {{Candidate::Kind::kWaitForReplacement, {}, {}, "wait"}};
    std::vector<std::size_t> choices[2];
    for (auto& chosen : choices) {
        const auto policy = make_policy(GetParam().name);
        policy->start_episode({}, 7);
        for (const auto& candidates : {keep, wait, keep}) {
            chosen.push_back(policy->decide(observation, candidates).candidate);
            ASSERT_LT(chosen.back(), candidates.size());
        }
    }
    EXPECT_EQ(choices[0], choices[1]);
}

INSTANTIATE_TEST_SUITE_P(Registered, EveryPolicy, ::testing::ValuesIn(registered_policies()),
                         [](const auto& entry) { return entry.param.name; });

}  // namespace
}  // namespace headway::policies
