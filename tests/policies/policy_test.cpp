#include "policies/policy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <stdexcept>

namespace headway::policies {
namespace {

TEST(PolicyRegistry, MakesEveryPolicyItLists) {
    ASSERT_FALSE(registered_policies().empty());
    for (const PolicyEntry& entry : registered_policies()) {
        if (entry.looks_ahead) {
            EXPECT_THROW(make_policy(entry.name), std::invalid_argument) << "has no worlds to look into";
        } else {
            EXPECT_EQ(make_policy(entry.name)->name(), entry.name);
        }
        check_policy(entry.name);
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
        EXPECT_THAT(error.what(), ::testing::AllOf(::testing::StartsWith("no policy 'statik' (there is: best-static, "),
                                                   ::testing::EndsWith("(did you mean 'static'?)")));
    }
}

}  // namespace
}  // namespace headway::policies
