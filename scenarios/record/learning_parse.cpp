#include "scenarios/record/learning_parse.h"

namespace headway::scenarios {

namespace {

void expect_count(std::int64_t value, const char* key) {
    if (value < 0) reject_line("'" + std::string(key) + "' is below 0");
}

}  // namespace

bool is_learning_header(const Json& json) {
    const auto level = json.find("level");
    return level != json.end() && (*level == "training" || *level == "evaluation");
}

LearningHeader parse_learning_header(const Json& json) {
    LearningHeader header;
    header.kind =
        json_member(json, "level") == "training" ? LearningHeader::Kind::kTraining : LearningHeader::Kind::kEvaluation;
    json_field(json, "name", header.name);
    json_field(json, "seed", header.seed);
    json_field(json, "planned", header.planned);
    expect_count(header.planned, "planned");
    return header;
}

TrainingUpdateEvent parse_training_update(const Json& json) {
    TrainingUpdateEvent event;
    json_field(json, "update", event.update);
    json_field(json, "method", event.method);
    json_field(json, "stage", event.stage);
    json_field(json, "episodes", event.episodes);
    json_field(json, "decisions", event.decisions);
    json_field(json, "goodput", event.goodput);
    json_field(json, "reference_goodput", event.reference_goodput);
    json_field(json, "switches", event.switches);
    json_field(json, "policy_loss", event.policy_loss);
    json_field(json, "value_loss", event.value_loss);
    json_field(json, "entropy", event.entropy);
    json_field(json, "kl", event.kl);
    json_field(json, "clip_fraction", event.clip_fraction);
    json_field(json, "explained_variance", event.explained_variance);
    json_field(json, "learning_rate", event.learning_rate);
    json_field(json, "gradient_norm", event.gradient_norm);
    expect_count(event.update, "update");
    expect_count(event.episodes, "episodes");
    expect_count(event.decisions, "decisions");
    return event;
}

EvaluationEvent parse_evaluation(const Json& json) {
    EvaluationEvent event;
    json_field(json, "update", event.update);
    json_field(json, "policy", event.policy);
    json_field(json, "scenario", event.scenario);
    json_field(json, "family", event.family);
    json_field(json, "scenarios", event.scenarios);
    json_field(json, "goodput", event.goodput);
    if (!json_member(json, "recovered_share").is_null())
        json_field(json, "recovered_share", event.recovered_share.emplace());
    json_field(json, "lost_fraction", event.lost_fraction);
    json_field(json, "switches", event.switches);
    expect_count(event.scenarios, "scenarios");
    return event;
}

}  // namespace headway::scenarios
