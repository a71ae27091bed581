#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>

#include "scenarios/record/run_events.h"

namespace headway::scenarios {

/// How much a record holds. Each level contains the ones above it.
enum class RecordLevel {
    kDecisions,   ///< header, scenario, topology, disturbances, decisions, pauses, switches, log, footer
    kIterations,  ///< and iterations, telemetry, link load
    kOperations,  ///< and the operations of every iteration
};

/// "decisions", "iterations", "operations". `record_level` throws std::invalid_argument naming the three.
const char* name_of(RecordLevel level);
RecordLevel record_level(const std::string& name);

/// Who made the record, where and when: the one line that comparisons leave out.
struct Provenance {
    std::string program;  ///< "headway 0.1.0"
    std::string machine;  ///< "host, Linux 6.1 x86_64, 2 processors"
    std::string started;  ///< ISO 8601, UTC
};

/// Provenance of this process, now.
Provenance current_provenance(const std::string& program);

struct RecordOptions {
    RecordLevel level = RecordLevel::kIterations;
    Provenance provenance;
    /// Telemetry and link load are thinned to stay near this size: each time an eighth of it is used up, the sample
    /// period doubles (the record states the period). Values that moved less than a sensor's own resolution are left
    /// out.
    std::int64_t sample_budget_bytes = 96'000'000;
};

/// Writes a run record (`*.run.jsonl`, JSON Lines; format: scenarios/record/README.md) under its final name while the
/// run goes on; a record that was not ended has no footer. The file is created by `begin`, so a run that never starts
/// leaves nothing. Throws std::runtime_error naming the file when it cannot be written or another writer holds it,
/// std::invalid_argument for a value that is not finite.
class RecordWriter final : public RunSink {
  public:
    explicit RecordWriter(std::filesystem::path file, RecordOptions options = {});
    ~RecordWriter() override;

    void begin(const RunHeader& header) override;
    void iteration(const IterationEvent& event) override;
    void telemetry(const TelemetryEvent& event) override;
    void disturbance(const DisturbanceEvent& event) override;
    void pause(const PauseEvent& event) override;
    void decision(const DecisionEvent& event) override;
    void link_load(const LinkLoadEvent& event) override;
    void log(const LogEvent& event) override;
    void operations(std::int64_t iteration, std::int64_t start_ns, const std::vector<TimelineEntry>& entries) override;
    bool wants_operations() const override;
    void end(const RunFooter& footer) override;

    /// Written so far, buffered lines included.
    std::int64_t bytes() const;

  private:
    class Impl;
    std::unique_ptr<Impl> impl_;
};

}  // namespace headway::scenarios
