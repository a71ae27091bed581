#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <optional>
#include <stdexcept>

#include "cli/catalogue_choice.h"
#include "cli/commands.h"
#include "cli/evaluation_cases.h"
#include "cli/evaluation_run.h"
#include "cli/evaluation_summary.h"
#include "cli/exit_codes.h"
#include "cli/interrupt.h"
#include "cli/output_file.h"
#include "cli/scenario_check.h"
#include "cli/simulated_run.h"
#include "cli/standard_output.h"
#include "cli/worker_processes.h"
#include "scenarios/language/config_error.h"
#include "scenarios/record/evaluation_report.h"
#include "scenarios/record/figures.h"
#include "scenarios/record/learning_record.h"

namespace headway::cli {

namespace {

/// Runs done and what is left, on a terminal.
class EvaluationProgress {
  public:
    explicit EvaluationProgress(std::size_t runs) : runs_(runs), shown_(::isatty(STDERR_FILENO) != 0) {}
    ~EvaluationProgress() {
        if (shown_) std::fputs("\r\033[K", stderr);
    }
    void operator()(std::size_t finished) {
        if (!shown_) return;
        std::string left;
        if (finished > 0) {
            const auto spent = std::chrono::steady_clock::now() - begun_;
            const auto ns = std::chrono::duration_cast<std::chrono::nanoseconds>(spent).count();
            left = ", " +
                   scenarios::duration_text(ns / static_cast<std::int64_t>(finished) *
                                            static_cast<std::int64_t>(runs_ - finished)) +
                   " left";
        }
        std::fprintf(stderr, "\r\033[K%zu of %zu runs%s", finished, runs_, left.c_str());
        std::fflush(stderr);
    }

  private:
    std::size_t runs_;
    bool shown_;
    std::chrono::steady_clock::time_point begun_ = std::chrono::steady_clock::now();
};

/// Static first, then what was asked for, each once.
std::vector<std::string> judged_policies(const EvaluateArguments& arguments) {
    std::vector<std::string> names = {"static"};
    for (const std::string& name : arguments.policies) {
        scenarios::KeyPlaces argument;
        argument.add("policy", "evaluate " + name);
        expect_policy(name, argument);
        if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
    }
    return names;
}

/// Means over the seeds of one policy in one scenario; absent when a run was interrupted.
std::optional<scenarios::EvaluatedRun> mean_of(const std::string& policy, int seeds,
                                               const std::optional<std::string>* answers) {
    scenarios::EvaluatedRun run;
    run.policy = policy;
    double reactions = 0.0, reaction_sum = 0.0;
    for (int seed = 0; seed < seeds; ++seed) {
        if (!answers[seed]) return std::nullopt;
        const EvaluationFigures figures = evaluation_from_bytes(*answers[seed]);
        if (figures.complete == 0.0) return std::nullopt;
        run.goodput += figures.goodput / seeds;
        run.switches += figures.switches / seeds;
        run.decisions += figures.decisions / seeds;
        run.lost_iterations += figures.lost_iterations / seeds;
        run.paused_s += figures.paused_s / seeds;
        if (figures.decisions > 0.0) {
            run.only_choice += figures.only_choice / figures.decisions / seeds;
            run.handed_over += figures.handed_over / figures.decisions / seeds;
            run.rolled_back += figures.rolled_back / figures.decisions / seeds;
        }
        reactions += figures.reactions;
        reaction_sum += figures.reaction_sum_s;
    }
    if (reactions > 0.0) run.reaction_s = reaction_sum / reactions;
    return run;
}

void write_record(const std::filesystem::path& file, const scenarios::EvaluationReport& report,
                  const std::string& version) {
    std::string names;
    for (const scenarios::EvaluatedPolicy& policy : report.policies)
        names += (names.empty() ? "" : ", ") + policy.policy;
    const scenarios::LearningHeader header{scenarios::LearningHeader::Kind::kEvaluation, names,
                                           static_cast<std::uint64_t>(report.seeds), report.planned};
    scenarios::LearningRecordWriter record(file, header, scenarios::current_provenance("headway " + version));
    for (const scenarios::EvaluationEvent& event : evaluation_events(report))
        record.add(scenarios::evaluation_line(event));
    record.end(report.complete);
}

}  // namespace

int evaluate(const EvaluateArguments& arguments, const std::string& version) {
    const std::vector<EvaluationCase> cases =
        evaluation_cases(arguments.on, chosen_catalogue(arguments), arguments.limit);
    const std::vector<std::string> names = judged_policies(arguments);
    if (arguments.out) {
        expect_writable("--out", *arguments.out, arguments.force);
        expect_record_or_nothing("--out", *arguments.out);
    }
    const auto seeds = static_cast<std::size_t>(arguments.seeds);
    const std::size_t runs = cases.size() * names.size() * seeds;
    const policies::GuardOptions guards = guards_without(arguments.no_guards);
    catch_interrupts();
    // Scenario by scenario, so that an interrupted evaluation has whole scenarios to report.
    const auto run = [&](std::size_t index) {
        const EvaluationCase& one = cases[index / (names.size() * seeds)];
        const std::string& policy = names[index / seeds % names.size()];
        try {
            return evaluation_bytes(run_evaluation(one, policy, index % seeds, arguments.longest_path, guards));
        } catch (const std::exception& error) {
            throw std::runtime_error("scenario '" + one.scenario.name + "' under " + policy + ": " + error.what());
        }
    };
    EvaluationProgress progress(runs);
    ProcessOptions options;
    options.at_a_time = arguments.workers ? static_cast<std::size_t>(*arguments.workers) : 0;
    options.end_asked = interrupted;
    options.progress = [&](std::size_t finished) { progress(finished); };
    const std::vector<std::optional<std::string>> answers = answers_of_processes(runs, run, options);

    scenarios::EvaluationReport report;
    report.planned = static_cast<int>(cases.size());
    report.seeds = arguments.seeds;
    report.path = arguments.longest_path ? "longest" : "automatic";
    for (std::size_t c = 0; c < cases.size(); ++c) {
        scenarios::EvaluatedScenario scenario{cases[c].scenario.name, cases[c].family, {}};
        for (std::size_t p = 0; p < names.size(); ++p) {
            auto mean = mean_of(names[p], arguments.seeds, &answers[(c * names.size() + p) * seeds]);
            if (mean) scenario.runs.push_back(std::move(*mean));
        }
        if (scenario.runs.size() == names.size()) report.scenarios.push_back(std::move(scenario));
    }
    report.complete = report.scenarios.size() == cases.size();
    if (!report.complete) complain("interrupted: the report covers the scenarios that were finished");
    if (report.scenarios.empty()) return kInterrupted;
    sum_up(names, report);
    if (arguments.out) write_record(*arguments.out, report, version);
    print(arguments.json ? scenarios::evaluation_json(report) : scenarios::evaluation_text(report));
    return report.complete ? kSucceeded : kInterrupted;
}

}  // namespace headway::cli
