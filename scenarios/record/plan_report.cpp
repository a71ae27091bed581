#include "scenarios/record/plan_report.h"

#include <algorithm>
#include <array>
#include <cstddef>

#include "scenarios/language/words.h"
#include "scenarios/record/figures.h"
#include "scenarios/record/json_text.h"

namespace headway::scenarios {

namespace {

constexpr double kGib = 1073741824.0;
constexpr std::size_t kPlansWidth = 110;

bool placed_in_order(const Plan& plan) {
    for (std::size_t rank = 0; rank < plan.gpu_of_rank.size(); ++rank)
        if (plan.gpu_of_rank[rank] != static_cast<int>(rank)) return false;
    return true;
}

std::vector<int> split_of(const Plan& plan, int replica) {
    const auto first =
        plan.layers_of_cell.begin() + static_cast<std::ptrdiff_t>(replica) * plan.layout.virtual_stages();
    return {first, first + plan.layout.virtual_stages()};
}

void add_split(JsonText& json, const Plan& plan) {
    json.key("layers_per_stage");
    if (plan.same_layers_everywhere()) {
        json.value(split_of(plan, 0));
        return;
    }
    json.begin_array();
    for (int replica = 0; replica < plan.layout.data; ++replica) json.value(split_of(plan, replica));
    json.end_array();
}

void add_row(JsonText& json, const PlanRow& row, std::optional<std::size_t> rank) {
    const Layout& layout = row.plan.layout;
    const auto share = [&](std::int64_t ns) { return static_cast<double>(ns) / static_cast<double>(row.iteration_ns); };
    json.begin_object();
    if (rank) json.field("rank", *rank);
    json.field("layout", describe(layout))
        .field("iteration_s", static_cast<double>(row.iteration_ns) * 1e-9)
        .field("tokens_per_s", row.tokens_per_s)
        .field("mfu", row.mfu)
        .field("memory_gib", static_cast<double>(row.memory_bytes) / kGib)
        .field("gpu_memory_gib", static_cast<double>(row.gpu_memory_bytes) / kGib)
        .field("fullest_stage", row.fullest_stage)
        .field("why", row.why)
        .field("tensor", layout.tensor)
        .field("pipeline", layout.pipeline)
        .field("data", layout.data)
        .field("context", layout.context)
        .field("virtual_pipeline", layout.virtual_pipeline)
        .field("schedule", word_of(layout.schedule))
        .field("zero_bubble_memory", layout.zero_bubble_memory)
        .field("recompute", word_of(layout.recompute))
        .field("micro_batch", row.micro_batch)
        .field("gpus", layout.world_size())
        .key("time_share")
        .begin_object()
        .field("compute", share(row.compute_ns))
        .field("bubble", share(row.bubble_ns))
        .field("tensor", share(row.tensor_ns))
        .field("pipeline", share(row.pipeline_ns))
        .field("data", share(row.data_ns))
        .field("contention", share(row.contention_ns))
        .end_object();
    add_split(json, row.plan);
    json.field("micro_batches_per_replica", row.plan.micro_batches_of_replica).key("placement");
    if (placed_in_order(row.plan)) {
        json.null();
    } else {
        json.value(row.plan.gpu_of_rank);
    }
    json.end_object();
}

/// "3 x 12, 4 x 11": runs of equal numbers.
std::string runs_text(const std::vector<int>& numbers) {
    std::string text;
    for (std::size_t begin = 0; begin < numbers.size();) {
        std::size_t end = begin;
        while (end < numbers.size() && numbers[end] == numbers[begin]) ++end;
        text += (text.empty() ? "" : ", ") + std::to_string(numbers[begin]);
        if (end - begin > 1) text += " (" + std::to_string(end - begin) + " times)";
        begin = end;
    }
    return text;
}

bool as_even_as_possible(const std::vector<int>& numbers) {
    const auto [least, most] = std::minmax_element(numbers.begin(), numbers.end());
    return *most - *least <= 1;
}

/// What the degrees do not say: uneven layers and shares, GPUs left out.
std::string details_text(const PlanRow& row, int gpus) {
    std::string text;
    const auto add = [&](const std::string& part) { text += (text.empty() ? "" : "; ") + part; };
    const Plan& plan = row.plan;
    if (!plan.same_layers_everywhere()) {
        add("layers differ from replica to replica, replica 0: " + runs_text(split_of(plan, 0)));
    } else if (!as_even_as_possible(split_of(plan, 0))) {
        add("layers " + runs_text(split_of(plan, 0)));
    }
    const auto [least, most] =
        std::minmax_element(plan.micro_batches_of_replica.begin(), plan.micro_batches_of_replica.end());
    if (*least != *most) add("micro-batches " + runs_text(plan.micro_batches_of_replica));
    if (const int idle = gpus - plan.layout.world_size(); idle > 0)
        add(std::to_string(idle) + (idle == 1 ? " GPU idle" : " GPUs idle"));
    return text;
}

std::string layout_text(const PlanRow& row, bool micro_batches_differ) {
    Layout layout = row.plan.layout;
    layout.sequence_parallel = layout.distributed_optimizer = false;  // the same in all rows
    std::string text = describe(layout);
    if (micro_batches_differ) text += ", micro-batch " + std::to_string(row.micro_batch);
    return text;
}

std::string gib_text(std::int64_t bytes) {
    char text[32];
    std::snprintf(text, sizeof text, "%.1f", static_cast<double>(bytes) / kGib);
    return text;
}

using Cells = std::array<std::string, 6>;

Cells cells_of(const PlanRow& row, const std::string& rank, bool micro_batches_differ) {
    return {rank,
            layout_text(row, micro_batches_differ),
            figure_text(FigureUnit::kSeconds, static_cast<double>(row.iteration_ns) * 1e-9),
            count_text(row.tokens_per_s),
            percent_text(row.mfu),
            gib_text(row.memory_bytes) + " of " + gib_text(row.gpu_memory_bytes) + " GiB"};
}

std::string line_of(const Cells& cells, const std::array<std::size_t, 6>& widths) {
    std::string line;
    for (std::size_t column = 0; column < cells.size(); ++column) {
        const bool words = column == 1;
        line += (column == 0 ? "" : "  ") +
                (words ? pad_right(cells[column], widths[column]) : pad_left(cells[column], widths[column]));
    }
    return line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
}

}  // namespace

std::string plans_json(const PlanReport& report) {
    JsonText json;
    json.begin_object()
        .field("scenario", report.scenario)
        .field("state", report.state)
        .field("gpus", report.gpus)
        .key("plans")
        .begin_array();
    for (std::size_t i = 0; i < report.plans.size(); ++i) add_row(json, report.plans[i], i + 1);
    json.end_array().key("own");
    if (report.own) {
        add_row(json, *report.own, std::nullopt);
    } else {
        json.null();
    }
    json.field("layouts", report.layouts)
        .field("costed", report.costed)
        .field("evaluated", report.evaluated)
        .field("simulated", report.simulated)
        .field("complete", report.complete)
        .end_object();
    return json.take() + "\n";
}

std::string plans_text(const PlanReport& report) {
    std::string text = report.scenario + ": best layouts " + (report.model.empty() ? "" : "of " + report.model + " ") +
                       "on " + count_text(report.gpus) + (report.gpus == 1 ? " GPU, " : " GPUs, ") + report.state +
                       "\n";
    text += "  " + count_text(static_cast<double>(report.layouts)) + " layouts searched, " +
            count_text(static_cast<double>(report.evaluated)) + " evaluated" +
            (report.simulated > 0 ? ", " + count_text(static_cast<double>(report.simulated)) + " simulated" : "") +
            "; memory is that of the fullest rank\n\n";
    std::vector<const PlanRow*> rows;
    for (const PlanRow& row : report.plans) rows.push_back(&row);
    if (report.own) rows.push_back(&*report.own);
    const bool differ = std::any_of(rows.begin(), rows.end(),
                                    [&](const PlanRow* row) { return row->micro_batch != rows.front()->micro_batch; });
    std::vector<Cells> table = {{"", "layout", "iteration", "tokens/s", "MFU", "memory"}};
    for (std::size_t i = 0; i < rows.size(); ++i)
        table.push_back(cells_of(*rows[i], i < report.plans.size() ? std::to_string(i + 1) : "own", differ));
    std::array<std::size_t, 6> widths{};
    for (const Cells& cells : table)
        for (std::size_t column = 0; column < cells.size(); ++column)
            widths[column] = std::max(widths[column], text_width(cells[column]));
    for (std::size_t i = 0; i < table.size(); ++i) {
        text += line_of(table[i], widths);
        if (i == 0) continue;
        const PlanRow& row = *rows[i - 1];
        text += wrap_text(row.why, widths[0] + 2, kPlansWidth);
        const std::string details = details_text(row, report.gpus);
        if (!details.empty()) text += wrap_text(details, widths[0] + 2, kPlansWidth);
    }
    if (!report.own_problem.empty()) text += "\nThe scenario's own layout cannot run: " + report.own_problem + "\n";
    if (report.own && !report.plans.empty()) {
        const double ratio =
            static_cast<double>(report.own->iteration_ns) / static_cast<double>(report.plans.front().iteration_ns);
        text += ratio > 1.0 ? "\nThe best trains " + percent_text(ratio - 1.0) +
                                  " more tokens a second than the scenario's own layout.\n"
                            : "\nNothing is faster than the scenario's own layout.\n";
    }
    if (!report.run_best.empty())
        text += "\nTo run the best, add to any command:\n" + wrap_text(report.run_best, 2, kPlansWidth);
    return text;
}

}  // namespace headway::scenarios
