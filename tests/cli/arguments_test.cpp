#include "cli/arguments.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/cli/run_program.h"

namespace headway::tests {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

cli::Command parsed(std::vector<const char*> words) {
    words.insert(words.begin(), "headway");
    return cli::parse_arguments(static_cast<int>(words.size()), words.data(), "1.2.3");
}

TEST(Arguments, BecomeTheStructOfTheirCommand) {
    const auto replay = std::get<cli::ReplayArguments>(
        parsed({"replay", "a.yaml", "--set", "job.micro_batch=2", "--set", "name=x=y", "--seed", "7", "--iterations",
                "50", "--policy", "static", "--json", "--catalogue", "cat"}));
    EXPECT_EQ(replay.scenario, "a.yaml");
    ASSERT_EQ(replay.overrides.size(), 2u);
    EXPECT_EQ(replay.overrides[0], scenarios::Override("job.micro_batch", "2"));
    EXPECT_EQ(replay.overrides[1], scenarios::Override("name", "x=y"));
    EXPECT_EQ(replay.seed, 7u);
    EXPECT_EQ(replay.seeds, 1);
    EXPECT_EQ(replay.iterations, 50);
    EXPECT_EQ(replay.policy, "static");
    EXPECT_TRUE(replay.json);
    EXPECT_EQ(replay.catalogue, std::filesystem::path("cat"));
}

TEST(Arguments, TakeSeveralTables) {
    const auto validate = std::get<cli::ValidateArguments>(parsed({"validate", "a.yaml", "b.yaml", "--stack", "s"}));
    EXPECT_EQ(validate.tables.size(), 2u);
    EXPECT_EQ(validate.stack, "s");
}

TEST(Program, PrintsVersionAndHelpToStandardOutput) {
    const TestFolder folder;
    const ProgramResult version = folder.headway("--version");
    EXPECT_EQ(version.exit_code, 0);
    EXPECT_THAT(version.out, StartsWith("headway "));
    const ProgramResult help = folder.headway("--help");
    EXPECT_EQ(help.exit_code, 0);
    EXPECT_THAT(help.out, HasSubstr("Exit codes"));
    EXPECT_THAT(help.err, IsEmpty());
    for (const char* command : {"replay", "check", "plan", "list", "validate", "compare", "export", "export-weights"}) {
        EXPECT_THAT(help.out, HasSubstr(command));
        const ProgramResult own = folder.headway(std::string(command) + " --help");
        EXPECT_EQ(own.exit_code, 0) << command;
        EXPECT_THAT(own.out, HasSubstr("Example")) << command;
        EXPECT_THAT(own.out, HasSubstr("  headway " + std::string(command) + " ")) << command;
        EXPECT_THAT(own.out, Not(HasSubstr("Exit codes"))) << command;  // each has its own text
    }
}

TEST(Program, SuggestsTheNearestCommand) {
    const TestFolder folder;
    const ProgramResult result = folder.headway("reply a.yaml");
    EXPECT_EQ(result.exit_code, 2);
    EXPECT_THAT(result.err, HasSubstr("unknown command 'reply' (did you mean 'replay'?)"));
    EXPECT_THAT(result.out, IsEmpty());
}

TEST(Program, SuggestsTheNearestOption) {
    const TestFolder folder;
    const ProgramResult result = folder.headway("replay a.yaml --polcy static");
    EXPECT_EQ(result.exit_code, 2);
    EXPECT_THAT(result.err, HasSubstr("unknown option '--polcy' (did you mean '--policy'?)"));
}

TEST(Program, RejectsWrongArgumentsWithOneMessage) {
    const TestFolder folder;
    folder.write("a.yaml", small_scenario());
    for (const char* wrong : {"",
                              "replay",
                              "replay a.yaml --iterations 0",
                              "replay a.yaml --iterations many",
                              "replay a.yaml --seeds 0",
                              "replay a.yaml --set job",
                              "replay a.yaml --set =3",
                              "replay a.yaml --level all",
                              "replay a.yaml --jsn",
                              "replay a.yaml b.yaml",
                              "replay a.yaml --seeds 2 --out r.jsonl",
                              "list",
                              "compare a",
                              "export a",
                              "replay no-such-file.yaml",
                              "check no-such-file.yaml",
                              "list gpu",
                              "compare a.run.jsonl b.run.jsonl",
                              "export no.run.jsonl --csv d",
                              "export-weights a",
                              "export-weights . --out w",
                              "export-weights no-such-folder --out w",
                              "export-weights . --out w --type f8",
                              "validate no-such-table.yaml",
                              "validate --stack no-such-stack",
                              "list gpus --catalogue no-such-folder",
                              "replay .",
                              "validate a.yaml"}) {
        const ProgramResult result = folder.headway(wrong);
        EXPECT_EQ(result.exit_code, 2) << wrong << "\n" << result.err;
        EXPECT_THAT(result.out, IsEmpty()) << wrong;
        EXPECT_THAT(result.err, Not(IsEmpty())) << wrong;
        if (*wrong != '\0') {
            EXPECT_THAT(result.err, StartsWith("headway: ")) << wrong;
        }
    }
    EXPECT_FALSE(folder.has("r.jsonl"));
    EXPECT_FALSE(folder.has("d"));
}

}  // namespace
}  // namespace headway::tests
