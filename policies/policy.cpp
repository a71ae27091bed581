#include "policies/policy.h"

#include <array>
#include <stdexcept>

#include "policies/rules/static_policy.h"

namespace headway::policies {

namespace {

struct PolicyFactory {
    const char* name;
    const char* description;
    std::unique_ptr<Policy> (*make)(const PolicyResources&);
};

template <class P>
std::unique_ptr<Policy> make_one(const PolicyResources&) {
    return std::make_unique<P>();
}

/// Every policy, in order of the names. One list, so that listing, making and testing cannot drift apart.
constexpr std::array kPolicies = {
    PolicyFactory{"static", "keeps the initial plan; after a loss waits for the replacement", &make_one<StaticPolicy>},
};

}  // namespace

std::vector<PolicyEntry> registered_policies() {
    std::vector<PolicyEntry> entries;
    for (const PolicyFactory& factory : kPolicies) entries.push_back({factory.name, factory.description});
    return entries;
}

std::unique_ptr<Policy> make_policy(std::string_view name, const PolicyResources& resources) {
    std::string known;
    for (const PolicyFactory& factory : kPolicies) {
        if (name == factory.name) return factory.make(resources);
        known += (known.empty() ? "" : ", ") + std::string(factory.name);
    }
    throw std::invalid_argument("no policy '" + std::string(name) + "' (there is: " + known + ")");
}

}  // namespace headway::policies
