#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <vector>

#include "scenarios/record/run_events.h"

/// Exports of a run; nothing of Headway reads them back. Written to a temporary name beside the target and renamed at
/// the end, so that a file that exists is whole. Errors: std::runtime_error naming the file.
namespace headway::scenarios {

struct TraceOptions {
    /// Operations are written for the first iterations and for those after a disturbance begins or ends, until about
    /// this many; the rest of the run shows iterations, pauses, disturbances and counters.
    std::int64_t max_operations = 400'000;
};

/// Chrome trace (JSON object format), opens in Perfetto: process "run" with iterations, pauses and one track a
/// disturbance; one process a replica and stage with tracks for compute and communication (needs `operations` events);
/// counters of temperature and clock for GPUs that fell below nominal speed.
class TraceWriter final : public RunSink {
  public:
    explicit TraceWriter(std::filesystem::path file, TraceOptions options = {});
    ~TraceWriter() override;

    void begin(const RunHeader& header) override;
    void iteration(const IterationEvent& event) override;
    void telemetry(const TelemetryEvent& event) override;
    void disturbance(const DisturbanceEvent& event) override;
    void pause(const PauseEvent& event) override;
    void decision(const DecisionEvent& event) override;
    void operations(std::int64_t iteration, std::int64_t start_ns, const std::vector<TimelineEntry>& entries) override;
    bool wants_operations() const override;
    void end(const RunFooter& footer) override;

  private:
    class Impl;
    std::unique_ptr<Impl> impl_;
};

/// Converts a record to `DIRECTORY/STEM.KIND.csv`, one file per kind that occurs (iterations, telemetry, link_load,
/// disturbances, pauses, decisions, operations, gpus, log); returns the files written. A record that is damaged or
/// unfinished is converted as far as it could be read, and `problem` says so. Throws ConfigError when it cannot be
/// opened or has no header.
struct CsvExport {
    std::vector<std::filesystem::path> files;
    std::string problem;
};
CsvExport export_csv(const std::filesystem::path& record, const std::filesystem::path& directory);

}  // namespace headway::scenarios
