#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "scenarios/language/units.h"

namespace headway::policies {

/// What stands after the name of a rule: "hysteresis:threshold=0.05,patience=2". A rule asks for each parameter that it
/// takes; `expect_all_known` then refuses what it did not ask for. Every error is a std::invalid_argument that names
/// the rule, the key, the value and what is allowed.
class RuleParameters {
  public:
    explicit RuleParameters(std::string_view text);

    const std::string& text() const { return text_; }
    const std::string& rule() const { return rule_; }

    double number(const std::string& key, double otherwise, double least, double most);
    int count(const std::string& key, int otherwise, int least, int most);
    scenarios::Duration duration(const std::string& key, scenarios::Duration otherwise);
    void expect_all_known() const;

  private:
    const std::string* find(const std::string& key);
    [[noreturn]] void refuse(const std::string& key, const std::string& value, const std::string& allowed) const;

    std::string text_;
    std::string rule_;
    std::vector<std::pair<std::string, std::string>> given_;
    std::vector<std::string> known_;  ///< asked for so far
};

}  // namespace headway::policies
