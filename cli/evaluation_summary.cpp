#include "cli/evaluation_summary.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <span>

#include "policies/evaluation.h"

namespace headway::cli {

namespace {

using scenarios::EvaluatedFigures;
using scenarios::EvaluatedInterval;
using scenarios::EvaluatedScenario;

constexpr std::uint64_t kBootstrapSeed = 1;

std::optional<EvaluatedInterval> as_evaluated(const std::optional<policies::ConfidenceInterval>& interval) {
    if (!interval) return std::nullopt;
    return EvaluatedInterval{interval->low, interval->high};
}

/// Goodputs and runs of some scenarios, policy by policy.
class ComparedPolicies {
  public:
    ComparedPolicies(const std::vector<std::string>& names, std::vector<const EvaluatedScenario*> judged)
        : judged_(std::move(judged)) {
        for (std::size_t p = 0; p < names.size(); ++p) {
            if (names[p] == "oracle") oracle_ = p;
            goodputs_.emplace_back();
            for (const EvaluatedScenario* scenario : judged_) goodputs_.back().push_back(scenario->runs[p].goodput);
        }
    }

    std::size_t scenarios() const { return judged_.size(); }
    bool has_oracle() const { return oracle_.has_value(); }
    std::span<const double> of(std::size_t policy) const { return goodputs_[policy]; }

    std::optional<double> recovered(std::size_t policy) const {
        if (!oracle_) return std::nullopt;
        return policies::recovered_share(of(policy), of(0), of(*oracle_));
    }
    std::optional<double> recovered(std::size_t policy, std::span<const std::size_t> drawn) const {
        const auto picked = [&](std::size_t p) { return policies::drawn_goodputs(of(p), drawn); };
        return policies::recovered_share(picked(policy), picked(0), picked(*oracle_));
    }

    EvaluatedFigures figures(std::size_t policy) const {
        EvaluatedFigures figures;
        figures.scenarios = static_cast<int>(judged_.size());
        figures.goodput = policies::mean_goodput(of(policy));
        figures.recovered_share = recovered(policy);
        figures.lost_fraction = policies::lost_fraction(of(policy), of(0));
        double reaction = 0.0;
        int reacted = 0;
        for (const EvaluatedScenario* scenario : judged_) {
            const scenarios::EvaluatedRun& run = scenario->runs[policy];
            const auto scenarios = static_cast<double>(judged_.size());
            figures.switches += run.switches / scenarios;
            figures.handed_over += run.handed_over / scenarios;
            figures.rolled_back += run.rolled_back / scenarios;
            if (!run.reaction_s) continue;
            reaction += *run.reaction_s;
            ++reacted;
        }
        if (reacted > 0) figures.reaction_s = reaction / reacted;
        return figures;
    }

    /// Over resampled scenarios.
    std::optional<EvaluatedInterval> interval(const policies::ScenarioStatistic& statistic) const {
        return as_evaluated(policies::bootstrap_interval(
            judged_.size(), statistic, scenarios::RandomStream(kBootstrapSeed, "evaluation/bootstrap")));
    }

  private:
    std::vector<const EvaluatedScenario*> judged_;
    std::vector<std::vector<double>> goodputs_;  ///< [policies][scenarios]
    std::optional<std::size_t> oracle_;
};

scenarios::EvaluatedPair compared(const std::vector<std::string>& names, const ComparedPolicies& all, std::size_t a,
                                  std::size_t b) {
    scenarios::EvaluatedPair pair;
    pair.policy = names[a];
    pair.against = names[b];
    pair.goodput = policies::mean_goodput(all.of(a)) - policies::mean_goodput(all.of(b));
    pair.goodput_interval = all.interval([&](std::span<const std::size_t> drawn) -> std::optional<double> {
        double sum = 0.0;
        for (const std::size_t index : drawn) sum += all.of(a)[index] - all.of(b)[index];
        return sum / static_cast<double>(drawn.size());
    });
    const auto first = all.recovered(a), second = all.recovered(b);
    if (!first || !second) return pair;
    pair.recovered_share = *first - *second;
    pair.recovered_interval = all.interval([&](std::span<const std::size_t> drawn) -> std::optional<double> {
        const auto share_a = all.recovered(a, drawn), share_b = all.recovered(b, drawn);
        if (!share_a || !share_b) return std::nullopt;
        return *share_a - *share_b;
    });
    return pair;
}

scenarios::EvaluationEvent event_of(const std::string& policy, const EvaluatedFigures& figures) {
    scenarios::EvaluationEvent event;
    event.policy = policy;
    event.scenarios = figures.scenarios;
    event.goodput = figures.goodput;
    event.recovered_share = figures.recovered_share;
    event.lost_fraction = figures.lost_fraction;
    event.switches = figures.switches;
    return event;
}

}  // namespace

std::vector<scenarios::EvaluationEvent> evaluation_events(const scenarios::EvaluationReport& report) {
    std::vector<std::string> names;
    for (const scenarios::EvaluatedPolicy& policy : report.policies) names.push_back(policy.policy);
    std::vector<scenarios::EvaluationEvent> events;
    for (std::size_t p = 0; p < names.size(); ++p) {
        const scenarios::EvaluatedPolicy& policy = report.policies[p];
        events.push_back(event_of(policy.policy, policy.figures));
        for (const scenarios::EvaluatedFamily& family : policy.families) {
            events.push_back(event_of(policy.policy, family.figures));
            events.back().family = family.name;
        }
        for (const EvaluatedScenario& scenario : report.scenarios) {
            events.push_back(event_of(policy.policy, ComparedPolicies(names, {&scenario}).figures(p)));
            events.back().scenario = scenario.name;
            events.back().family = scenario.family;
        }
    }
    return events;
}

void sum_up(const std::vector<std::string>& names, scenarios::EvaluationReport& report) {
    std::vector<const EvaluatedScenario*> everything;
    std::map<std::string, std::vector<const EvaluatedScenario*>> by_family;
    for (const EvaluatedScenario& scenario : report.scenarios) {
        everything.push_back(&scenario);
        by_family[scenario.family].push_back(&scenario);
    }
    const ComparedPolicies all(names, everything);
    report.policies.clear();
    report.pairs.clear();
    for (std::size_t p = 0; p < names.size(); ++p) {
        scenarios::EvaluatedPolicy policy;
        policy.policy = names[p];
        policy.figures = all.figures(p);
        if (all.has_oracle())
            policy.recovered_interval =
                all.interval([&](std::span<const std::size_t> drawn) { return all.recovered(p, drawn); });
        for (const auto& [family, judged] : by_family)
            policy.families.push_back({family, ComparedPolicies(names, judged).figures(p)});
        report.policies.push_back(std::move(policy));
    }
    for (std::size_t a = 1; a < names.size(); ++a)
        for (std::size_t b = 0; b < names.size(); ++b)
            if (b != a && (b < 1 || b > a)) report.pairs.push_back(compared(names, all, a, b));
}

}  // namespace headway::cli
