#include "scenarios/record/decision_lines.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <random>
#include <sstream>

#include "scenarios/record/run_reader.h"
#include "scenarios/record/run_writer.h"
#include "tests/scenarios/record/small_run.h"

namespace headway::tests {
namespace {

using namespace scenarios;
using ::testing::HasSubstr;
using ::testing::Not;

std::vector<std::string> decision_lines_of(const std::filesystem::path& file) {
    std::vector<std::string> lines;
    std::istringstream stream(file_text(file));
    for (std::string line; std::getline(stream, line);) {
        if (line.find(R"("record":"decision")") != std::string::npos) lines.push_back(line);
    }
    return lines;
}

/// Two switches and what lies between them: what did not change is left out of the lines and is there again when read.
TEST(DecisionLines, LeavesOutWhatDidNotChangeBetweenDecisions) {
    const ScratchFolder folder("record-decisions");
    const RunHeader header = small_header();
    Plan other = header.plan;
    other.micro_batches_of_replica = {6, 10};
    Plan apart = header.plan;
    apart.layers_of_cell = {4, 4, 3, 5};
    std::vector<DecisionEvent> told;
    for (int i = 0; i < 5; ++i) {
        DecisionEvent event;
        event.time_ns = i * kSecond;
        event.plan = header.plan;
        event.measured.gpu = {0, 1, 2, 3};
        event.measured.compute_ns = {100 + i, 200, 300, 400};
        event.measured.exposed_ns = event.measured.idle_ns = {1, 2, 3, 4};
        event.measured.temperature_c = event.measured.sm_clock_mhz = event.measured.power_w = {50.5, 60, 70, 80};
        event.measured.throttle_reasons = {0, 0, 4, 0};
        event.measured.memory_bytes = {1, 2, 3, 4};
        event.candidates = {{"keep", "keep"}, {"share-micro-batches", "GPU 2 is slow", 5, 6, 7, 8, 9}};
        told.push_back(event);
    }
    told[0].iteration_ns = 12;
    told[0].iterations_ns = {11, 11, 15, 11};
    told[0].candidates[1].way_back_ns = 77;
    told[1].chosen = 1;
    told[1].chosen_plan = other;
    told[2].plan = other;
    told[2].by = DecisionEvent::By::kRollback;
    told[2].chosen = 1;
    told[2].chosen_plan = header.plan;
    told[3].measured = {};  // nothing ran
    told[4].plan = apart;   // a recovery came between
    told[4].shadow = ShadowChoice{"greedy", 1, -25};
    {
        RecordWriter writer(folder / "a.run.jsonl");
        writer.begin(header);
        for (const DecisionEvent& event : told) writer.decision(event);
        PauseEvent change{PauseEvent::Reason::kSwitch, 9 * kSecond, kSecond, 0, -1, "switched"};
        change.plan = other;
        writer.pause(change);
        writer.end({});
    }
    EventLog read;
    EXPECT_EQ(read_record(folder / "a.run.jsonl", read).problem, "");
    EXPECT_EQ(read.decisions, told);
    ASSERT_EQ(read.pauses.size(), 1u);
    EXPECT_EQ(read.pauses[0].plan, other);
    const std::vector<std::string> lines = decision_lines_of(folder / "a.run.jsonl");
    ASSERT_EQ(lines.size(), 5u);
    EXPECT_THAT(lines[0], HasSubstr("throttle_reasons"));
    EXPECT_THAT(lines[0], Not(HasSubstr("gpu_of_rank"))) << "the topology holds that plan";
    EXPECT_THAT(lines[1], HasSubstr(R"("measured":{"compute_ns":[101,200,300,400]})"));
    EXPECT_THAT(lines[1], HasSubstr(R"("chosen_plan":{)"));
    EXPECT_THAT(lines[2], Not(HasSubstr(R"("plan":{)"))) << "the decision before chose it";
    EXPECT_THAT(lines[4], HasSubstr(R"("plan":{)"));
}

/// 1,024 GPUs whose every sensor moves at every period, the worst there is, for as long as 10,000 iterations take, with
/// a decision every ten iterations that is told new measurements of every rank and switches now and then.
TEST(DecisionLines, StaysUnder200MegabytesForTenThousandIterationsOf1024Gpus) {
    const ScratchFolder folder("record-size");
    constexpr int kGpus = 1024;
    constexpr int kIterations = 10'000;
    RunHeader header = small_header();
    header.node_groups = {{128, 8, "A"}};
    header.plan.layout = {};
    header.plan.layout.tensor = 8;
    header.plan.layout.pipeline = 16;
    header.plan.layout.data = 8;
    header.plan.layers_of_cell = same_layers(std::vector<int>(16, 6), 8);
    header.plan.micro_batches_of_replica.assign(8, 32);
    header.plan.gpu_of_rank.clear();
    for (int gpu = 0; gpu < kGpus; ++gpu) header.plan.gpu_of_rank.push_back(gpu);
    std::minstd_rand random(1);
    DecisionEvent decision;
    decision.plan = header.plan;
    MeasuredColumns& measured = decision.measured;
    measured.gpu = header.plan.gpu_of_rank;
    measured.throttle_reasons.assign(kGpus, 0);
    measured.memory_bytes.assign(kGpus, 61'234'567'890);
    for (int group = 0; group < 128 + 15 * 8 + 16; ++group) {
        measured.group_kind.push_back(group < 128 ? 0 : group < 248 ? 1 : 2);
        measured.group_index.push_back(group);
    }
    for (int i = 0; i < 24; ++i) {
        decision.candidates.push_back(
            {"split-and-share", "stage 3 of replica 5 computes 1.27 times as long as its peers", 10'123'456'789 + i,
             1'234'567'890, 123'456'789'012, 98'765'432'100, 71'234'567'890});
    }
    const auto around = [&](double middle) {
        return static_cast<std::int64_t>(middle * (1.0 + static_cast<double>(random() % 1000) / 5000.0));
    };
    std::int64_t bytes = 0;
    {
        RecordWriter writer(folder / "a.run.jsonl");
        writer.begin(header);
        for (int i = 0; i < kIterations; ++i) {
            const std::int64_t time_ns = i * 10 * kSecond;
            for (int gpu = 0; gpu < kGpus; ++gpu) {
                const double x = static_cast<double>(random() % 1000) / 1000.0;
                writer.telemetry({time_ns, gpu, 40 + 50 * x, 1000 + 410 * x, 100 + 300 * x, x,
                                  static_cast<std::uint32_t>(random() % 3)});
            }
            for (int link = 0; link < 160; ++link) {
                writer.link_load({time_ns, "node " + std::to_string(link) + " network",
                                  static_cast<double>(random() % 1000) / 1000.0});
            }
            IterationEvent event = small_iteration(i, i * 10, 10);
            event.disturbance_cost_ns = {123456789, 987654321};
            writer.iteration(event);
            if (i % 10 != 9) continue;
            decision.time_ns = time_ns;
            measured.compute_ns.clear(), measured.exposed_ns.clear(), measured.idle_ns.clear();
            measured.temperature_c.clear(), measured.sm_clock_mhz.clear(), measured.power_w.clear();
            measured.group_bytes_per_s.clear();
            for (int gpu = 0; gpu < kGpus; ++gpu) {
                measured.compute_ns.push_back(around(7e9));
                measured.exposed_ns.push_back(around(1e9));
                measured.idle_ns.push_back(around(2e9));
                measured.temperature_c.push_back(static_cast<double>(around(600)) / 10.0);
                measured.sm_clock_mhz.push_back(static_cast<double>(around(1300)));
                measured.power_w.push_back(static_cast<double>(around(350)));
            }
            for (std::size_t group = 0; group < measured.group_kind.size(); ++group) {
                measured.group_bytes_per_s.push_back(1e6 * static_cast<double>(around(23456)));
            }
            decision.chosen = i % 200 == 199 ? 1 : 0;
            decision.chosen_plan.reset();
            if (decision.chosen != 0) {
                std::swap(decision.plan.gpu_of_rank[0], decision.plan.gpu_of_rank[1]);
                decision.chosen_plan = decision.plan;
                decision.chosen_plan->micro_batches_of_replica = {31, 33, 32, 32, 32, 32, 32, 32};
            }
            writer.decision(decision);
        }
        bytes = writer.bytes();
    }
    std::printf("%.1f MB\n", static_cast<double>(bytes) / 1e6);
    EXPECT_GT(bytes, 10'000'000);
    EXPECT_LT(bytes, 180'000'000);
}

}  // namespace
}  // namespace headway::tests
