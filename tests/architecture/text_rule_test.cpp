#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <regex>
#include <string>
#include <vector>

#include "tests/architecture/source_tree.h"
#include "tests/paths.h"

namespace headway::tests {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr long kMostLines = 450;

std::vector<std::string> files_that_are_too_long(const std::vector<SourceFile>& files) {
    std::vector<std::string> found;
    for (const SourceFile& file : files) {
        if (is_code(file.path) && std::count(file.text.begin(), file.text.end(), '\n') > kMostLines)
            found.push_back(file.path);
    }
    return found;
}

/// Absolute paths of one person's or one machine's disk. System paths such as /proc or /usr/bin are nobody's in
/// particular.
std::vector<std::string> files_with_machine_paths(const std::vector<SourceFile>& files) {
    static const std::regex kMachinePath("(^|[^A-Za-z0-9_.$}])/(home|root|work|farm|mnt|Users)/|/tmp/[A-Za-z0-9]");
    std::vector<std::string> found;
    for (const SourceFile& file : files) {
        if (std::regex_search(file.text, kMachinePath)) found.push_back(file.path);
    }
    return found;
}

std::vector<std::string> files_without_namespace(const std::vector<SourceFile>& files) {
    std::vector<std::string> found;
    for (const SourceFile& file : files) {
        const bool main_program = file.path.ends_with("/main.cpp");
        if (!is_code(file.path) || main_program) continue;
        // A test may stand in the namespace of the room it tests.
        const std::string room = file.path.substr(0, file.path.find('/'));
        const std::string wanted = "namespace headway" + (room == "tests" ? "" : "::" + room);
        if (file.text.find(wanted) == std::string::npos) found.push_back(file.path);
    }
    return found;
}

SourceFile with_lines(const std::string& path, int lines) {
    std::string text;
    for (int line = 0; line < lines; ++line) text += "//\n";
    return {path, text};
}

TEST(TextRule, FindsALongFile) {
    EXPECT_THAT(files_that_are_too_long(
                    {with_lines("sim/a.cpp", 451), with_lines("sim/b.cpp", 450), with_lines("sim/c.yaml", 900)}),
                ElementsAre("sim/a.cpp"));
}

TEST(TextRule, FindsAMachinePath) {
    // The samples are put together here, so that this file keeps the rule itself.
    const std::string slash = "/";
    EXPECT_THAT(files_with_machine_paths({{"a.md", "see " + slash + "home/me/x"},
                                          {"b.md", "\"" + slash + "tmp/run.jsonl\""},
                                          {"c.md", slash + "work/main"},
                                          {"d.md", "/proc/self/exe and share/home/x and ../work" + slash + "y"}}),
                ElementsAre("a.md", "b.md", "c.md"));
}

TEST(TextRule, FindsCodeOutsideItsNamespace) {
    EXPECT_THAT(files_without_namespace(
                    {{"sim/a.cpp", "namespace headway::policies {}"}, {"sim/b.cpp", "namespace headway::sim {}"}}),
                ElementsAre("sim/a.cpp"));
}

TEST(TextRule, HoldsInTheWholeTree) {
    const std::vector<SourceFile> tree = read_source_tree(source_directory());
    ASSERT_GT(tree.size(), 10u);
    EXPECT_THAT(files_that_are_too_long(tree), IsEmpty()) << "past " << kMostLines << " lines: split by concept";
    EXPECT_THAT(files_with_machine_paths(tree), IsEmpty());
    EXPECT_THAT(files_without_namespace(tree), IsEmpty()) << "a folder directly under the root is the namespace";
}

}  // namespace
}  // namespace headway::tests
