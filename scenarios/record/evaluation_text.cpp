#include <algorithm>
#include <cstdio>

#include "scenarios/record/evaluation_report.h"
#include "scenarios/record/figures.h"

namespace headway::scenarios {

namespace {

constexpr std::size_t kPolicyWidth = 26;
constexpr std::size_t kFamilyWidth = 40;
constexpr std::size_t kScenarioWidth = 24;
constexpr std::size_t kWorstListed = 12;
constexpr double kVisiblyAboveHealthy = 1.0005;

std::string share_text(const std::optional<double>& share) {
    return share ? percent_text(*share) : "-";
}

std::string one_decimal(double value) {
    char text[32];
    std::snprintf(text, sizeof text, "%.1f", value);
    return text;
}

/// "+1.2 points"
std::string points(double difference) {
    char text[32];
    std::snprintf(text, sizeof text, "%+.1f", difference * 100.0);
    return text;
}

std::string points_interval(const std::optional<EvaluatedInterval>& interval) {
    return interval ? " [" + points(interval->low) + ", " + points(interval->high) + "]" : "";
}

std::string reaction_text(const std::optional<double>& seconds) {
    return seconds ? duration_text(static_cast<std::int64_t>(*seconds * 1e9)) : "-";
}

/// For the head of a column: without folder and ending, cut to its width.
std::string short_name(const std::string& policy) {
    std::string name = policy.substr(policy.rfind('/') + 1);
    if (const std::size_t ending = name.rfind(".policy"); ending != std::string::npos) name.erase(ending);
    return name.size() > 12 ? name.substr(0, 11) + "…" : name;
}

std::string policies_table(const EvaluationReport& report) {
    std::string text = "  " + pad_right("policy", kPolicyWidth) + pad_left("goodput", 9) + pad_left("recovered", 11) +
                       pad_left("95 %", 18) + pad_left("lost", 8) + pad_left("switches", 10) +
                       pad_left("reacts in", 14) + "\n";
    for (const EvaluatedPolicy& policy : report.policies) {
        const EvaluatedFigures& figures = policy.figures;
        std::string interval;
        if (policy.recovered_interval) {
            interval = one_decimal(policy.recovered_interval->low * 100.0) + " to " +
                       percent_text(policy.recovered_interval->high);
        }
        text += "  " + pad_right(policy.policy, kPolicyWidth) + pad_left(percent_text(figures.goodput), 9) +
                pad_left(share_text(figures.recovered_share), 11) + pad_left(interval, 18) +
                pad_left(percent_text(figures.lost_fraction), 8) + pad_left(one_decimal(figures.switches), 10) +
                pad_left(reaction_text(figures.reaction_s), 14) + "\n";
    }
    return text;
}

/// What the table does not say by itself.
std::string policies_notes(const EvaluationReport& report) {
    std::string text;
    for (const EvaluatedPolicy& policy : report.policies) {
        const EvaluatedFigures& figures = policy.figures;
        if (figures.handed_over <= 0.0 && figures.rolled_back <= 0.0) continue;
        text += "  Of the decisions of " + policy.policy + ", guards took " + percent_text(figures.handed_over) +
                " over to the rule (outside what it was trained on)\n  and used " + percent_text(figures.rolled_back) +
                " to take back a switch that missed its prediction.\n";
    }
    const bool above = std::any_of(report.scenarios.begin(), report.scenarios.end(), [](const EvaluatedScenario& one) {
        return std::any_of(one.runs.begin(), one.runs.end(),
                           [](const EvaluatedRun& run) { return run.goodput > kVisiblyAboveHealthy; });
    });
    if (above)
        text += "  Goodput above 100 %: plans that are faster than the initial one even with everything healthy.\n";
    return text.empty() ? "" : "\n" + text;
}

std::string families_table(const EvaluationReport& report) {
    std::string text = "\n  " + pad_right("goodput by family", kFamilyWidth) + pad_left("n", 4);
    for (const EvaluatedPolicy& policy : report.policies) text += pad_left(short_name(policy.policy), 13);
    text += "\n";
    for (std::size_t i = 0; !report.policies.empty() && i < report.policies.front().families.size(); ++i) {
        const EvaluatedFamily& family = report.policies.front().families[i];
        text += "  " + pad_right(family.name, kFamilyWidth) + pad_left(std::to_string(family.figures.scenarios), 4);
        for (const EvaluatedPolicy& policy : report.policies)
            text += pad_left(percent_text(policy.families[i].figures.goodput), 13);
        text += "\n";
    }
    return text;
}

/// Scenarios that stand in files of their own: each has a claim to be looked at.
std::string single_table(const EvaluationReport& report) {
    std::string text;
    for (const EvaluatedScenario& scenario : report.scenarios) {
        if (scenario.family != "single scenarios") continue;
        text += "  " + pad_right(scenario.name, kFamilyWidth) + pad_left("", 4);
        for (const EvaluatedRun& run : scenario.runs)
            text += pad_left(percent_text(run.goodput) + " /" + one_decimal(run.switches), 13);
        text += "\n";
    }
    return text.empty() ? "" : "\n  Single scenarios: goodput / switches\n" + text;
}

std::string pairs_table(const EvaluationReport& report) {
    if (report.pairs.empty()) return "";
    std::string text = "\n  Paired differences in points, with 95 % intervals\n";
    for (const EvaluatedPair& pair : report.pairs) {
        text += "  " + pad_right(pair.policy + " - " + pair.against, kFamilyWidth) + " goodput " +
                points(pair.goodput) + points_interval(pair.goodput_interval);
        if (pair.recovered_share)
            text += "   recovered " + points(*pair.recovered_share) + points_interval(pair.recovered_interval);
        text += "\n";
    }
    return text;
}

/// The scenarios in which some policy ended furthest below static, the first policy.
std::string losses_table(const EvaluationReport& report) {
    struct Loss {
        double below;
        const EvaluatedScenario* scenario;
        const EvaluatedRun* run;
    };
    std::vector<Loss> losses;
    for (const EvaluatedScenario& scenario : report.scenarios) {
        const double base = scenario.runs.front().goodput;
        for (const EvaluatedRun& run : scenario.runs)
            if (run.goodput < base * 0.99) losses.push_back({run.goodput - base, &scenario, &run});
    }
    if (losses.empty()) return "\n  No policy ended more than 1 % below static anywhere.\n";
    std::stable_sort(losses.begin(), losses.end(), [](const Loss& a, const Loss& b) { return a.below < b.below; });
    std::string text = "\n  Lost to static (more than 1 % below it), worst first\n";
    for (std::size_t i = 0; i < std::min(losses.size(), kWorstListed); ++i) {
        const Loss& loss = losses[i];
        text += "  " + pad_right(loss.scenario->name, kScenarioWidth) + pad_right(loss.scenario->family, kFamilyWidth) +
                " " + pad_right(loss.run->policy, 12) + " " + points(loss.below) + "\n";
    }
    if (losses.size() > kWorstListed) text += "  and " + std::to_string(losses.size() - kWorstListed) + " more\n";
    return text;
}

}  // namespace

std::string evaluation_text(const EvaluationReport& report) {
    std::string text = std::to_string(report.scenarios.size()) +
                       (report.scenarios.size() == 1 ? " scenario" : " scenarios") +
                       (report.seeds > 1 ? ", " + std::to_string(report.seeds) + " seeds each" : "") +
                       ", iterations by the " + report.path + " path\n";
    if (!report.complete)
        text += "INTERRUPTED: " + std::to_string(report.scenarios.size()) + " of " + std::to_string(report.planned) +
                " scenarios\n";
    return text + "\n" + policies_table(report) + policies_notes(report) + families_table(report) +
           single_table(report) + pairs_table(report) + losses_table(report);
}

}  // namespace headway::scenarios
