#include "scenarios/record/evaluation_report.h"
#include "scenarios/record/json_text.h"

namespace headway::scenarios {

namespace {

void add_interval(JsonText& json, const char* key, const std::optional<EvaluatedInterval>& interval) {
    json.key(key);
    if (!interval) {
        json.null();
        return;
    }
    json.begin_array().value(interval->low).value(interval->high).end_array();
}

void add_evaluated_figures(JsonText& json, const EvaluatedFigures& figures) {
    json.field("goodput", figures.goodput)
        .field("recovered_share", figures.recovered_share)
        .field("lost_fraction", figures.lost_fraction)
        .field("switches", figures.switches)
        .field("reaction_s", figures.reaction_s)
        .field("handed_over", figures.handed_over)
        .field("rolled_back", figures.rolled_back)
        .field("scenarios", figures.scenarios);
}

}  // namespace

std::string evaluation_json(const EvaluationReport& report) {
    JsonText json;
    json.begin_object().key("policies").begin_array();
    for (const EvaluatedPolicy& policy : report.policies) {
        json.begin_object().field("policy", policy.policy);
        add_evaluated_figures(json, policy.figures);
        add_interval(json, "recovered_interval", policy.recovered_interval);
        json.key("families").begin_object();
        for (const EvaluatedFamily& family : policy.families) {
            json.key(family.name).begin_object();
            add_evaluated_figures(json, family.figures);
            json.end_object();
        }
        json.end_object().end_object();
    }
    json.end_array().key("pairs").begin_array();
    for (const EvaluatedPair& pair : report.pairs) {
        json.begin_object().field("policy", pair.policy).field("against", pair.against).field("goodput", pair.goodput);
        add_interval(json, "goodput_interval", pair.goodput_interval);
        json.field("recovered_share", pair.recovered_share);
        add_interval(json, "recovered_interval", pair.recovered_interval);
        json.end_object();
    }
    json.end_array().key("scenarios").begin_array();
    for (const EvaluatedScenario& scenario : report.scenarios) {
        json.begin_object()
            .field("name", scenario.name)
            .field("family", scenario.family)
            .key("policies")
            .begin_object();
        for (const EvaluatedRun& run : scenario.runs) {
            json.key(run.policy)
                .begin_object()
                .field("goodput", run.goodput)
                .field("switches", run.switches)
                .field("decisions", run.decisions)
                .field("lost_iterations", run.lost_iterations)
                .field("paused_s", run.paused_s)
                .field("reaction_s", run.reaction_s)
                .field("only_choice", run.only_choice)
                .field("handed_over", run.handed_over)
                .field("rolled_back", run.rolled_back)
                .end_object();
        }
        json.end_object().end_object();
    }
    return json.end_array()
               .field("seeds", report.seeds)
               .field("path", report.path)
               .field("planned", report.planned)
               .field("complete", report.complete)
               .end_object()
               .take() +
           "\n";
}

}  // namespace headway::scenarios
