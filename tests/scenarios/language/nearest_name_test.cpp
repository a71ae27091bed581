#include "scenarios/language/nearest_name.h"

#include <gtest/gtest.h>

namespace headway::scenarios {
namespace {

const std::vector<std::string> kNames = {"pipeline", "tensor", "data", "context"};

TEST(NearestName, FindsAMissingASwappedAndAWrongLetter) {
    EXPECT_EQ(nearest_name("pipline", kNames), "pipeline");
    EXPECT_EQ(nearest_name("tenosr", kNames), "tensor");
    EXPECT_EQ(nearest_name("Date", kNames), "data");
}

TEST(NearestName, SuggestsNothingForAnUnrelatedWord) {
    EXPECT_EQ(nearest_name("micro_batch", kNames), "");
    EXPECT_EQ(nearest_name("", kNames), "");
    EXPECT_EQ(did_you_mean("xyz", kNames), "");
}

TEST(NearestName, PutsTheSuggestionInWords) {
    EXPECT_EQ(did_you_mean("pipline", kNames), " (did you mean 'pipeline'?)");
}

}  // namespace
}  // namespace headway::scenarios
