#pragma once

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "scenarios/record/run_events.h"

/// A run small enough to be summed up by hand: four GPUs, two replicas of two stages, an airflow fault and a lost node.
///
///     time   0 10  22 23  35 45      100 110 121 131 s
///            |0 | 1 |C| 2 | 3 | lost  | 2 | 3 | 4 |
namespace headway::tests {

inline constexpr std::int64_t kSecond = 1'000'000'000;

inline scenarios::RunHeader small_header() {
    scenarios::RunHeader header;
    header.scenario = "small";
    header.scenario_yaml = "name: small\ndescription: \"four GPUs, 25 °C\"\n";
    header.policy = "static";
    header.seed = 7;
    header.planned_iterations = 5;
    header.telemetry_period_ns = 10 * kSecond;
    header.tokens_per_iteration = 1000;
    header.healthy_iteration_ns = 10 * kSecond;
    header.model_flops = 3e15;
    header.hardware_flops = 4e15;
    header.peak_flops_per_second = 1e15;
    header.node_groups = {{1, 2, "A"}, {1, 2, "B"}};
    header.nodes_per_rack = 1;
    header.plan.layout.pipeline = 2;
    header.plan.layout.data = 2;
    header.plan.gpu_of_rank = {0, 1, 2, 3};
    header.plan.layers_of_cell = scenarios::same_layers({4, 4}, header.plan.layout.data);
    header.plan.micro_batches_of_replica = {8, 8};
    header.disturbances = {{"GPU 1 loses airflow", "airflow", 5 * kSecond, 60 * kSecond},
                           {"node 1 lost", "node_loss", 44 * kSecond, -1}};
    return header;
}

/// Healthy shares of 10 s: 6 compute, 2 bubble, 1 tensor, 0.5 pipeline, 0.5 data; the rest is straggling, caused by
/// airflow.
inline scenarios::IterationEvent small_iteration(std::int64_t index, std::int64_t start_s, std::int64_t duration_s,
                                                 bool repeats = false) {
    scenarios::IterationEvent event;
    event.index = index;
    event.start_ns = start_s * kSecond;
    event.duration_ns = duration_s * kSecond;
    event.repeats = repeats;
    if (repeats) {
        event.shares.recovery_ns = event.duration_ns;
    } else {
        event.shares = {6 * kSecond, 2 * kSecond, kSecond, kSecond / 2, kSecond / 2, (duration_s - 10) * kSecond, 0};
    }
    event.disturbance_cost_ns = {(duration_s - 10) * kSecond, 0};
    return event;
}

inline void play_small_run(scenarios::RunSink& sink, bool ended = true) {
    using scenarios::PauseEvent;
    sink.begin(small_header());
    for (int gpu = 0; gpu < 4; ++gpu) sink.telemetry({0, gpu, 40.0, 1410.0, 300.0, 1.0, 0});
    sink.link_load({0, "rack 0 uplink", 0.25});
    sink.link_load({0, "rack 1 uplink", 0.5});
    sink.iteration(small_iteration(0, 0, 10));
    sink.operations(0, 0,
                    {{0, 0, 0, 0, 0, 2 * kSecond},
                     {0, 4, 0, 0, 2 * kSecond, 3 * kSecond},
                     {1, 5, 0, 0, 2 * kSecond, 3 * kSecond},
                     {1, 1, 0, 0, 3 * kSecond, 7 * kSecond},
                     {1, 8, 0, 0, 7 * kSecond, 8 * kSecond}});
    sink.disturbance({5 * kSecond, 0, true});
    sink.telemetry({10 * kSecond, 1, 83.5, 1200.0, 250.0, 0.85, 32});
    sink.telemetry({10 * kSecond, 2, 40.1, 1410.0, 301.0, 1.0, 0});
    sink.iteration(small_iteration(1, 10, 12));
    scenarios::DecisionEvent keep;
    keep.time_ns = 22 * kSecond;
    keep.iteration = 2;
    keep.iteration_ns = 11 * kSecond;
    keep.iterations_ns = {10 * kSecond, 12 * kSecond};
    keep.plan = small_header().plan;
    keep.candidates = {{"keep", "keep the plan", 11 * kSecond, 0, 0, 0, 9'000'000'000}};
    keep.shadow = scenarios::ShadowChoice{"greedy", 0, 0};
    sink.decision(keep);
    sink.pause({PauseEvent::Reason::kCheckpoint, 22 * kSecond, kSecond, 0, -1, "checkpoint of iteration 2"});
    sink.iteration(small_iteration(2, 23, 12));
    sink.iteration(small_iteration(3, 35, 10));
    sink.disturbance({44 * kSecond, 1, true});
    scenarios::DecisionEvent wait;
    wait.time_ns = 50 * kSecond;
    wait.iteration = 4;
    wait.lost_gpus = {2, 3};
    wait.noticed_ns = 46 * kSecond;
    wait.unavailable_gpus = {2, 3};
    wait.plan = small_header().plan;
    wait.measured = {{0, 1, 2, 3},
                     {1, 2, 3, 4},
                     {0, 0, 0, 0},
                     {5, 6, 7, 8},
                     {40.5, 41, 42, 43},
                     {1410, 1410, 1410, 1410},
                     {300.25, 1, 2, 3},
                     {0, 32, 0, 0},
                     {1, 2, 3, 4},
                     {2},
                     {1},
                     {2.5e10}};
    wait.candidates = {{"wait-for-replacement", "wait for the repair"}, {"keep", "\"quoted\"\n\tand\\odd"}};
    sink.decision(wait);
    sink.pause({PauseEvent::Reason::kLoss, 45 * kSecond, 55 * kSecond, 2, 1,
                "node 1 lost; waited 40 s for its repair, reloaded the checkpoint of iteration 2"});
    sink.log({scenarios::LogEvent::Severity::kWarning, 100 * kSecond, "node 1 is back"});
    sink.iteration(small_iteration(2, 100, 10, true));
    sink.iteration(small_iteration(3, 110, 11, true));
    sink.disturbance({65 * kSecond, 0, false});
    sink.iteration(small_iteration(4, 121, 10));
    if (!ended) return;
    scenarios::RunFooter footer;
    footer.wall_ns = 131 * kSecond;
    footer.decisions = 2;
    footer.gpus = {{0, 1.0, 1.0, 41.0}, {1, 0.9, 0.75, 84.0}, {2, 1.0, 1.0, 40.0}, {3, 0.99, 0.5, 50.5}};
    sink.end(footer);
}

/// Folder for one test's files, empty at its start and removed at its end.
class ScratchFolder {
  public:
    explicit ScratchFolder(const std::string& name)
        : path_(std::filesystem::temp_directory_path() / ("headway-" + name + "-" + std::to_string(::getpid()))) {
        std::filesystem::remove_all(path_);
        std::filesystem::create_directories(path_);
    }
    ScratchFolder(const ScratchFolder&) = delete;
    ScratchFolder& operator=(const ScratchFolder&) = delete;
    ~ScratchFolder() { std::filesystem::remove_all(path_); }
    std::filesystem::path operator/(const std::string& name) const { return path_ / name; }
    const std::filesystem::path& path() const { return path_; }

  private:
    std::filesystem::path path_;
};

inline std::string file_text(const std::filesystem::path& file) {
    std::ifstream stream(file, std::ios::binary);
    return {std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>()};
}

inline void write_file(const std::filesystem::path& file, const std::string& text) {
    std::filesystem::remove(file);  // ext4 waits for the disk when a file is cut to nothing and written again
    std::ofstream(file, std::ios::binary) << text;
}

/// Keeps every event, so that two runs can be compared.
class EventLog final : public scenarios::RunSink {
  public:
    struct Operations {
        std::int64_t iteration;
        std::int64_t start_ns;
        std::vector<scenarios::TimelineEntry> entries;
    };
    void begin(const scenarios::RunHeader& event) override { headers.push_back(event); }
    void iteration(const scenarios::IterationEvent& event) override { iterations.push_back(event); }
    void telemetry(const scenarios::TelemetryEvent& event) override { telemetry_events.push_back(event); }
    void disturbance(const scenarios::DisturbanceEvent& event) override { disturbances.push_back(event); }
    void pause(const scenarios::PauseEvent& event) override { pauses.push_back(event); }
    void decision(const scenarios::DecisionEvent& event) override { decisions.push_back(event); }
    void link_load(const scenarios::LinkLoadEvent& event) override { link_loads.push_back(event); }
    void log(const scenarios::LogEvent& event) override { logs.push_back(event); }
    void operations(std::int64_t iteration, std::int64_t start_ns,
                    const std::vector<scenarios::TimelineEntry>& entries) override {
        operation_events.push_back({iteration, start_ns, entries});
    }
    void end(const scenarios::RunFooter& event) override { footers.push_back(event); }

    std::vector<scenarios::RunHeader> headers;
    std::vector<scenarios::IterationEvent> iterations;
    std::vector<scenarios::TelemetryEvent> telemetry_events;
    std::vector<scenarios::DisturbanceEvent> disturbances;
    std::vector<scenarios::PauseEvent> pauses;
    std::vector<scenarios::DecisionEvent> decisions;
    std::vector<scenarios::LinkLoadEvent> link_loads;
    std::vector<scenarios::LogEvent> logs;
    std::vector<Operations> operation_events;
    std::vector<scenarios::RunFooter> footers;
};

}  // namespace headway::tests
