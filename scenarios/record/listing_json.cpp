#include "scenarios/record/listing_json.h"

#include "scenarios/record/json_text.h"

namespace headway::scenarios {

std::string listing_json(const std::string& kind, const std::vector<ListedEntry>& entries) {
    JsonText json;
    json.begin_object().key(kind).begin_array();
    for (const ListedEntry& entry : entries) {
        json.begin_object().field("name", entry.name);
        for (const auto& [key, value] : entry.facts) {
            std::visit([&, &name = key](const auto& fact) { json.field(name, fact); }, value);
        }
        json.end_object();
    }
    json.end_array().end_object();
    return json.take() + "\n";
}

}  // namespace headway::scenarios
