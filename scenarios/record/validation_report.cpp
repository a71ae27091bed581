#include "scenarios/record/validation_report.h"

#include "scenarios/record/json_text.h"

namespace headway::scenarios {

namespace {

void add_group(JsonText& json, const ValidationGroup& group) {
    json.begin_object()
        .field("name", group.name)
        .field("rows", group.rows)
        .field("mape", group.mape)
        .field("worst", group.worst)
        .field("bias", group.bias)
        .field("kendall_tau", group.kendall_tau)
        .end_object();
}

}  // namespace

std::string validation_json(const ValidationReport& report) {
    JsonText json;
    json.begin_object().key("tables").begin_array();
    for (const ValidationTable& table : report.tables) {
        json.begin_object().field("file", table.file).key("rows").begin_array();
        for (const ValidationRow& row : table.rows) {
            json.begin_object()
                .field("id", row.id)
                .field("measured", row.measured)
                .field("predicted", row.predicted)
                .field("error", row.error);
            if (!row.reason.empty()) json.field("reason", row.reason);
            json.end_object();
        }
        json.end_array()
            .field("mape", table.mape)
            .field("worst", table.worst)
            .field("bias", table.bias)
            .field("kendall_tau", table.kendall_tau)
            .key("groups")
            .begin_array();
        for (const ValidationGroup& group : table.groups) add_group(json, group);
        json.end_array();
        if (table.large_messages) {
            json.key("large_messages");
            add_group(json, *table.large_messages);
        }
        json.field("notes", table.notes).end_object();
    }
    return json.end_array().field("mape", report.mape).end_object().take() + "\n";
}

}  // namespace headway::scenarios
