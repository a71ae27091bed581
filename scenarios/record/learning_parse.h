#pragma once

#include <string>

#include "scenarios/record/json_fields.h"
#include "scenarios/record/learning_events.h"

/// Lines of trainings and evaluations back into events: the inverse of learning_record.h. Private to this folder.
namespace headway::scenarios {

/// Whether a header line begins such a record.
bool is_learning_header(const Json& json);
LearningHeader parse_learning_header(const Json& json);
TrainingUpdateEvent parse_training_update(const Json& json);
EvaluationEvent parse_evaluation(const Json& json);

}  // namespace headway::scenarios
