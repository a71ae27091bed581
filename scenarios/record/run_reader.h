#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include "scenarios/record/run_events.h"
#include "scenarios/record/run_writer.h"

namespace headway::scenarios {

/// How far a record could be read.
struct RecordStatus {
    enum class State {
        kComplete,    ///< ends with a footer whose counts and digest agree with the lines
        kUnfinished,  ///< good so far, but without a footer: the run goes on, or was cut off
        kDamaged,     ///< `problem` says where; everything before it was delivered
    } state = State::kUnfinished;
    std::int64_t lines = 0;  ///< delivered
    std::string problem;     ///< "run.jsonl:17: ..."; empty for a complete record
};

/// Reads a run record line by line and hands its events to a sink, as the run did: the telemetry of a GPU is whole
/// again, `begin` comes once and `end` only from a footer. Memory does not grow with the record.
class RecordReader {
  public:
    /// Throws ConfigError when the file cannot be opened.
    explicit RecordReader(std::filesystem::path file);
    ~RecordReader();

    /// Delivers every line that is there; call again to follow a record that is still written. A last line without its
    /// end counts as not yet written. After damage nothing more is delivered.
    RecordStatus poll(RunSink& sink);

    /// What the header said; absent until it was read.
    std::optional<RecordLevel> level() const;
    std::optional<Provenance> provenance() const;

  private:
    class Impl;
    std::unique_ptr<Impl> impl_;
};

/// Why a record has no run to report: its problem, or that it holds a training's or an evaluation's curves.
std::string why_no_run(const std::filesystem::path& file, const RecordStatus& status);

/// Reads a whole record. The message of a status that is not complete is for the person who asked for the file.
RecordStatus read_record(const std::filesystem::path& file, RunSink& sink);

}  // namespace headway::scenarios
