#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "tests/architecture/include_rule.h"
#include "tests/architecture/source_tree.h"
#include "tests/paths.h"

namespace headway::tests {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::vector<std::string> violations_of(const std::string& path, const std::string& text) {
    static const std::set<std::string> kFiles = {"scenarios/plan.h", "policies/action.h", "policies/planning/search.h",
                                                 "sim/engine.h",     "cli/report.h",      "gui/chart.h"};
    return include_violations({path, text}, [](const std::string& name) { return kFiles.contains(name); });
}

TEST(IncludeRule, AcceptsWhatTheTableAllows) {
    EXPECT_THAT(violations_of("sim/engine.cpp",
                              "#include \"sim/engine.h\"\n\n#include <simgrid/s4u.hpp>\n#include <vector>\n"
                              "#include \"scenarios/plan.h\"\n#include \"policies/action.h\"\n"),
                IsEmpty());
    EXPECT_THAT(violations_of("policies/net.cpp", "#include <Eigen/Core>\n#include \"scenarios/plan.h\"\n"), IsEmpty());
    EXPECT_THAT(violations_of("cli/main.cpp", "#include <CLI/CLI.hpp>\n#include \"sim/engine.h\"\n"), IsEmpty());
}

TEST(IncludeRule, RejectsARoomThatLooksIntoAnother) {
    EXPECT_THAT(violations_of("scenarios/a.cpp", "#include \"policies/action.h\"\n"),
                ElementsAre(HasSubstr("scenarios/a.cpp:1:")));
    EXPECT_THAT(violations_of("policies/a.cpp", "\n#include \"sim/engine.h\"\n"),
                ElementsAre(HasSubstr("policies/a.cpp:2:")));
    EXPECT_THAT(violations_of("cli/a.cpp", "#include \"gui/chart.h\"\n"), ElementsAre(HasSubstr("may not include")));
}

TEST(IncludeRule, GivesTheSimulatorOnlyTheSeamOfPolicies) {
    EXPECT_THAT(violations_of("sim/a.cpp", "#include \"policies/action.h\"\n"), IsEmpty());
    EXPECT_THAT(violations_of("sim/a.cpp", "#include \"policies/planning/search.h\"\n"),
                ElementsAre(HasSubstr("may not include")));
}

TEST(IncludeRule, RejectsAThirdPartyHeaderInTheWrongRoom) {
    EXPECT_THAT(violations_of("policies/a.cpp", "#include <simgrid/s4u.hpp>\n"), ElementsAre(HasSubstr("SimGrid")));
    EXPECT_THAT(violations_of("policies/a.cpp", "# include <yaml-cpp/yaml.h>\n"), ElementsAre(HasSubstr("yaml-cpp")));
    EXPECT_THAT(violations_of("scenarios/language/a.cpp", "#include <nlohmann/json.hpp>\n"),
                ElementsAre(HasSubstr("JSON")));
    EXPECT_THAT(violations_of("scenarios/a.cpp", "#include <boost/regex.hpp>\n"), ElementsAre(HasSubstr("unknown")));
}

TEST(IncludeRule, RejectsIncludesThatAreNotWrittenFromTheRoot) {
    EXPECT_THAT(violations_of("sim/a.cpp", "#include \"engine.h\"\n"), ElementsAre(HasSubstr("not a file")));
    EXPECT_THAT(violations_of("sim/a.cpp", "#include \"../scenarios/plan.h\"\n"), ElementsAre(HasSubstr("not a file")));
}

TEST(IncludeRule, WantsTheOwnHeaderFirst) {
    EXPECT_THAT(violations_of("sim/engine.cpp", "#include <vector>\n#include \"sim/engine.h\"\n"),
                ElementsAre(HasSubstr("first include")));
    EXPECT_THAT(violations_of("sim/engine.h", "int a();\n"), ElementsAre(HasSubstr("#pragma once")));
}

TEST(IncludeRule, RejectsCodeOutsideTheRooms) {
    EXPECT_THAT(violations_of("helpers/a.cpp", ""), ElementsAre(HasSubstr("outside the rooms")));
}

TEST(IncludeRule, HoldsInTheWholeTree) {
    const std::vector<SourceFile> tree = read_source_tree(source_directory());
    std::set<std::string> paths;
    for (const SourceFile& file : tree) paths.insert(file.path);
    ASSERT_TRUE(paths.contains("tests/architecture/include_rule.cpp"));
    for (const SourceFile& file : tree) {
        if (!is_code(file.path)) continue;
        for (const auto& violation :
             include_violations(file, [&](const std::string& name) { return paths.contains(name); })) {
            ADD_FAILURE() << violation;
        }
    }
}

TEST(IncludeRule, KeepsSlowHeadersInFewFiles) {
    std::vector<std::string> with_cli11;
    for (const SourceFile& file : read_source_tree(source_directory())) {
        if (!is_code(file.path)) continue;
        if (!included(file.text, "CLI/").empty()) with_cli11.push_back(file.path);
        if (!file.path.ends_with(".h") || file.path.starts_with("tests/")) continue;
        for (const char* slow : {"yaml-cpp/yaml.h", "nlohmann/json.hpp", "simgrid/", "regex"}) {
            EXPECT_THAT(included(file.text, slow), IsEmpty())
                << file.path << ": slow to compile, keep it out of headers";
        }
    }
    EXPECT_EQ(with_cli11.size(), 1u) << "CLI11 takes 9 s to compile: " << ::testing::PrintToString(with_cli11);
}

}  // namespace
}  // namespace headway::tests
