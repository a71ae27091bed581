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
    static const std::set<std::string> kFiles = {
        "scenarios/plan.h",   "policies/action.h", "policies/planning/search.h",
        "sim/network/flow.h", "cli/report.h",      "gui/chart.h"};
    return include_violations({path, text}, [](const std::string& name) { return kFiles.contains(name); });
}

TEST(IncludeRule, AcceptsWhatTheTableAllows) {
    EXPECT_THAT(violations_of("sim/network/flow.cpp",
                              "#include \"sim/network/flow.h\"\n\n#include <simgrid/s4u.hpp>\n#include <vector>\n"
                              "#include \"scenarios/plan.h\"\n#include \"policies/action.h\"\n"),
                IsEmpty());
    EXPECT_THAT(violations_of("policies/net.cpp", "#include <Eigen/Core>\n#include \"scenarios/plan.h\"\n"), IsEmpty());
    EXPECT_THAT(violations_of("cli/main.cpp", "#include <CLI/CLI.hpp>\n#include \"sim/network/flow.h\"\n"), IsEmpty());
}

TEST(IncludeRule, RejectsARoomThatLooksIntoAnother) {
    EXPECT_THAT(violations_of("scenarios/a.cpp", "#include \"policies/action.h\"\n"),
                ElementsAre(HasSubstr("scenarios/a.cpp:1:")));
    EXPECT_THAT(violations_of("policies/a.cpp", "\n#include \"sim/network/flow.h\"\n"),
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
    EXPECT_THAT(violations_of("sim/thermal.cpp", "#include <simgrid/s4u.hpp>\n"), ElementsAre(HasSubstr("SimGrid")));
    EXPECT_THAT(violations_of("policies/a.cpp", "# include <yaml-cpp/yaml.h>\n"), ElementsAre(HasSubstr("yaml-cpp")));
    EXPECT_THAT(violations_of("scenarios/language/a.cpp", "#include <nlohmann/json.hpp>\n"),
                ElementsAre(HasSubstr("JSON")));
    EXPECT_THAT(violations_of("scenarios/a.cpp", "#include <boost/regex.hpp>\n"), ElementsAre(HasSubstr("unknown")));
}

TEST(IncludeRule, RejectsIncludesThatAreNotWrittenFromTheRoot) {
    EXPECT_THAT(violations_of("sim/network/a.cpp", "#include \"flow.h\"\n"), ElementsAre(HasSubstr("not a file")));
    EXPECT_THAT(violations_of("sim/a.cpp", "#include \"../scenarios/plan.h\"\n"), ElementsAre(HasSubstr("not a file")));
}

TEST(IncludeRule, WantsTheOwnHeaderFirst) {
    EXPECT_THAT(violations_of("sim/network/flow.cpp", "#include <vector>\n#include \"sim/network/flow.h\"\n"),
                ElementsAre(HasSubstr("first include")));
    EXPECT_THAT(violations_of("sim/network/flow.h", "int a();\n"), ElementsAre(HasSubstr("#pragma once")));
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

/// Headers that bring a slow library in are private to their folder: each "who includes what" that breaks this.
std::vector<std::string> leaks_of_slow_libraries(const std::vector<SourceFile>& files) {
    std::vector<std::string> leaks;
    for (const SourceFile& header : files) {
        if (!header.path.ends_with(".h")) continue;
        for (const char* slow : {"yaml-cpp/yaml.h", "nlohmann/json.hpp", "simgrid/", "CLI/", "regex"}) {
            if (included(header.text, slow).empty()) continue;
            const std::string folder = header.path.substr(0, header.path.rfind('/') + 1);
            for (const SourceFile& file : files) {
                const bool at_home = file.path.starts_with(folder) || file.path.starts_with("tests/" + folder);
                if (is_code(file.path) && !at_home && !included(file.text, header.path).empty()) {
                    leaks.push_back(file.path + " includes " + header.path + " and with it " + slow);
                }
            }
        }
    }
    return leaks;
}

TEST(IncludeRule, FindsASlowLibraryThatLeaksOutOfItsFolder) {
    const SourceFile node{"scenarios/language/node.h", "#include <yaml-cpp/yaml.h>\n"};
    const std::string user = "#include \"scenarios/language/node.h\"\n";
    EXPECT_THAT(leaks_of_slow_libraries({node, {"scenarios/language/read.cpp", user}}), IsEmpty());
    EXPECT_THAT(leaks_of_slow_libraries({node, {"scenarios/costs/kernel.h", user}}),
                ElementsAre(HasSubstr("scenarios/costs/kernel.h includes")));
}

TEST(IncludeRule, KeepsSlowHeadersInFewFiles) {
    const std::vector<SourceFile> tree = read_source_tree(source_directory());
    EXPECT_THAT(leaks_of_slow_libraries(tree), IsEmpty());
    std::vector<std::string> with_cli11;
    for (const SourceFile& file : tree) {
        if (is_code(file.path) && !included(file.text, "CLI/").empty()) with_cli11.push_back(file.path);
    }
    EXPECT_EQ(with_cli11.size(), 1u) << "CLI11 takes 9 s to compile: " << ::testing::PrintToString(with_cli11);
}

}  // namespace
}  // namespace headway::tests
