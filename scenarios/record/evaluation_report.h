#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

/// What `headway evaluate` found out, as text for people and JSON for programs. Definitions: policies/evaluation.h.
namespace headway::scenarios {

/// One policy in one scenario; means over the seeds.
struct EvaluatedRun {
    std::string policy;
    double goodput = 0.0;  ///< against the healthy initial plan
    double switches = 0.0;
    double decisions = 0.0;
    double lost_iterations = 0.0;
    double paused_s = 0.0;             ///< in switches and recovery
    std::optional<double> reaction_s;  ///< from a disturbance's begin to the next switch; absent: none followed
    double only_choice = 0.0;          ///< share of the decisions at which nothing but keeping was offered
    double handed_over = 0.0;          ///< share of the decisions that the guards' rule took
    double rolled_back = 0.0;          ///< share of the decisions by which a switch was taken back
};

struct EvaluatedScenario {
    std::string name;
    std::string family;
    std::vector<EvaluatedRun> runs;  ///< [policies]
};

struct EvaluatedInterval {
    double low = 0.0;
    double high = 0.0;
};

/// One policy over some scenarios.
struct EvaluatedFigures {
    int scenarios = 0;
    double goodput = 0.0;                   ///< mean
    std::optional<double> recovered_share;  ///< absent without the oracle, or where it gains nothing
    double lost_fraction = 0.0;
    double switches = 0.0;             ///< mean
    std::optional<double> reaction_s;  ///< mean over the scenarios where there was one
    double handed_over = 0.0;          ///< mean share of the decisions, as above
    double rolled_back = 0.0;
};

struct EvaluatedFamily {
    std::string name;
    EvaluatedFigures figures;
};

struct EvaluatedPolicy {
    std::string policy;
    EvaluatedFigures figures;
    std::optional<EvaluatedInterval> recovered_interval;  ///< 95 %
    std::vector<EvaluatedFamily> families;                ///< in order of their names
};

/// `policy` minus `against` over the same scenarios, with paired 95 % intervals.
struct EvaluatedPair {
    std::string policy;
    std::string against;
    double goodput = 0.0;
    std::optional<EvaluatedInterval> goodput_interval;
    std::optional<double> recovered_share;
    std::optional<EvaluatedInterval> recovered_interval;
};

struct EvaluationReport {
    bool complete = true;  ///< false: interrupted; covers the scenarios that every policy had finished
    int planned = 0;       ///< scenarios
    int seeds = 1;
    std::string path;  ///< how iterations were computed: "automatic", "longest path"
    std::vector<EvaluatedPolicy> policies;
    std::vector<EvaluatedPair> pairs;
    std::vector<EvaluatedScenario> scenarios;
};

/// {"policies":[{"policy","goodput","recovered_share","lost_fraction","switches",...,"families":{...}}],"pairs":[...],
/// "scenarios":[{"name","family","policies":{...}}],"complete",...} on one line.
std::string evaluation_json(const EvaluationReport& report);

/// A table of the policies, one of the families, the paired comparisons, and the scenarios that went worst.
std::string evaluation_text(const EvaluationReport& report);

}  // namespace headway::scenarios
