#pragma once

#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace headway::scenarios {

/// One fact of an entry: a number, a text or a yes/no, under a key with its unit ("memory_gib").
using ListedFact = std::pair<std::string, std::variant<double, std::string, bool>>;

struct ListedEntry {
    std::string name;
    std::vector<ListedFact> facts;
};

/// {"KIND":[{"name",facts...}]} on one line, with newline.
std::string listing_json(const std::string& kind, const std::vector<ListedEntry>& entries);

}  // namespace headway::scenarios
