#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "policies/episode.h"
#include "policies/planning/candidate_generator.h"
#include "policies/policy.h"
#include "scenarios/language/read.h"
#include "scenarios/record/run_reader.h"
#include "tests/cli/run_program.h"
#include "tests/paths.h"
#include "tests/scenarios/record/small_run.h"

/// headway deploy, as a person would type it, on four processes of this machine.
namespace headway::tests {
namespace {

using nlohmann::json;
using ::testing::AnyOf;
using ::testing::HasSubstr;
using ::testing::Not;

std::string deployable(const std::string& further = "", const std::string& strategy = "{data: 4}") {
    return R"(
name: tiny
job:
  model: {layers: 2, hidden: 32, heads: 2, ffn: 64, vocab: 256, sequence_length: 16}
  precision: fp32
  global_batch: 32
  micro_batch: 2
  stack: headway-host
  checkpoint: {interval: 0 s}
  data: book.txt
  training: {learning_rate: 3e-3}
cluster:
  base: lab-4
  node: {gpu: paced-core, fabric: host-loopback, network: host-loopback}
strategy: )" +
           strategy + R"(
run: {iterations: 20}
decision_interval: 4
telemetry_period: 100 ms
)" + further;
}

/// A folder with the scenario `s.yaml` and its book.
struct DeployFolder : TestFolder {
    explicit DeployFolder(const std::string& scenario) {
        write("s.yaml", scenario);
        std::filesystem::copy(source_directory() / "scenarios" / "data" / "persuasion.txt", path() / "book.txt");
    }
};

const std::string kSlowRank = R"(
deploy: {pace: 1}
disturbances:
- {name: neighbour, start: 0 s, co_tenant: {gpu: 2, compute_share: 0.7, memory_share: 0.7}}
)";

TEST(Deploy, TrainsOnProcessesOfThisMachineAndSaysSo) {
    const DeployFolder folder(deployable("", "{data: 2, pipeline: 2}"));
    const ProgramResult result =
        folder.headway("deploy s.yaml --out a.run.jsonl --level operations --trace a.json --json");
    ASSERT_EQ(result.exit_code, 0) << result.err;
    EXPECT_THAT(result.err, HasSubstr("iteration 20/20   loss "));
    const json report = json::parse(result.out);
    EXPECT_EQ(report["iterations"], 20);
    EXPECT_EQ(report["world_size"], 4);
    EXPECT_GT(report["tokens_per_s"], 0.0);
    EXPECT_NEAR(report["loss"]["first"].get<double>(), 5.55, 0.1);
    EXPECT_LT(report["loss"]["last"].get<double>(), report["loss"]["first"].get<double>() - 0.5);
    EXPECT_EQ(report["decisions"], 4);
    EXPECT_EQ(report["switches"], 0);

    EventLog log;
    const scenarios::RecordStatus status = scenarios::read_record(folder.path() / "a.run.jsonl", log);
    EXPECT_EQ(status.problem, "");
    ASSERT_EQ(log.iterations.size(), 20u);
    for (const scenarios::IterationEvent& iteration : log.iterations) {
        EXPECT_TRUE(iteration.loss);
        const scenarios::TimeShares& s = iteration.shares;
        EXPECT_EQ(s.compute_ns + s.bubble_ns + s.tensor_ns + s.pipeline_ns + s.data_ns + s.straggling_ns,
                  iteration.duration_ns);
        EXPECT_GT(s.compute_ns, 0);
        EXPECT_GE(s.bubble_ns, 0);
    }
    ASSERT_EQ(log.operation_events.size(), 20u);
    EXPECT_GT(log.operation_events[0].entries.size(), 4u * 8u);
    EXPECT_GT(json::parse(folder.read("a.json"))["traceEvents"].size(), 4u * 8u);
    EXPECT_EQ(folder.headway("export a.run.jsonl --csv tables").exit_code, 0);
    EXPECT_TRUE(folder.has("tables/a.loss.csv"));
    EXPECT_EQ(folder.headway("compare a.run.jsonl a.run.jsonl").exit_code, 0);
    EXPECT_EQ(folder.headway("replay s.yaml").exit_code, 0) << "the same file is simulated too";
}

TEST(Deploy, ThePolicyChangesTheRunningJobAndDecidesTheSameFromItsRecord) {
    const DeployFolder folder(deployable(kSlowRank, "{data: 4, adapt: {drop: false, degrees: false}}"));
    const ProgramResult result = folder.headway(
        "deploy s.yaml --policy greedy --shadow static --out a.run.jsonl --json "
        "--set cluster.node.gpu.peak_single='0.5 GFLOP/s' "
        "--set cluster.node.gpu.memory_bandwidth='0.1 GB/s'");
    ASSERT_EQ(result.exit_code, 0) << result.err;
    const json report = json::parse(result.out);
    EXPECT_GE(report["switches"], 1) << "the slow rank gets less to do";
    EXPECT_EQ(report["shadow"]["policy"], "static");
    EXPECT_GE(report["shadow"]["differs"], 1) << "static would not have";
    EXPECT_THAT(result.err, HasSubstr("micro-batches shared anew"));

    EventLog log;
    ASSERT_EQ(scenarios::read_record(folder.path() / "a.run.jsonl", log).problem, "");
    ASSERT_EQ(log.decisions.size(), 4u);
    const auto catalogue = source_directory() / "scenarios";
    const scenarios::Scenario scenario =
        scenarios::parse_scenario(log.headers.at(0).scenario_yaml, "record", ".", {catalogue});
    policies::ClusterFacts facts{scenario.job, scenario.cluster, log.headers[0].plan, scenario.strategy.adapt,
                                 scenarios::Duration::nanoseconds(log.headers[0].healthy_iteration_ns)};
    const auto fresh = policies::make_policy("greedy");
    fresh->start_episode(facts, scenario.seed);
    policies::CandidateGenerator generator(facts);
    generator.start_episode();
    policies::ObservationBuilder builder;
    builder.start_episode();
    bool moved = false;
    for (const scenarios::DecisionEvent& event : log.decisions) {
        const policies::Observation seen = builder.build(facts, event.plan, policies::measurements_of(event),
                                                         scenarios::Duration::nanoseconds(event.time_ns));
        const auto candidates = generator.propose(seen, fresh->further_plans());
        ASSERT_EQ(candidates.size(), event.candidates.size());
        const policies::Action action = fresh->decide(seen, candidates);
        EXPECT_EQ(action.candidate, static_cast<std::size_t>(event.chosen));
        EXPECT_EQ(candidates[action.candidate].plan, event.chosen_plan.value_or(event.plan));
        moved = moved || event.chosen_plan.has_value();
    }
    EXPECT_TRUE(moved);
}

TEST(Deploy, ALostProcessEndsTheRunAndClosesTheRecord) {
    const DeployFolder folder(deployable("run: {time: 60 s}\ndisturbances: [{start: 300 ms, gpu_loss: {gpu: 3}}]\n"));
    std::string scenario = folder.read("s.yaml");
    scenario.erase(scenario.find("run: {iterations: 20}"), 22);
    folder.write("s.yaml", scenario);
    const ProgramResult result = folder.headway("deploy s.yaml --out a.run.jsonl");
    EXPECT_EQ(result.exit_code, 1) << result.err;
    EXPECT_THAT(result.err, HasSubstr("headway: the run cannot go on"));
    EventLog log;
    const scenarios::RecordStatus status = scenarios::read_record(folder.path() / "a.run.jsonl", log);
    EXPECT_EQ(status.problem, "");
    ASSERT_EQ(log.footers.size(), 1u);
    EXPECT_FALSE(log.footers[0].complete);
    EXPECT_EQ(static_cast<std::size_t>(log.footers[0].decisions), log.decisions.size());
    ASSERT_FALSE(log.logs.empty());
    EXPECT_EQ(log.logs.back().severity, scenarios::LogEvent::Severity::kError);
}

std::vector<double> losses_of(const std::filesystem::path& record) {
    EventLog log;
    EXPECT_EQ(scenarios::read_record(record, log).problem, "");
    std::vector<double> losses;
    for (const scenarios::IterationEvent& iteration : log.iterations) losses.push_back(iteration.loss.value_or(0.0));
    return losses;
}

TEST(Deploy, GoesOnFromACheckpointAsIfItHadNeverStopped) {
    const DeployFolder folder(deployable("", "{data: 2, pipeline: 2}"));
    ASSERT_EQ(folder.headway("deploy s.yaml --iterations 10 --out whole.run.jsonl").exit_code, 0);
    ASSERT_EQ(folder.headway("deploy s.yaml --iterations 6 --checkpoints kept --out a.run.jsonl").exit_code, 0);
    // Under another plan, too: the state does not know how it was laid out.
    const ProgramResult second = folder.headway(
        "deploy s.yaml --iterations 10 --checkpoints kept --resume --out b.run.jsonl --set strategy.data=4 --set "
        "strategy.pipeline=1");
    ASSERT_EQ(second.exit_code, 0) << second.err;
    std::vector<double> parts = losses_of(folder.path() / "a.run.jsonl");
    EXPECT_EQ(parts.size(), 6u);
    for (const double loss : losses_of(folder.path() / "b.run.jsonl")) parts.push_back(loss);
    const std::vector<double> whole = losses_of(folder.path() / "whole.run.jsonl");
    ASSERT_EQ(parts.size(), whole.size());
    for (std::size_t i = 0; i < whole.size(); ++i) EXPECT_NEAR(parts[i] / whole[i], 1.0, 1e-5) << i;
    EventLog log;
    scenarios::read_record(folder.path() / "b.run.jsonl", log);
    EXPECT_EQ(log.iterations.front().index, 6);

    const ProgramResult done = folder.headway("deploy s.yaml --iterations 10 --checkpoints kept --resume");
    EXPECT_EQ(done.exit_code, 0) << done.err;
    EXPECT_THAT(done.err, HasSubstr("checkpoint is of iteration 10: nothing is left to train"));
    const ProgramResult other =
        folder.headway("deploy s.yaml --iterations 10 --checkpoints kept --resume --set job.model.hidden=48");
    EXPECT_EQ(other.exit_code, 2) << other.err;
    EXPECT_THAT(other.err, HasSubstr("kept"));
    const ProgramResult seed = folder.headway("deploy s.yaml --checkpoints kept --resume --set seed=2");
    EXPECT_EQ(seed.exit_code, 2) << seed.err;
    EXPECT_THAT(seed.err, HasSubstr("seed"));
    const ProgramResult nothing = folder.headway("deploy s.yaml --checkpoints empty --resume");
    EXPECT_EQ(nothing.exit_code, 2) << nothing.err;
    EXPECT_THAT(nothing.err, HasSubstr("no checkpoint"));
}

TEST(Deploy, ADamagedCheckpointIsRefusedAndStays) {
    const DeployFolder folder(deployable());
    ASSERT_EQ(folder.headway("deploy s.yaml --iterations 2 --checkpoints kept").exit_code, 0);
    const auto file = folder.path() / "kept" / "step-0000002" / "rank-00000.safetensors";
    ASSERT_TRUE(std::filesystem::exists(file));
    const auto size = std::filesystem::file_size(file);
    {
        std::fstream stream(file, std::ios::in | std::ios::out | std::ios::binary);
        stream.seekp(static_cast<std::streamoff>(size / 2));
        stream.put('\x5a');
        stream.put('\xa5');
    }
    const ProgramResult result = folder.headway("deploy s.yaml --iterations 4 --checkpoints kept --resume");
    EXPECT_EQ(result.exit_code, 2) << result.err;
    EXPECT_THAT(result.err, HasSubstr("rank-00000.safetensors"));
    EXPECT_EQ(std::filesystem::file_size(file), size);
}

TEST(Deploy, AFolderThatCannotTakeItsCheckpointsIsRefusedBeforeItTrains) {
    const DeployFolder folder(deployable());
    ASSERT_EQ(folder.headway("deploy s.yaml --iterations 2 --checkpoints kept").exit_code, 0);
    const auto expect_refused = [&](const std::string& options, const std::string& why) {
        const ProgramResult result = folder.headway("deploy s.yaml --iterations 4 " + options);
        EXPECT_EQ(result.exit_code, 2) << options << result.err;
        EXPECT_THAT(result.err, HasSubstr(why)) << options;
        EXPECT_THAT(result.err, Not(HasSubstr("healthy iteration"))) << options;
    };
    expect_refused("--checkpoints kept", "step-0000002 of an earlier run");
    EXPECT_TRUE(std::filesystem::exists(folder.path() / "kept" / "step-0000002" / "manifest.json"));
    expect_refused("--checkpoints book.txt", "is no folder");
    expect_refused("--checkpoints book.txt/kept", "cannot be written");
    expect_refused("--checkpoints ''", "the name of a folder is needed");
    expect_refused("--checkpoints none --resume", "no checkpoint in");
    EXPECT_FALSE(std::filesystem::exists(folder.path() / "none"));
}

TEST(Deploy, ATraceNeverReplacesAnotherFileOfTheRun) {
    const DeployFolder folder(deployable());
    std::filesystem::create_symlink("book.txt", folder.path() / "link.txt");
    for (const std::string trace : {"book.txt", "link.txt", "s.yaml", "./a.run.jsonl"}) {
        const auto size = std::filesystem::file_size(folder.path() / "book.txt");
        const ProgramResult result =
            folder.headway("deploy s.yaml --iterations 1 --out a.run.jsonl --force --trace " + trace);
        EXPECT_EQ(result.exit_code, 2) << trace << result.err;
        EXPECT_THAT(result.err, HasSubstr("--trace " + trace)) << trace;
        EXPECT_EQ(std::filesystem::file_size(folder.path() / "book.txt"), size);
    }
}

TEST(Deploy, SigtermSavesAndExits) {
    const DeployFolder folder(deployable("deploy: {checkpoints: kept}\n"));
    const ProgramResult result = folder.headway("deploy s.yaml --iterations 100000 --out a.run.jsonl",
                                                "& child=$!; sleep 2; kill -TERM $child; wait $child");
    EXPECT_EQ(result.exit_code, 130) << result.err;
    EventLog log;
    EXPECT_EQ(scenarios::read_record(folder.path() / "a.run.jsonl", log).problem, "");
    ASSERT_EQ(log.footers.size(), 1u);
    EXPECT_FALSE(log.footers[0].complete);
    ASSERT_FALSE(log.iterations.empty());
    const std::int64_t next = log.iterations.back().index + 1;
    const ProgramResult resumed =
        folder.headway("deploy s.yaml --iterations " + std::to_string(next + 2) + " --resume --out b.run.jsonl");
    ASSERT_EQ(resumed.exit_code, 0) << resumed.err;
    EXPECT_EQ(losses_of(folder.path() / "b.run.jsonl").size(), 2u);
}

TEST(Deploy, SigtermWhileItStartsIsHeardToo) {
    const DeployFolder folder(deployable());
    // As soon as the first rank has been started.
    const ProgramResult result =
        folder.headway("deploy s.yaml --iterations 100000",
                       "& child=$!; tries=0; until [ -n \"$(cat /proc/$child/task/$child/children)\" ] || "
                       "[ $tries = 2000 ]; do tries=$((tries+1)); done; kill -TERM $child; wait $child");
    EXPECT_EQ(result.exit_code, 130) << result.err;
    EXPECT_THAT(result.err, HasSubstr("interrupted"));
}

TEST(Deploy, OneProcessNeedsNoOthers) {
    const DeployFolder folder(deployable("", "{}"));
    const ProgramResult result =
        folder.headway("deploy s.yaml --set cluster.node.gpus=1 --set cluster.node.nics=1 --iterations 3 --json");
    ASSERT_EQ(result.exit_code, 0) << result.err;
    EXPECT_EQ(json::parse(result.out)["world_size"], 1);
}

TEST(Deploy, WarnsOfDisturbancesThatWillNotBeFelt) {
    const DeployFolder folder(
        deployable("disturbances: [{name: hot, start: 0 s, airflow: {gpu: 1, resistance_factor: 2}}]\n", "{data: 4}"));
    const ProgramResult result = folder.headway("deploy s.yaml --iterations 1");
    EXPECT_EQ(result.exit_code, 0);
    EXPECT_THAT(result.err, HasSubstr("disturbance 'hot' (airflow) will not be felt"));
}

/// Each with one clear message, before any process is started.
TEST(Deploy, RefusesWhatCannotBeTrained) {
    const DeployFolder folder(deployable());
    const auto refused = [&](const std::string& arguments, const std::string& message) {
        const ProgramResult result = folder.headway("deploy s.yaml " + arguments);
        EXPECT_EQ(result.exit_code, 2) << arguments << "\n" << result.err;
        EXPECT_THAT(result.err, HasSubstr(message)) << arguments;
        EXPECT_THAT(result.out, ::testing::IsEmpty());
    };
    refused("--set job.precision=bf16", "job.precision: host processors compute in fp32");
    refused("--set strategy.data=2 --set strategy.context=2", "strategy.context: context parallelism is not built yet");
    refused("--set job.training.beta2=1", "job.training.beta2: 1 is not allowed (0 to below 1)");
    refused("--set job.model.head_dim=15 --set job.model.positions=rotary", "need an even head_dim, not 15");
    refused("--data nowhere.txt", "nowhere.txt");
    folder.write("empty.txt", "");
    refused("--data empty.txt", "empty.txt");
    folder.write("short.txt", "only this");
    refused("--data short.txt", "short.txt");
    refused("--resume", "--resume: from which folder?");
    refused("--policy nobody", "--policy nobody");
    refused("--set cluster.node.gpu.memory=\"1 GiB\"", "does not fit in memory");
    refused("--rendezvous localhost:1", "--rendezvous: started alone");
    refused("--set strategy.data=3", "strategy");
    folder.write("nodata.yaml", [&] {
        std::string text = folder.read("s.yaml");
        text.erase(text.find("  data: book.txt\n"), 17);
        return text;
    }());
    const ProgramResult nodata = folder.headway("deploy nodata.yaml");
    EXPECT_EQ(nodata.exit_code, 2);
    EXPECT_THAT(nodata.err, HasSubstr("job.data: missing"));
    folder.write("there.run.jsonl", "mine");
    refused("--out there.run.jsonl --force", "there.run.jsonl");
}

TEST(Deploy, ALaunchThatDoesNotMatchTheClusterSaysSo) {
    const DeployFolder folder(deployable());
    ::setenv("OMPI_COMM_WORLD_RANK", "0", 1);
    ::setenv("OMPI_COMM_WORLD_SIZE", "1", 1);
    const ProgramResult result = folder.headway("deploy s.yaml");
    ::unsetenv("OMPI_COMM_WORLD_RANK");
    ::unsetenv("OMPI_COMM_WORLD_SIZE");
    EXPECT_EQ(result.exit_code, 2) << result.err;
    EXPECT_THAT(result.err, HasSubstr("4"));
    EXPECT_THAT(result.err, HasSubstr("1 "));
}

}  // namespace
}  // namespace headway::tests
