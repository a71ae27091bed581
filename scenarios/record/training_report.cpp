#include "scenarios/record/training_report.h"

#include "scenarios/record/figures.h"
#include "scenarios/record/json_text.h"

namespace headway::scenarios {

std::string training_json(const TrainingReport& report) {
    JsonText json;
    json.begin_object()
        .field("policy", report.policy)
        .field("curriculum", report.curriculum)
        .field("planned", report.planned)
        .key("seeds")
        .begin_array();
    for (const TrainedSeed& seed : report.seeds) {
        json.begin_object()
            .field("seed", seed.seed)
            .field("complete", seed.complete)
            .field("updates", seed.updates)
            .field("policy", seed.policy)
            .field("goodput", seed.goodput)
            .field("static", seed.static_goodput)
            .field("rule", seed.rule_goodput)
            .field("teacher", seed.teacher_goodput)
            .end_object();
    }
    return json.end_array().end_object().take() + "\n";
}

std::string training_text(const TrainingReport& report) {
    std::string text;
    for (const TrainedSeed& seed : report.seeds) {
        text += "seed " + std::to_string(seed.seed) + ": " + std::to_string(seed.updates) + " of " +
                std::to_string(report.planned) + " updates";
        if (seed.policy.empty()) {
            text += ", nothing validated yet\n";
            continue;
        }
        text += "; on the validation scenarios of " + report.curriculum + ": goodput " + percent_text(seed.goodput) +
                ", static " + percent_text(seed.static_goodput) + ", rule " + percent_text(seed.rule_goodput);
        if (seed.teacher_goodput) text += ", teacher " + percent_text(*seed.teacher_goodput);
        text += "\n";
    }
    if (!report.policy.empty()) text += "best policy: " + report.policy + "\n";
    return text;
}

}  // namespace headway::scenarios
