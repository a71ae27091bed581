#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "scenarios/record/run_events.h"
#include "scenarios/record/run_writer.h"

/// The lines of a run record, one function a kind; each returns one JSON object without the line's end. The writer
/// calls them; scenarios/record/README.md describes every field. Changing any of this changes the format's version.
namespace headway::scenarios {

inline constexpr std::string_view kRecordFormat = "headway-run";
inline constexpr int kRecordVersion = 3;

std::string header_line(const RunHeader& header, RecordLevel level);
std::string provenance_line(const Provenance& provenance);
std::string scenario_line(const RunHeader& header);
std::string topology_line(const RunHeader& header);
std::string iteration_line(const IterationEvent& event);
std::string disturbance_line(const DisturbanceEvent& event);
/// "switch" for a switch, "pause" for everything else.
std::string pause_line(const PauseEvent& event);
std::string log_line(const LogEvent& event);
/// Operations of one worker in one iteration; `entries` all have the same worker.
std::string op_line(std::int64_t iteration, std::int64_t start_ns, const std::vector<TimelineEntry>& entries);

/// Digest of the lines of a record but `provenance` and `footer`, each with its newline: FNV-1a, 64 bits. It finds
/// damage, it does not protect against forgery.
class RecordDigest {
  public:
    void add(std::string_view bytes) {
        for (const char byte : bytes) {
            state_ ^= static_cast<unsigned char>(byte);
            state_ *= 0x100000001b3u;
        }
    }
    /// "fnv1a64:" and 16 hexadecimal digits.
    std::string text() const;

  private:
    std::uint64_t state_ = 0xcbf29ce484222325u;
};

struct RecordCount {
    const char* kind;
    std::int64_t lines;
};
/// The footer ends with the digest of all lines before it and of its own text up to the digest.
std::string footer_line(const RunFooter& footer, const std::vector<RecordCount>& counts, RecordDigest digest);
/// What stands between the digested text of a footer and its digest.
inline constexpr std::string_view kDigestKey = R"(,"digest":")";

/// Names in the record of what is a number elsewhere.
const char* record_name(PauseEvent::Reason reason);
const char* record_name(LogEvent::Severity severity);
const char* record_name(DecisionEvent::By by);
const char* record_name(Schedule schedule);
const char* record_name(Recompute recompute);
/// "forward", "send_activation", ...; by scenarios::Op.
const char* op_name(std::uint8_t op);
inline constexpr int kOpKinds = 12;

}  // namespace headway::scenarios
