#include "policies/rules/rule_parameters.h"

#include <algorithm>
#include <stdexcept>

#include "scenarios/language/nearest_name.h"
#include "scenarios/language/value_text.h"

namespace headway::policies {

RuleParameters::RuleParameters(std::string_view text) : text_(text) {
    const std::size_t colon = text.find(':');
    rule_ = std::string(text.substr(0, colon));
    if (colon == std::string_view::npos) return;
    std::string_view rest = text.substr(colon + 1);
    while (true) {
        const std::size_t comma = rest.find(',');
        const std::string_view one = rest.substr(0, comma);
        const std::size_t equals = one.find('=');
        if (equals == std::string_view::npos || equals == 0) {
            throw std::invalid_argument("policy '" + text_ + "': '" + std::string(one) + "' is not key=value");
        }
        const std::string key(one.substr(0, equals));
        for (const auto& [earlier, value] : given_) {
            if (earlier == key) throw std::invalid_argument("policy '" + text_ + "': '" + key + "' is given twice");
        }
        given_.emplace_back(key, std::string(one.substr(equals + 1)));
        if (comma == std::string_view::npos) return;
        rest.remove_prefix(comma + 1);
    }
}

const std::string* RuleParameters::find(const std::string& key) {
    known_.push_back(key);
    for (const auto& [given, value] : given_) {
        if (given == key) return &value;
    }
    return nullptr;
}

void RuleParameters::refuse(const std::string& key, const std::string& value, const std::string& allowed) const {
    throw std::invalid_argument("policy '" + rule_ + "': " + key + "=" + value + " is not allowed (" + allowed + ")");
}

double RuleParameters::number(const std::string& key, double otherwise, double least, double most) {
    const std::string* given = find(key);
    if (given == nullptr) return otherwise;
    const auto value = scenarios::parse_number(*given);
    if (!value || *value < least || *value > most) {
        refuse(key, *given, "a number from " + scenarios::format_value(least) + " to " + scenarios::format_value(most));
    }
    return *value;
}

int RuleParameters::count(const std::string& key, int otherwise, int least, int most) {
    const std::string* given = find(key);
    if (given == nullptr) return otherwise;
    const auto value = scenarios::parse_integer(*given);
    if (!value || *value < least || *value > most) {
        refuse(key, *given, "a whole number from " + std::to_string(least) + " to " + std::to_string(most));
    }
    return static_cast<int>(*value);
}

scenarios::Duration RuleParameters::duration(const std::string& key, scenarios::Duration otherwise) {
    const std::string* given = find(key);
    if (given == nullptr) return otherwise;
    // On a command line "10min" is easier to write than "10 min".
    std::string text = *given;
    const std::size_t unit = text.find_first_not_of("0123456789.");
    if (unit != std::string::npos && unit > 0 && text[unit] != ' ') text.insert(unit, " ");
    const auto value = scenarios::parse_quantity(text, scenarios::Duration());
    if (!value || *value < scenarios::Duration()) refuse(key, *given, scenarios::quantity_form(scenarios::Duration()));
    return *value;
}

void RuleParameters::expect_all_known() const {
    for (const auto& [key, value] : given_) {
        if (std::find(known_.begin(), known_.end(), key) != known_.end()) continue;
        throw std::invalid_argument("policy '" + rule_ + "': unknown parameter '" + key + "'" +
                                    (known_.empty() ? " (it takes none)" : scenarios::suggestion(key, known_)));
    }
}

}  // namespace headway::policies
