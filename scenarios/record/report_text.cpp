#include <algorithm>
#include <cstdio>
#include <numeric>
#include <stdexcept>

#include "scenarios/record/figures.h"
#include "scenarios/record/report.h"

namespace headway::scenarios {

namespace {

constexpr std::size_t kReportWidth = 80;
constexpr std::size_t kLabelWidth = 18;
constexpr std::size_t kDisturbancesListed = 16;
constexpr std::size_t kNameWidth = 31;  ///< of a disturbance

std::string labelled(std::string_view label, const std::string& rest) {
    return "  " + pad_right(label, kLabelWidth) + rest + "\n";
}

std::string time_share_text(const RunSummary& summary) {
    constexpr std::size_t kBarWidth = 46;
    struct Part {
        const char* label;
        double fraction;
    };
    const TimeFractions& share = summary.time_share;
    const Part parts[] = {{"compute", share.compute},     {"bubble", share.bubble},
                          {"tensor comm.", share.tensor}, {"pipeline comm.", share.pipeline},
                          {"data comm.", share.data},     {"straggling", share.straggling},
                          {"recovery", share.recovery}};
    std::string text = "\nWhere time goes (communication: only what compute does not hide)\n";
    for (const Part& part : parts) {
        std::string line = "  " + pad_right(part.label, kLabelWidth - 2) + pad_left(percent_text(part.fraction), 9);
        const std::string bar = bar_text(part.fraction, kBarWidth);
        if (!bar.empty()) line += "  " + bar;
        text += line + "\n";
    }
    std::string recovery;
    const auto mention = [&](const char* what, std::int64_t ns) {
        if (ns > 0) recovery += (recovery.empty() ? "" : ", ") + std::string(what) + " " + duration_text(ns);
    };
    mention("waiting after losses", summary.loss_ns);
    mention("repeating lost work", summary.repeated_ns);
    mention("checkpoint saves", summary.checkpoint_ns);
    mention("switches", summary.switch_ns);
    mention("not covered", summary.uncovered_ns);
    if (!recovery.empty()) text += wrap_text("recovery is " + recovery, 4, kReportWidth);
    return text;
}

std::string disturbances_text(const RunSummary& summary) {
    if (summary.disturbances.empty()) return "\nNothing was disturbed.\n";
    // In order of time; when there are many, the dearest of them.
    std::vector<std::size_t> order(summary.disturbances.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    const auto& all = summary.disturbances;
    std::stable_sort(order.begin(), order.end(), [&](auto a, auto b) { return all[a].cost_ns() > all[b].cost_ns(); });
    std::int64_t rest_ns = 0;
    for (std::size_t i = kDisturbancesListed; i < order.size(); ++i) rest_ns += all[order[i]].cost_ns();
    order.resize(std::min(order.size(), kDisturbancesListed));
    std::stable_sort(order.begin(), order.end(), [&](auto a, auto b) { return all[a].start_ns < all[b].start_ns; });

    std::string text = "\n" + pad_right("What each disturbance cost", 34) + pad_left("from", 12) + pad_left("for", 12) +
                       pad_left("cost", 13) + pad_left("share", 9) + "\n";
    for (const std::size_t i : order) {
        const DisturbanceCost& cost = all[i];
        const std::string name = cost.name.empty() ? cost.kind : cost.name;
        // A name that is too long for its column gets a line of its own: cut names would look alike.
        const bool fits = text_width(name) <= kNameWidth;
        if (!fits) text += "  " + pad_right(name, std::min(text_width(name), kReportWidth - 2)) + "\n";
        text += "  " + pad_right(fits ? name : "", kNameWidth) + pad_left(duration_text(cost.start_ns), 13) +
                pad_left(cost.duration_ns < 0 ? "-" : duration_text(cost.duration_ns), 12) +
                pad_left(duration_text(cost.cost_ns()), 13) + pad_left(percent_text(cost.share), 9) + "\n";
        for (const std::string& what : cost.what) text += wrap_text(what, 6, kReportWidth);
        if (cost.paused_ns > 0 || cost.repeated_ns > 0) {
            std::string parts = "stood still " + duration_text(cost.paused_ns);
            if (cost.iterations_lost > 0) {
                parts += ", lost " + count_text(static_cast<double>(cost.iterations_lost)) +
                         " iterations (trained again in " + duration_text(cost.repeated_ns) + ")";
            }
            if (cost.slowed_ns > 0) parts += ", slowed iterations by " + duration_text(cost.slowed_ns);
            text += wrap_text(parts, 6, kReportWidth);
        }
    }
    const std::size_t more = all.size() - order.size();
    if (more > 0) {
        text += "  and " + count_text(static_cast<double>(more)) + " that cost less, together " +
                duration_text(rest_ns) + "\n";
    }
    return text;
}

std::string slowest_text(const RunSummary& summary) {
    if (summary.slowest.empty()) return "";
    constexpr std::size_t kListed = 5;
    std::string text = "\n" + pad_right("Slowest GPUs (speed over nominal)", 53) + pad_left("mean", 9) +
                       pad_left("lowest", 9) + pad_left("hottest", 9) + "\n";
    for (std::size_t i = 0; i < std::min(summary.slowest.size(), kListed); ++i) {
        const SlowGpu& slow = summary.slowest[i];
        std::string place = "GPU " + std::to_string(slow.figures.gpu) + "  node " + std::to_string(slow.node) +
                            " slot " + std::to_string(slow.slot);
        if (slow.stage >= 0) {
            place += "  stage " + std::to_string(slow.stage) + " replica " + std::to_string(slow.replica);
        }
        text += "  " + pad_right(place, 51) + pad_left(percent_text(slow.figures.mean_speed), 9) +
                pad_left(percent_text(slow.figures.min_speed), 9) +
                pad_left(count_text(slow.figures.max_temperature_c) + " °C", 9) + "\n";
    }
    return text;
}

std::string decisions_text(const RunSummary& summary) {
    const auto count = [](std::int64_t number) { return count_text(static_cast<double>(number)); };
    std::string text = "\n" + count(summary.decisions) + " decisions, " + count(summary.switches) + " switches";
    if (summary.switch_ns > 0) text += ", which stood still for " + duration_text(summary.switch_ns);
    text += "\n";
    if (summary.decisions > 0 && summary.decisions_without_choice == summary.decisions) {
        text += "  nothing else was legal, or worth offering, at any of them\n";
    } else if (summary.decisions_without_choice > 0) {
        text +=
            "  at " + count(summary.decisions_without_choice) + " of them nothing else was legal, or worth offering\n";
    }
    if (summary.handed_over > 0) {
        text +=
            "  " + count(summary.handed_over) + " handed over to the rule, outside what the policy was trained on\n";
    }
    if (summary.rolled_back > 0) {
        text += "  " + count(summary.rolled_back) + " switches taken back, which missed their prediction\n";
    }
    if (!summary.shadow.empty()) {
        const std::int64_t regret_ns = summary.shadow_regret_ns;
        text +=
            wrap_text("shadow " + summary.shadow + " would have chosen otherwise at " + count(summary.shadow_differs) +
                          ", predicted to " +
                          (regret_ns <= 0 ? "save " + duration_text(-regret_ns) : "lose " + duration_text(regret_ns)),
                      2, kReportWidth);
    }
    return text;
}

std::string repeated_seeds_text(const std::vector<RunSummary>& runs) {
    std::string seeds;
    for (const RunSummary& run : runs) seeds += (seeds.empty() ? "" : ", ") + std::to_string(run.seed);
    return seeds;
}

std::string difference_text(const Figure& figure, const RunSummary& a, const RunSummary& b) {
    const auto difference = figure_difference(figure, a, b);
    if (!difference) return "-";
    const bool points = figure.unit == FigureUnit::kFraction;
    std::string text = percent_text(*difference);
    if (text == "-0.0 %") text = "0.0 %";
    if (text == "0.0 %") return points ? "0.0 points" : text;
    if (*difference > 0.0) text.insert(0, "+");
    return points ? text.substr(0, text.size() - 1) + "points" : text;
}

}  // namespace

std::string report_text(const RunSummary& summary) {
    std::string text =
        summary.scenario + ", policy " + summary.policy + ", seed " + std::to_string(summary.seed) + "\n";
    text += wrap_text(count_text(summary.gpus) + " GPUs: " + summary.layout, 0, kReportWidth);
    text += count_text(static_cast<double>(summary.iterations)) + " iterations in " + duration_text(summary.wall_ns);
    if (summary.iterations_lost > 0) {
        text += ", " + count_text(static_cast<double>(summary.iterations_lost)) + " more lost to rollback";
    }
    text += "\n";
    if (!summary.complete) text += "interrupted: the figures are of what was run\n";
    text += "\n";

    const auto seconds = [](double value) { return figure_text(FigureUnit::kSeconds, value); };
    text +=
        labelled("iteration time", "mean " + seconds(summary.iteration_mean_s) + "   p50 " +
                                       seconds(summary.iteration_p50_s) + "   p95 " + seconds(summary.iteration_p95_s));
    text +=
        labelled("tokens/s", figure_text(FigureUnit::kRate, summary.tokens_per_s) + "   pauses and lost work included");
    text += labelled("TFLOP/s per GPU",
                     figure_text(FigureUnit::kTflops, summary.tflops_per_gpu) + "   while iterating (" +
                         figure_text(FigureUnit::kTflops, summary.model_tflops_per_gpu) + " without recomputation)");
    text += labelled("MFU", percent_text(summary.mfu) + "   while iterating");
    text += labelled("goodput", percent_text(summary.goodput) + "   of the healthy plan, whose iteration takes " +
                                    duration_text(summary.healthy_iteration_ns));
    if (summary.first_loss && summary.last_loss) {
        char losses[64];
        std::snprintf(losses, sizeof losses, "%.4f at first, %.4f at last", *summary.first_loss, *summary.last_loss);
        text += labelled("loss", losses);
    }
    text += time_share_text(summary);
    text += disturbances_text(summary);
    text += slowest_text(summary);
    return text + decisions_text(summary);
}

std::string repeats_text(const std::vector<RunSummary>& runs) {
    if (runs.empty()) throw std::invalid_argument("a report of no runs");
    std::string rows;
    for (const Figure& figure : kFigures) {
        const Estimate estimate = estimate_figure(figure, runs);
        if (figure.group == "time_share" && figure.key == "compute") rows += "\nWhere time goes\n";
        if (figure.key == "decisions") rows += "\n";
        const std::string interval = estimate.half_width ? "± " + figure_text(figure.unit, *estimate.half_width) : "";
        rows += "  " + pad_right(figure.label, kLabelWidth) + pad_left(figure_text(figure.unit, estimate.mean), 14) +
                "  " + interval;
        while (rows.back() == ' ') rows.pop_back();
        rows += "\n";
    }
    return runs.front().scenario + ", policy " + runs.front().policy + "\n" +
           count_text(static_cast<double>(runs.size())) + " runs (seeds " + repeated_seeds_text(runs) +
           "): mean and 95 % confidence interval of the mean\n\n" + rows;
}

std::string compare_text(const std::string& name_a, const RunSummary& a, const std::string& name_b,
                         const RunSummary& b) {
    constexpr std::size_t kColumn = 19;
    const auto row = [&](std::string_view label, const std::string& left, const std::string& right,
                         const std::string& difference) {
        std::string line = "  " + pad_right(label, kLabelWidth) +
                           pad_left(pad_right(left, std::min(text_width(left), kColumn)), kColumn) + "  " +
                           pad_left(pad_right(right, std::min(text_width(right), kColumn)), kColumn) +
                           pad_left(difference, 15);
        while (line.back() == ' ') line.pop_back();
        return line + "\n";
    };
    std::string text = row("", name_a, name_b, "difference");
    text += row("scenario", a.scenario, b.scenario, a.scenario == b.scenario ? "" : "differs");
    text += row("policy", a.policy, b.policy, a.policy == b.policy ? "" : "differs");
    text += row("seed", std::to_string(a.seed), std::to_string(b.seed), a.seed == b.seed ? "" : "differs");
    text += row("wall time", duration_text(a.wall_ns), duration_text(b.wall_ns), "");
    if (!a.complete || !b.complete) {
        text += row("state", a.complete ? "complete" : "interrupted", b.complete ? "complete" : "interrupted", "");
    }
    text += "\n";
    for (const Figure& figure : kFigures) {
        if (figure.group == "time_share" && figure.key == "compute") text += "\nWhere time goes\n";
        if (figure.key == "decisions") text += "\n";
        text += row(figure.label, figure_text(figure.unit, figure.of(a)), figure_text(figure.unit, figure.of(b)),
                    difference_text(figure, a, b));
    }
    const auto same_disturbances = [&] {
        return a.disturbances.size() == b.disturbances.size() &&
               std::equal(a.disturbances.begin(), a.disturbances.end(), b.disturbances.begin(),
                          [](const auto& x, const auto& y) { return x.name == y.name && x.start_ns == y.start_ns; });
    };
    if (!a.disturbances.empty() && same_disturbances()) {
        text += "\nWhat each disturbance cost\n";
        for (std::size_t i = 0; i < a.disturbances.size(); ++i) {
            const DisturbanceCost& left = a.disturbances[i];
            const DisturbanceCost& right = b.disturbances[i];
            std::string name = left.name.empty() ? left.kind : left.name;
            if (text_width(name) > kLabelWidth) {
                text += "  " + pad_right(name, std::min(text_width(name), kReportWidth - 2)) + "\n";
                name.clear();
            }
            text += row(name, duration_text(left.cost_ns()), duration_text(right.cost_ns()),
                        duration_text(right.cost_ns() - left.cost_ns()));
        }
    }
    return text;
}

}  // namespace headway::scenarios
