#include "policies/policy.h"

#include <array>
#include <filesystem>
#include <stdexcept>

#include "policies/learning/learned_policy.h"
#include "policies/learning/policy_file.h"
#include "policies/rules/best_static_policy.h"
#include "policies/rules/greedy_policy.h"
#include "policies/rules/hysteresis_policy.h"
#include "policies/rules/oracle_policy.h"
#include "policies/rules/random_policy.h"
#include "policies/rules/rule_parameters.h"
#include "policies/rules/ski_rental_policy.h"
#include "policies/rules/static_policy.h"
#include "scenarios/language/nearest_name.h"

namespace headway::policies {

namespace {

constexpr std::string_view kPolicyFileEnding = ".policy";

struct PolicyFactory {
    const char* name;
    const char* description;
    bool looks_ahead;
    std::unique_ptr<Policy> (*make)(RuleParameters, const PolicyResources&);
};

template <class P>
std::unique_ptr<Policy> make_rule(RuleParameters parameters, const PolicyResources&) {
    return std::make_unique<P>(std::move(parameters));
}

template <class P>
std::unique_ptr<Policy> make_seer(RuleParameters parameters, const PolicyResources& resources) {
    return std::make_unique<P>(std::move(parameters), resources);
}

/// Every policy, in order of the names. One list, so that listing, making and testing cannot drift apart.
constexpr std::array kPolicies = {
    PolicyFactory{"best-static", "the single plan that trains most in hindsight, taken at the first decision and kept",
                  true, &make_seer<BestStaticPolicy>},
    PolicyFactory{"greedy", "the least predicted iteration at every decision, whatever the switch costs", false,
                  &make_rule<GreedyPolicy>},
    PolicyFactory{"hysteresis",
                  "switches when a gain above threshold= lasts for patience= decisions and pays back within horizon=",
                  false, &make_rule<HysteresisPolicy>},
    PolicyFactory{"oracle", "knows the future: the best of what it tried in what-if worlds; never to be deployed", true,
                  &make_seer<OraclePolicy>},
    PolicyFactory{"random", "random search: the best of tries= random episodes in what-if worlds", true,
                  &make_seer<RandomPolicy>},
    PolicyFactory{"ski-rental", "escalates: cheap measures at once, dear ones when the loss has reached their cost",
                  false, &make_rule<SkiRentalPolicy>},
    PolicyFactory{"static", "keeps the initial plan; after a loss waits for the replacement", false,
                  &make_rule<StaticPolicy>},
};

const PolicyFactory& factory_of(const RuleParameters& parameters) {
    std::string known;
    std::vector<std::string> names;
    for (const PolicyFactory& factory : kPolicies) {
        if (parameters.rule() == factory.name) return factory;
        known += (known.empty() ? "" : ", ") + std::string(factory.name);
        names.emplace_back(factory.name);
    }
    throw std::invalid_argument("no policy '" + parameters.text() + "' (there is: " + known + ", or FILE.policy)" +
                                scenarios::did_you_mean(parameters.rule(), names));
}

}  // namespace

std::vector<PolicyEntry> registered_policies() {
    std::vector<PolicyEntry> entries;
    for (const PolicyFactory& factory : kPolicies) {
        entries.push_back({factory.name, factory.description, factory.looks_ahead});
    }
    return entries;
}

std::unique_ptr<Policy> make_policy(std::string_view name, const PolicyResources& resources) {
    if (name.ends_with(kPolicyFileEnding)) {
        const std::filesystem::path file(name);
        return std::make_unique<LearnedPolicy>(read_policy(file), file.filename().string());
    }
    RuleParameters parameters(name);
    const PolicyFactory& factory = factory_of(parameters);
    if (factory.looks_ahead && !resources.worlds) {
        throw std::invalid_argument("policy '" + parameters.text() +
                                    "' looks ahead and needs what-if worlds, which only a simulated run has");
    }
    return factory.make(std::move(parameters), resources);
}

void check_policy(std::string_view name) {
    PolicyResources resources;
    resources.worlds = []() -> std::unique_ptr<TrainingCluster> {
        throw std::logic_error("a policy that is only checked has no worlds");
    };
    make_policy(name, resources);
}

}  // namespace headway::policies
