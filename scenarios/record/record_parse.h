#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "scenarios/record/decision_lines.h"
#include "scenarios/record/learning_events.h"
#include "scenarios/record/run_events.h"
#include "scenarios/record/run_writer.h"

/// Lines of a run record back into events: the inverse of record_lines.h and sample_lines.h.
namespace headway::scenarios {

/// A line that cannot be what it says it is; the message lacks file and line number.
class RecordLineError : public std::runtime_error {
  public:
    using std::runtime_error::runtime_error;
};

struct ParsedHeader {};      ///< header line read; `RecordParser::header` is not whole yet
struct ParsedProvenance {};  ///< `RecordParser::provenance`
struct ParsedTopology {};    ///< the header is whole: the run begins
struct ParsedOps {
    std::int64_t iteration = 0;
    std::int64_t start_ns = 0;
    std::vector<TimelineEntry> entries;
};
struct ParsedFooter {
    RunFooter footer;
    std::vector<std::pair<std::string, std::int64_t>> counts;
    std::string digest;
};

using ParsedLine =
    std::variant<ParsedHeader, ParsedProvenance, ParsedTopology, IterationEvent, std::vector<TelemetryEvent>,
                 DisturbanceEvent, PauseEvent, DecisionEvent, std::vector<LinkLoadEvent>, LogEvent, ParsedOps,
                 ParsedFooter, LearningHeader, TrainingUpdateEvent, EvaluationEvent>;

/// Parses the lines of one record in their order. Remembers the last telemetry of every GPU and the names of the links.
class RecordParser {
  public:
    /// Throws RecordLineError. `kind` becomes the line's kind as soon as it is known.
    ParsedLine parse(std::string_view line, std::string& kind);

    const RunHeader& header() const { return header_; }
    RecordLevel level() const { return level_; }
    const Provenance& provenance() const { return provenance_; }

  private:
    enum class Expect { kHeader, kScenario, kTopology, kEvents, kLearning } expect_ = Expect::kHeader;
    RunHeader header_;
    RecordLevel level_ = RecordLevel::kIterations;
    Provenance provenance_;
    int gpus_ = 0;
    DecisionState decision_state_;
    std::vector<TelemetryEvent> telemetry_;  ///< [GPUs of the cluster]
    std::vector<std::string> links_;
    std::int64_t iterations_ = 0;  ///< completed
    std::int64_t lost_ = 0;        ///< of those, rolled back
    std::int64_t iterations_end_ns_ = 0;
    std::int64_t pauses_end_ns_ = 0;
};

}  // namespace headway::scenarios
