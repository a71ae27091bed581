#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "tests/paths.h"

namespace headway::tests {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::Not;

struct Outcome {
    int exit_code;
    std::string output;    // standard output
    std::string messages;  // standard error
};

/// The launcher in a checkout of its own, with stand-ins for cmake, dpkg-query and apt-get that note each call, so that
/// what it decides is tested in milliseconds and without touching the machine.
class Launcher : public ::testing::Test {
  protected:
    void SetUp() override {
        std::string pattern = (fs::temp_directory_path() / "headway launcher XXXXXX").string();
        ASSERT_NE(mkdtemp(pattern.data()), nullptr);
        root_ = pattern;
        fs::permissions(root_, fs::perms::all);
        fs::create_directories(root_ / "sim");
        fs::create_directories(root_ / "tools");
        fs::copy_file(source_directory() / "headway", root_ / "headway");
        write("CMakeLists.txt", "project(headway)\n");
        write("sim/engine.cpp", "int speed = 1;\n");
        write_tool("cmake", R"(echo "cmake $*" >>"$CALLS"
if [[ $1 == --build ]]; then
    sleep "${BUILD_SECONDS:-0}"
    if [[ -n ${BREAK-} ]]; then printf '[1/1] step\nFAILED: engine.o\nno such speed\n'; exit 1; fi
    printf '#!/bin/bash\nprintf "<%%s>" "$@"\nexit "${PROGRAM_EXIT:-0}"\n' >"$2/headway"
    chmod +x "$2/headway"
else
    printf 'CMAKE_HOME_DIRECTORY:INTERNAL=%s\n' "$2" >"$4/CMakeCache.txt"
    for argument in "$@"; do [[ $argument == -D* ]] && printf '%s\n' "${argument#-D}" >>"$4/CMakeCache.txt"; done
    touch "$4/build.ninja"
fi
)");
        write_tool("dpkg-query", R"(echo dpkg-query >>"$CALLS"
for name in "${@:4}"; do [[ " ${MISSING-} " == *" $name "* ]] || echo "$name installed"; done
)");
        write_tool("apt-get", "echo \"apt-get $*\" >>\"$CALLS\"\n");
        write_tool("ctest", "echo \"ctest $*\" >>\"$CALLS\"\n");
        write_tool("sudo", "exit 1\n");
    }

    void TearDown() override { fs::remove_all(root_); }

    void write(const std::string& name, const std::string& text) { std::ofstream(root_ / name) << text; }

    void write_tool(const std::string& name, const std::string& body) {
        write("tools/" + name, "#!/bin/bash\n" + body);
        fs::permissions(root_ / "tools" / name, fs::perms::all);
    }

    std::string read(const std::string& name) const {
        std::ifstream stream(root_ / name);
        return {std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>()};
    }

    /// Runs a shell line in the checkout, with `$CALLS` naming the note of calls, which starts empty.
    Outcome shell(const std::string& line) {
        write("calls", "");
        fs::permissions(root_ / "calls", fs::perms::all);
        const std::string command = "cd '" + root_.string() +
                                    "' && export CALLS=\"$PWD/calls\" PATH=\"$PWD/tools:$PATH\" && ( " + line +
                                    " ) 2>'" + (root_ / "messages").string() + "'";
        FILE* pipe = popen(command.c_str(), "r");
        std::string output;
        std::array<char, 4096> chunk;
        while (pipe != nullptr && std::fgets(chunk.data(), chunk.size(), pipe) != nullptr) output += chunk.data();
        const int status = pclose(pipe);
        return {WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status), output, read("messages")};
    }

    std::size_t count_in_calls(const std::string& what) const {
        const std::string calls = read("calls");
        std::size_t count = 0;
        for (auto at = calls.find(what); at != std::string::npos; at = calls.find(what, at + 1)) ++count;
        return count;
    }

    fs::path root_;
};

TEST_F(Launcher, BuildsThenForwardsArgumentsAndExitCode) {
    const Outcome outcome = shell("PROGRAM_EXIT=7 ./headway replay 'a file.yaml' --json");
    EXPECT_EQ(outcome.exit_code, 7);
    EXPECT_EQ(outcome.output, "<replay><a file.yaml><--json>");
    EXPECT_EQ(count_in_calls("cmake --build"), 1u);
}

TEST_F(Launcher, SaysEverythingOfItsOwnOnStandardError) {
    const Outcome outcome = shell("./headway x");
    EXPECT_EQ(outcome.output, "<x>");
    EXPECT_THAT(outcome.messages, HasSubstr("headway: building"));
}

TEST_F(Launcher, StartsAtOnceWhenTheBuildIsCurrent) {
    shell("./headway x");
    const Outcome outcome = shell("./headway y");
    EXPECT_EQ(outcome.output, "<y>");
    EXPECT_EQ(read("calls"), "");
    EXPECT_EQ(outcome.messages, "");
}

TEST_F(Launcher, BuildsAgainWhenASourceChangesAppearsOrGoes) {
    shell("./headway x");
    write("sim/engine.cpp", "int speed = 22;\n");
    shell("./headway x");
    EXPECT_EQ(count_in_calls("cmake --build"), 1u);
    write("sim/thermal.h", "");
    shell("./headway x");
    EXPECT_EQ(count_in_calls("cmake --build"), 1u);
    fs::remove(root_ / "sim/thermal.h");
    shell("./headway x");
    EXPECT_EQ(count_in_calls("cmake --build"), 1u);
}

TEST_F(Launcher, DoesNotBuildAgainForACatalogueOrATest) {
    shell("./headway x");
    write("sim/notes.yaml", "a: 1\n");
    fs::create_directories(root_ / "tests");
    write("tests/a_test.cpp", "");
    shell("./headway x");
    EXPECT_EQ(read("calls"), "");
}

TEST_F(Launcher, ShowsTheFirstErrorOfABuildThatFailsAndTriesAgain) {
    Outcome outcome = shell("BREAK=1 ./headway x");
    EXPECT_EQ(outcome.exit_code, 1);
    EXPECT_EQ(outcome.output, "");
    EXPECT_THAT(outcome.messages, HasSubstr("no such speed"));
    EXPECT_THAT(outcome.messages, HasSubstr("headway.log"));
    outcome = shell("./headway x");
    EXPECT_EQ(outcome.output, "<x>");
}

TEST_F(Launcher, RunsNothingOldAfterAFailedBuild) {
    shell("./headway x");
    write("sim/engine.cpp", "int speed = broken;\n");
    const Outcome outcome = shell("BREAK=1 ./headway x");
    EXPECT_EQ(outcome.exit_code, 1);
    EXPECT_EQ(outcome.output, "");
}

TEST_F(Launcher, BuildsOnceForTwoCallsAtOnce) {
    const Outcome outcome = shell("BUILD_SECONDS=0.5 ./headway x & BUILD_SECONDS=0.5 ./headway x & wait");
    EXPECT_EQ(outcome.output, "<x><x>");
    EXPECT_EQ(count_in_calls("cmake --build"), 1u);
    EXPECT_THAT(outcome.messages, HasSubstr("waiting for another build"));
}

TEST_F(Launcher, LeavesNoStampWhenInterrupted) {
    // Job control gives the call a process group of its own, as a terminal would.
    shell("bash -c 'set -m; BUILD_SECONDS=5 ./headway x & sleep 0.5; kill -INT -- -$!; wait $!'");
    EXPECT_EQ(count_in_calls("cmake --build"), 1u);
    EXPECT_FALSE(fs::exists(root_ / "build/.headway-current"));
    EXPECT_EQ(shell("./headway x").output, "<x>");
}

TEST_F(Launcher, RunsFromAnyFolderAndThroughALink) {
    const Outcome outcome = shell("ln -s \"$PWD/headway\" tools/hw && cd / && hw x");
    EXPECT_EQ(outcome.output, "<x>");
    EXPECT_TRUE(fs::exists(root_ / "build/headway"));
}

TEST_F(Launcher, BuildsAfreshWhenTheCheckoutHasMoved) {
    shell("./headway x");
    write("build/CMakeCache.txt", "CMAKE_HOME_DIRECTORY:INTERNAL=/elsewhere\n");
    write("build/old.o", "");
    write("sim/engine.cpp", "int speed = 333;\n");
    const Outcome outcome = shell("./headway x");
    EXPECT_EQ(outcome.output, "<x>");
    EXPECT_FALSE(fs::exists(root_ / "build/old.o"));
    EXPECT_EQ(count_in_calls("cmake -S"), 1u);
}

TEST_F(Launcher, InstallsWhatIsMissingAndNothingOfTheTestsForReplay) {
    if (geteuid() != 0) write_tool("sudo", "shift; [[ $1 == true ]] || \"$@\"\n");
    const Outcome outcome = shell("MISSING='ccache libyaml-cpp-dev libgtest-dev' ./headway replay");
    EXPECT_EQ(outcome.output, "<replay>");
    EXPECT_THAT(read("calls"), HasSubstr("install -y --no-install-recommends ccache libyaml-cpp-dev\n"));
}

TEST_F(Launcher, SaysTheAptLineWhereItMayNotInstall) {
    const std::string user = geteuid() == 0 ? "setpriv --reuid=65534 --regid=65534 --clear-groups " : "";
    const Outcome outcome = shell("MISSING='cmake ccache' " + user + "./headway replay");
    EXPECT_EQ(outcome.exit_code, 3);
    EXPECT_THAT(outcome.messages, HasSubstr("apt-get install -y --no-install-recommends cmake ccache\n"));
    EXPECT_THAT(read("calls"), Not(HasSubstr("cmake")));
}

TEST_F(Launcher, TestsBuildEverythingAndRunWhatIsAsked) {
    const Outcome outcome = shell("./headway test --long --filter 'sim.*'");
    EXPECT_EQ(outcome.exit_code, 0) << outcome.messages;
    EXPECT_THAT(read("calls"), HasSubstr("-DHEADWAY_TESTS:BOOL=ON"));
    EXPECT_THAT(read("calls"), HasSubstr("-DHEADWAY_LONG_TESTS:BOOL=ON"));
    EXPECT_THAT(read("calls"), HasSubstr("--no-tests=error"));
    EXPECT_THAT(read("calls"), HasSubstr("-R sim.*"));
    EXPECT_EQ(shell("./headway test --fast").exit_code, 2);
}

TEST_F(Launcher, SanitizerBuildsStayBesideTheOthers) {
    shell("./headway test --sanitize");
    EXPECT_THAT(read("calls"), HasSubstr("-DHEADWAY_SANITIZE:BOOL=ON"));
    EXPECT_TRUE(fs::exists(root_ / "build-sanitize/CMakeCache.txt"));
    EXPECT_FALSE(fs::exists(root_ / "build/CMakeCache.txt"));
}

TEST_F(Launcher, AddsItsOwnCommandsToTheHelpOfTheProgram) {
    const Outcome outcome = shell("./headway --help");
    EXPECT_THAT(outcome.output, HasSubstr("<--help>"));
    EXPECT_THAT(outcome.output, HasSubstr("./headway test [--sanitize]"));
    EXPECT_EQ(shell("./headway replay --help").output, "<replay><--help>");
}

TEST_F(Launcher, CleanRemovesTheBuilds) {
    shell("./headway x");
    EXPECT_EQ(shell("./headway clean").exit_code, 0);
    EXPECT_FALSE(fs::exists(root_ / "build"));
}

}  // namespace
}  // namespace headway::tests
