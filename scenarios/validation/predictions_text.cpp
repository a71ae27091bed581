#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>

#include "scenarios/validation/predict.h"

namespace headway::scenarios {

namespace {

template <class... Values>
std::string formatted(const char* format, Values... values) {
    char line[512];
    std::snprintf(line, sizeof line, format, values...);
    return line;
}

std::string signed_percent(double fraction) {
    return formatted("%+.1f %%", 100.0 * fraction);
}

/// Five significant digits, without a power of ten.
std::string figure_text(double value) {
    const double size = value < 0 ? -value : value;
    const int decimals = size >= 10000 ? 0 : size >= 1000 ? 1 : size >= 100 ? 2 : size >= 10 ? 3 : 4;
    return formatted("%.*f", decimals, value);
}

std::string joined_ids(const std::vector<std::string>& ids) {
    std::string all;
    for (const std::string& id : ids) all += (all.empty() ? "" : ", ") + id;
    return all;
}

std::string figures_line(const ValidationGroup& figures) {
    if (!figures.mape) return "no row could be predicted";
    std::string line = formatted("mean %.1f %%, worst %.1f %%, bias %+.1f %%", 100.0 * *figures.mape,
                                 100.0 * *figures.worst, 100.0 * *figures.bias);
    if (figures.kendall_tau) line += formatted(", rank correlation %.2f", *figures.kendall_tau);
    return line;
}

}  // namespace

std::string predictions_text(const std::vector<TablePrediction>& tables, bool every_row) {
    std::string text;
    int rows_of_all = 0;
    double sum = 0.0;
    for (const TablePrediction& table : tables) {
        text += (text.empty() ? "" : "\n") + table.figures.file + "\n";
        if (!table.title.empty()) text += "  " + table.title + "\n";
        for (const std::string& note : table.figures.notes) text += "  taken: " + note + "\n";
        std::size_t width = 8;
        for (const ValidationRow& row : table.figures.rows) width = std::max(width, row.id.size());
        const int id_width = static_cast<int>(std::min<std::size_t>(width, 48));
        ValidationGroup all;
        std::map<std::string, std::vector<std::string>> unpredicted;  // by reason
        if (every_row) {
            text += formatted("\n  %-*s %12s %12s %9s   (%s)\n", id_width, "row", "predicted", "measured", "error",
                              table.quantity.c_str());
        }
        for (const ValidationRow& row : table.figures.rows) {
            const std::string measured = row.measured ? figure_text(*row.measured) : "-";
            if (!row.predicted) {
                if (every_row) {
                    text += formatted("  %-*s %12s %12s %9s   ", id_width, row.id.c_str(), "-", measured.c_str(), "-");
                    text += row.reason + "\n";
                } else {
                    unpredicted[row.reason].push_back(row.id);
                }
                continue;
            }
            ++all.rows;
            sum += std::abs(*row.error);
            if (every_row) {
                text +=
                    formatted("  %-*s %12s %12s %9s\n", id_width, row.id.c_str(), figure_text(*row.predicted).c_str(),
                              measured.c_str(), signed_percent(*row.error).c_str());
            }
        }
        for (const auto& [reason, ids] : unpredicted) {
            text += "  not predicted, " + std::to_string(ids.size()) + (ids.size() == 1 ? " row (" : " rows (");
            text += ids.size() <= 4 ? joined_ids(ids) : ids.front() + " to " + ids.back();
            text += "): " + reason + "\n";
        }
        all.mape = table.figures.mape;
        all.worst = table.figures.worst;
        all.bias = table.figures.bias;
        all.kendall_tau = table.figures.kendall_tau;
        rows_of_all += all.rows;
        const bool show_groups =
            table.figures.groups.size() > 1 && std::any_of(table.figures.groups.begin(), table.figures.groups.end(),
                                                           [](const auto& group) { return group.rows > 1; });
        if (show_groups) {
            text += "\n";
            for (const ValidationGroup& group : table.figures.groups) {
                text +=
                    formatted("  %-56s %4d %s ", group.name.c_str(), group.rows, group.rows == 1 ? "row: " : "rows:") +
                    figures_line(group) + "\n";
            }
        }
        if (table.figures.large_messages) {
            text += formatted("\n  messages of 1 MB or more, %d rows: ", table.figures.large_messages->rows) +
                    figures_line(*table.figures.large_messages) + "\n";
        }
        text += formatted("%s  %d of %zu rows: ", every_row || show_groups ? "\n" : "", all.rows,
                          table.figures.rows.size()) +
                figures_line(all) + "\n";
    }
    if (tables.size() > 1 && rows_of_all > 0) {
        text += formatted("\nall %zu tables, %d rows: mean %.1f %%\n", tables.size(), rows_of_all,
                          100.0 * sum / rows_of_all);
    }
    return text;
}

}  // namespace headway::scenarios
