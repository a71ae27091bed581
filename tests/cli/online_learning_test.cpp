#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "policies/learning/network.h"
#include "policies/learning/policy_file.h"
#include "policies/learning/reduction.h"
#include "policies/learning/trainer.h"
#include "tests/cli/run_program.h"

namespace headway::tests {
namespace {

using ::testing::HasSubstr;

TEST(OnlineLearning, WritesWhatThePolicyBecame) {
    const TestFolder folder;
    policies::NoReduction alone;
    const policies::TrainedPolicy fresh = policies::Trainer({}, alone).policy();
    policies::write_policy(folder.path() / "fresh.policy", fresh);
    folder.write("s.yaml",
                 small_scenario("disturbances:\n- {name: slow, start: 2 s, speed_factor: {gpu: 3, factor: 0.5}}\n"));
    const std::string run = "replay s.yaml --policy fresh.policy --set decision_interval=1 --iterations 60 --learn ";
    const ProgramResult first = folder.headway(run + "a.policy");
    ASSERT_EQ(first.exit_code, 0) << first.err;
    const policies::TrainedPolicy learned = policies::read_policy(folder.path() / "a.policy");
    EXPECT_NE(learned.parameters, fresh.parameters);
    EXPECT_EQ(policies::read_policy(folder.path() / "fresh.policy"), fresh) << "the one it began with is kept";
    ASSERT_EQ(folder.headway(run + "b.policy").exit_code, 0);
    EXPECT_EQ(policies::read_policy(folder.path() / "b.policy"), learned) << "the same run teaches the same";
}

TEST(OnlineLearning, IsForTrainedPoliciesAndSingleRuns) {
    const TestFolder folder;
    folder.write("s.yaml", small_scenario());
    const ProgramResult rule = folder.headway("replay s.yaml --policy greedy --learn a.policy");
    EXPECT_EQ(rule.exit_code, 2);
    EXPECT_THAT(rule.err, HasSubstr("--learn: the policy is 'greedy'; only a trained one"));
    policies::NoReduction alone;
    policies::write_policy(folder.path() / "f.policy", policies::Trainer({}, alone).policy());
    EXPECT_THAT(folder.headway("replay s.yaml --policy f.policy --learn a.policy --seeds 2").err,
                HasSubstr("--learn: from one run at a time"));
    EXPECT_THAT(folder.headway("replay s.yaml --policy f.policy --learn a.txt").err,
                HasSubstr("policies are called FILE.policy"));
}

}  // namespace
}  // namespace headway::tests
