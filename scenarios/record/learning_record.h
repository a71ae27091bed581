#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "scenarios/record/learning_events.h"
#include "scenarios/record/run_writer.h"

/// Records of trainings and evaluations: run records (scenarios/record/README.md) whose header says so and that hold
/// `training_update` and `evaluation` lines.
namespace headway::scenarios {

std::string training_update_line(const TrainingUpdateEvent& event);
std::string evaluation_line(const EvaluationEvent& event);

/// Writes such a record under its final name while the training goes on. Throws as RecordWriter does.
class LearningRecordWriter {
  public:
    /// Begins the record with `earlier` lines, of a training that goes on.
    LearningRecordWriter(const std::filesystem::path& file, const LearningHeader& header, const Provenance& provenance,
                         const std::vector<std::string>& earlier = {});
    ~LearningRecordWriter();

    /// A line that one of the functions above made.
    void add(const std::string& line);
    void end(bool complete);

  private:
    class Impl;
    std::unique_ptr<Impl> impl_;
};

}  // namespace headway::scenarios
