#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/cli/run_program.h"

namespace headway::tests {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

class ListKind : public ::testing::TestWithParam<const char*> {};

TEST_P(ListKind, ShowsTheSameEntriesAsTableAndAsJson) {
    const TestFolder folder;
    const std::string kind = GetParam();
    const ProgramResult table = folder.headway("list " + kind);
    ASSERT_EQ(table.exit_code, 0) << table.err;
    const ProgramResult list = folder.headway("list " + kind + " --json");
    ASSERT_EQ(list.exit_code, 0) << list.err;
    const json entries = json::parse(list.out).at(kind);
    EXPECT_GE(entries.size(), 1u);
    for (const json& entry : entries) {
        EXPECT_THAT(table.out, HasSubstr("\n" + entry.at("name").get<std::string>() + " "));
        EXPECT_TRUE(entry.contains("description"));
    }
}

INSTANTIATE_TEST_SUITE_P(Kinds, ListKind,
                         ::testing::Values("gpus", "fabrics", "stacks", "clusters", "models", "policies"));

TEST(List, StatesFactsWithTheirUnits) {
    const TestFolder folder;
    const json list = json::parse(folder.headway("list gpus --json").out);
    for (const json& gpu : list.at("gpus")) {
        if (gpu.at("name") != "A100-SXM4-80GB") continue;
        EXPECT_EQ(gpu.at("memory_gib"), 80);
        EXPECT_EQ(gpu.at("half_tflops"), 312);
        return;
    }
    FAIL() << "no A100";
}

}  // namespace
}  // namespace headway::tests
