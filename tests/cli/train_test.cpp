#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "scenarios/record/run_reader.h"
#include "tests/cli/run_program.h"
#include "tests/paths.h"

namespace headway::tests {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

const char* const kTinyCurriculum = R"(name: tiny
count: 2
jobs: [{model: gpt3-1.3b, stack: megatron-lm-2022, global_batch: [64]}]
clusters: [{cluster: selene, nodes: [2]}]
layout: {compared: 2}
families:
  - name: slow GPU
    causes: [{cause: speed_factor, severity: {min: 0.4, max: 0.6}, start: {min: 0.05, max: 0.1}}]
  - name: bad worker
    causes: [{cause: speed_factor, on: worker, severity: {min: 0.4, max: 0.6}, start: {min: 0.05, max: 0.1}}]
run: {shortest: 8 min, mean: 8 min, longest: 8 min}
stages:
  - {name: first, until: 0.5, families: [slow GPU]}
  - {name: second, until: 1}
)";

struct Asked {
    int seed = 3;
    int updates = 6;
    std::string teacher = "none";
};

std::string train(const std::string& out, const std::string& further = "", const Asked& asked = {}) {
    return "train tiny.yaml --out " + out + " --groups 2 --episodes 2 --validate-every 2 --seed " +
           std::to_string(asked.seed) + " --rounds 2 --updates " + std::to_string(asked.updates - 2) + " --teacher " +
           asked.teacher + " " + further;
}

/// Learning curves of a record, by its reader.
class Curves final : public scenarios::RunSink {
  public:
    void begin_learning(const scenarios::LearningHeader& read) override { header = read; }
    void training_update(const scenarios::TrainingUpdateEvent& event) override { updates.push_back(event); }
    void evaluation(const scenarios::EvaluationEvent& event) override { evaluations.push_back(event); }
    void end(const scenarios::RunFooter& footer) override { complete = footer.complete; }

    scenarios::LearningHeader header;
    std::vector<scenarios::TrainingUpdateEvent> updates;
    std::vector<scenarios::EvaluationEvent> evaluations;
    bool complete = false;
};

TEST(Train, WritesAPolicyThatCanBeEvaluated) {
    const TestFolder folder;
    folder.write("tiny.yaml", kTinyCurriculum);
    const ProgramResult trained = folder.headway(train("my.policy", "--json"));
    ASSERT_EQ(trained.exit_code, 0) << trained.err;
    const json report = json::parse(trained.out);
    EXPECT_EQ(report.at("policy"), "my.policy");
    EXPECT_EQ(report.at("seeds").at(0).at("updates"), 6);
    EXPECT_FALSE(folder.has("my.policy.checkpoint")) << "nothing is left to go on with";
    const ProgramResult judged = folder.headway("evaluate my.policy --on tiny.yaml --json");
    ASSERT_EQ(judged.exit_code, 0) << judged.err;
    EXPECT_EQ(json::parse(judged.out).at("policies").at(1).at("policy"), "my.policy");
}

TEST(Train, GivesTheSamePolicyHoweverManyWorkersCollect) {
    const TestFolder folder;
    folder.write("tiny.yaml", kTinyCurriculum);
    ASSERT_EQ(folder.headway(train("one.policy", "--workers 1")).exit_code, 0);
    ASSERT_EQ(folder.headway(train("three.policy", "--workers 3")).exit_code, 0);
    EXPECT_EQ(folder.read("one.policy"), folder.read("three.policy"));
    ASSERT_EQ(folder.headway(train("other.policy", "", {.seed = 4})).exit_code, 0);
    EXPECT_NE(folder.read("one.policy"), folder.read("other.policy"));
}

TEST(Train, GoesOnBitForBitAfterItWasKilled) {
    const TestFolder folder;
    folder.write("tiny.yaml", kTinyCurriculum);
    const std::string further = "--record ";
    ASSERT_EQ(folder.headway(train("whole.policy", further + "whole.run.jsonl", {.updates = 60})).exit_code, 0);
    // Killed as soon as the first checkpoint is there, in the middle of whatever it does then.
    folder.headway(train("killed.policy", further + "killed.run.jsonl", {.updates = 60}) +
                   " & while [ ! -s killed.policy.checkpoint ]; do sleep 0.02; done; sleep 0.4; kill -9 $!; wait");
    ASSERT_TRUE(folder.has("killed.policy.checkpoint")) << "it had ended before it was killed";
    const ProgramResult resumed =
        folder.headway(train("killed.policy", further + "killed.run.jsonl --resume", {.updates = 60}));
    ASSERT_EQ(resumed.exit_code, 0) << resumed.err;
    EXPECT_EQ(folder.read("killed.policy"), folder.read("whole.policy"));
    Curves whole, killed;
    scenarios::read_record(folder.path() / "whole.run.jsonl", whole);
    scenarios::read_record(folder.path() / "killed.run.jsonl", killed);
    EXPECT_EQ(whole.updates.size(), 60u);
    EXPECT_TRUE(whole.updates == killed.updates);
    EXPECT_TRUE(whole.evaluations == killed.evaluations);
}

TEST(Train, RecordsLearningCurvesThatTheReaderKnows) {
    const TestFolder folder;
    folder.write("tiny.yaml", kTinyCurriculum);
    ASSERT_EQ(folder.headway(train("my.policy", "--record curves.run.jsonl")).exit_code, 0);
    Curves curves;
    const scenarios::RecordStatus status = scenarios::read_record(folder.path() / "curves.run.jsonl", curves);
    EXPECT_EQ(status.state, scenarios::RecordStatus::State::kComplete) << status.problem;
    EXPECT_TRUE(curves.complete);
    EXPECT_EQ(curves.header.name, "tiny");
    EXPECT_EQ(curves.header.planned, 6);
    ASSERT_EQ(curves.updates.size(), 6u);
    EXPECT_EQ(curves.updates[0].stage, "first");
    EXPECT_EQ(curves.updates[0].method, "comparison");
    EXPECT_EQ(curves.updates[5].method, "ppo");
    EXPECT_EQ(curves.updates[5].stage, "second");
    EXPECT_EQ(curves.updates[2].episodes, 4);
    ASSERT_EQ(curves.evaluations.size(), 2u + 3u) << "static and the rule before, the learner after every other update";
    EXPECT_EQ(curves.evaluations[0].policy, "static");
    EXPECT_EQ(curves.evaluations[4].update, 6);
    for (const char* command : {"compare curves.run.jsonl curves.run.jsonl", "export curves.run.jsonl --csv tables"}) {
        const ProgramResult refused = folder.headway(command);
        EXPECT_EQ(refused.exit_code, 2) << command;
        EXPECT_THAT(refused.err, HasSubstr("curves.run.jsonl: holds the curves of a training")) << command;
    }
}

TEST(Train, StopsInTimeAndKeepsWhatGoingOnNeeds) {
    const TestFolder folder;
    folder.write("tiny.yaml", kTinyCurriculum);
    const ProgramResult stopped = folder.headway(train("my.policy", "--minutes 0 --json"));
    ASSERT_EQ(stopped.exit_code, 0) << stopped.err;
    EXPECT_EQ(json::parse(stopped.out).at("seeds").at(0).at("complete"), false);
    EXPECT_TRUE(folder.has("my.policy.checkpoint"));
    EXPECT_FALSE(folder.has("my.policy")) << "nothing was validated yet";
    EXPECT_THAT(stopped.err, HasSubstr("before a policy was validated: --resume"));
    ASSERT_EQ(folder.headway(train("my.policy", "--resume")).exit_code, 0);
    EXPECT_TRUE(folder.has("my.policy"));
}

TEST(Train, SaysWhatItCannotGoOnWith) {
    const TestFolder folder;
    folder.write("tiny.yaml", kTinyCurriculum);
    const auto error_of = [&](const std::string& arguments) {
        const ProgramResult result = folder.headway(arguments);
        EXPECT_EQ(result.exit_code, 2) << arguments << ": " << result.err;
        EXPECT_THAT(result.out, IsEmpty());
        return result.err;
    };
    EXPECT_THAT(error_of(train("my.policy", "--resume")), HasSubstr("my.policy.checkpoint"));
    EXPECT_THAT(error_of(train("my.txt")), HasSubstr("FILE.policy"));
    EXPECT_THAT(error_of(train("my.policy", "", {.teacher = "nobody"})), HasSubstr("nobody"));
    ASSERT_EQ(folder.headway(train("my.policy", "--minutes 0")).exit_code, 0);
    EXPECT_THAT(error_of(train("my.policy", "--resume", {.updates = 7})), HasSubstr("other settings"));
    folder.write("my.policy.checkpoint", folder.read("my.policy.checkpoint").substr(0, 3000));
    EXPECT_THAT(error_of(train("my.policy", "--resume")), HasSubstr("my.policy.checkpoint"));
    folder.write("my.policy", "mine");
    EXPECT_THAT(error_of(train("my.policy")), HasSubstr("exists (--force overwrites it)"));
}

TEST(Train, GoesOnWithTheSeedThatWasInterrupted) {
    const TestFolder folder;
    folder.write("tiny.yaml", kTinyCurriculum);
    const Asked asked{.updates = 40};
    ASSERT_EQ(folder.headway(train("whole.policy", "--seeds 2", asked)).exit_code, 0);
    EXPECT_FALSE(folder.has("whole.policy.seed3.checkpoint") || folder.has("whole.policy.seed4.checkpoint"));
    folder.headway(train("killed.policy", "--seeds 2", asked) +
                   " & while [ ! -s killed.policy.seed4.checkpoint ]; do sleep 0.02; done; kill -9 $!; wait");
    ASSERT_TRUE(folder.has("killed.policy.seed4.checkpoint")) << "it had ended before it was killed";
    const ProgramResult resumed = folder.headway(train("killed.policy", "--seeds 2 --resume", asked));
    ASSERT_EQ(resumed.exit_code, 0) << resumed.err;
    for (const char* file : {".policy", ".policy.seed3", ".policy.seed4"})
        EXPECT_EQ(folder.read(std::string("killed") + file), folder.read(std::string("whole") + file));
    EXPECT_FALSE(folder.has("killed.policy.seed4.checkpoint"));
}

TEST(Train, OverwritesNothingThatItDidNotWriteItself) {
    const TestFolder folder;
    folder.write("tiny.yaml", kTinyCurriculum);
    const auto refused = [&](const std::string& arguments) {
        const ProgramResult result = folder.headway(arguments);
        EXPECT_EQ(result.exit_code, 2) << arguments << ": " << result.err;
        return result.err;
    };
    EXPECT_THAT(refused(train("my.policy", "--record tiny.yaml --force")), HasSubstr("is no run record"));
    EXPECT_EQ(folder.read("tiny.yaml"), kTinyCurriculum);
    EXPECT_THAT(refused(train("my.policy", "--record my.policy")), HasSubstr("the file of --out too"));
    EXPECT_THAT(refused(train("my.policy", "--minutes nan")), HasSubstr("nan is not a number from 0 to 1000000"));
    ASSERT_EQ(folder.headway(train("my.policy", "--minutes 0")).exit_code, 0);
    EXPECT_THAT(refused(train("my.policy")), HasSubstr("--resume goes on with it"));
    EXPECT_EQ(folder.headway(train("my.policy", "--force")).exit_code, 0);
}

/// Two processes as mpirun would start them; shell text.
std::string two_processes(const std::string& first, const std::string& second) {
    const std::string program = "'" + headway_program().string() + "' ";
    return "--version; OMPI_COMM_WORLD_RANK=1 OMPI_COMM_WORLD_SIZE=2 " + program + second +
           " >second.out 2>second.err </dev/null & OMPI_COMM_WORLD_RANK=0 OMPI_COMM_WORLD_SIZE=2 " + program + first +
           " >first.out 2>first.err </dev/null; first=$?; wait $!; echo $first $? >codes; true";
}

/// A port that is most likely free: tests of one machine run one after another or in processes of different numbers.
std::string meeting(int offset) {
    return "--rendezvous 127.0.0.1:" + std::to_string(20'000 + (::getpid() * 4 + offset) % 10'000);
}

TEST(Train, LearnsInSeveralProcessesTogether) {
    const TestFolder folder;
    folder.write("tiny.yaml", kTinyCurriculum);
    for (const int attempt : {0, 1}) {
        const std::string command =
            train("both" + std::to_string(attempt) + ".policy", "--workers 1 " + meeting(attempt));
        folder.headway(two_processes(command, command));
        ASSERT_EQ(folder.read("codes"), "0 0\n") << folder.read("first.err") << folder.read("second.err");
    }
    EXPECT_EQ(folder.read("both0.policy"), folder.read("both1.policy"));
    EXPECT_THAT(folder.read("second.out"), IsEmpty()) << "one process speaks";
    EXPECT_THAT(folder.read("first.out"), HasSubstr("6 of 6 updates"));
}

TEST(Train, EndsInEveryProcessWhenOneDoes) {
    const TestFolder folder;
    folder.write("tiny.yaml", kTinyCurriculum);
    const std::string command = train("both.policy", "--workers 1 " + meeting(2), {.updates = 1000});
    // The first process is killed once a checkpoint is there.
    folder.headway("--version; OMPI_COMM_WORLD_RANK=1 OMPI_COMM_WORLD_SIZE=2 '" + headway_program().string() + "' " +
                   command +
                   " >second.out 2>second.err </dev/null & second=$!; OMPI_COMM_WORLD_RANK=0 "
                   "OMPI_COMM_WORLD_SIZE=2 '" +
                   headway_program().string() + "' " + command +
                   " >first.out 2>first.err </dev/null & first=$!; while [ ! -s both.policy.checkpoint ]; do sleep "
                   "0.02; done; kill -9 $first; wait $second; echo $? >codes; wait $first; true");
    EXPECT_EQ(folder.read("codes"), "1\n");
    EXPECT_THAT(folder.read("second.err"), HasSubstr("headway: rank 1 of 2: all-reduce of group 'training' (member 1 of 2): rank 0 was lost"));
}

TEST(Train, AsksForAPlaceToMeet) {
    const TestFolder folder;
    folder.write("tiny.yaml", kTinyCurriculum);
    const ProgramResult several = folder.headway("--version; SLURM_PROCID=1 SLURM_NTASKS=4 '" +
                                                 headway_program().string() + "' " + train("my.policy"));
    EXPECT_EQ(several.exit_code, 2);
    EXPECT_THAT(several.err, HasSubstr("process 1 of 4 (SLURM_PROCID): --rendezvous HOST:PORT is needed"));
    const ProgramResult alone = folder.headway(train("my.policy", meeting(3)));
    EXPECT_EQ(alone.exit_code, 2);
    EXPECT_THAT(alone.err, HasSubstr("--rendezvous: started alone"));
}

}  // namespace
}  // namespace headway::tests
