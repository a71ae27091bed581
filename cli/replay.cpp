#include <algorithm>
#include <filesystem>
#include <memory>

#include "cli/catalogue_choice.h"
#include "cli/commands.h"
#include "cli/exit_codes.h"
#include "cli/interrupt.h"
#include "cli/output_file.h"
#include "cli/scenario_check.h"
#include "cli/simulated_run.h"
#include "cli/standard_output.h"
#include "cli/wildcards.h"
#include "cli/worker_processes.h"
#include "scenarios/language/config_error.h"
#include "scenarios/record/exports.h"
#include "scenarios/record/progress.h"
#include "scenarios/record/report.h"
#include "scenarios/record/run_writer.h"

namespace headway::cli {

namespace {

struct PreparedRun {
    scenarios::Scenario scenario;
    scenarios::Plan plan;
};

Oversight oversight_of(const ReplayArguments& arguments) {
    Oversight oversight;
    oversight.guards = guards_without(arguments.no_guards);
    oversight.learn = arguments.learn;
    oversight.shadow = arguments.shadow;
    return oversight;
}

/// Reads and checks everything, so that a run that starts has no mistakes left in its input. Wildcards of the strategy
/// get the values that they have in `like`, or are searched. Nothing when Ctrl-C ended that.
std::optional<PreparedRun> prepare(const ReplayArguments& arguments, const scenarios::Catalogue& catalogue,
                                   std::optional<std::uint64_t> seed, const PreparedRun* like = nullptr) {
    std::vector<scenarios::Override> overrides = arguments.overrides;
    if (arguments.policy) {
        scenarios::KeyPlaces option;
        option.add("policy", "--policy " + *arguments.policy);
        expect_policy(*arguments.policy, option);
        overrides.emplace_back("policy", *arguments.policy);
    }
    if (arguments.shadow) {
        scenarios::KeyPlaces option;
        option.add("policy", "--shadow " + *arguments.shadow);
        expect_policy(*arguments.shadow, option);
    }
    if (seed) overrides.emplace_back("seed", std::to_string(*seed));
    scenarios::KeyPlaces places;
    PreparedRun prepared;
    prepared.scenario = scenarios::read_scenario(arguments.scenario, catalogue, overrides, &places);
    if (arguments.iterations) {
        prepared.scenario.run.time.reset();
        prepared.scenario.run.iterations = *arguments.iterations;
    }
    expect_policy(prepared.scenario.policy, places);
    if (like != nullptr) {
        prepared.scenario.strategy = like->scenario.strategy;
        prepared.scenario.job.micro_batch = like->scenario.job.micro_batch;
    } else if (!resolve_wildcards(prepared.scenario, places)) {
        return std::nullopt;
    }
    prepared.plan = plan_that_fits(prepared.scenario, places);
    return prepared;
}

int replay_once(const ReplayArguments& arguments, const PreparedRun& prepared, const std::string& version) {
    scenarios::SummarySink summary;
    scenarios::ProgressBar progress;
    std::unique_ptr<scenarios::RecordWriter> record;
    std::unique_ptr<scenarios::TraceWriter> trace;
    std::vector<scenarios::RunSink*> sinks = {&summary, &progress};
    if (arguments.out) {
        scenarios::RecordOptions options;
        options.level = arguments.level;
        options.provenance = scenarios::current_provenance("headway " + version);
        record = std::make_unique<scenarios::RecordWriter>(*arguments.out, options);
        sinks.push_back(record.get());
    }
    if (arguments.trace) {
        trace = std::make_unique<scenarios::TraceWriter>(*arguments.trace);
        sinks.push_back(trace.get());
    }
    scenarios::SinkList all(sinks);
    const bool operations = arguments.trace || arguments.level == scenarios::RecordLevel::kOperations;
    const bool complete = run_simulation(prepared.scenario, prepared.plan, oversight_of(arguments), operations, all);
    if (!complete) complain("interrupted: the report covers what was done");
    print(arguments.json ? scenarios::report_json(summary.summary()) : scenarios::report_text(summary.summary()));
    return complete ? kSucceeded : kInterrupted;
}

int replay_seeds(const ReplayArguments& arguments, const scenarios::Catalogue& catalogue, const PreparedRun& first) {
    const std::uint64_t first_seed = first.scenario.seed;
    std::vector<PreparedRun> runs;
    for (int index = 0; index < arguments.seeds; ++index) {
        runs.push_back(*prepare(arguments, catalogue, first_seed + static_cast<std::uint64_t>(index), &first));
    }
    catch_interrupts();
    const auto run = [&](std::size_t index) {
        scenarios::SummarySink summary;
        run_simulation(runs[index].scenario, runs[index].plan, oversight_of(arguments), false, summary);
        return summary.summary();
    };
    const std::vector<scenarios::RunSummary> all = summaries_of_processes(runs.size(), run, interrupted);
    std::vector<scenarios::RunSummary> complete;
    std::copy_if(all.begin(), all.end(), std::back_inserter(complete),
                 [](const scenarios::RunSummary& summary) { return summary.complete; });
    if (complete.size() < runs.size()) {
        complain("interrupted: " + std::to_string(complete.size()) + " of " + std::to_string(runs.size()) +
                 " runs were complete");
    }
    if (!complete.empty()) {
        print(arguments.json ? scenarios::repeats_json(complete) : scenarios::repeats_text(complete));
    }
    return complete.size() == runs.size() ? kSucceeded : kInterrupted;
}

}  // namespace

int replay(const ReplayArguments& arguments, const std::string& version) {
    const scenarios::Catalogue catalogue = chosen_catalogue(arguments);
    const std::optional<PreparedRun> prepared = prepare(arguments, catalogue, arguments.seed);
    if (!prepared) return kInterrupted;
    if (arguments.out) {
        expect_writable("--out", *arguments.out, arguments.force);
        expect_record_or_nothing("--out", *arguments.out);
    }
    if (arguments.learn) {
        const std::string& policy = prepared->scenario.policy;
        if (!policy.ends_with(".policy"))
            throw scenarios::ConfigError("--learn: the policy is '" + policy +
                                         "'; only a trained one (--policy FILE.policy) learns");
        if (arguments.seeds > 1) throw scenarios::ConfigError("--learn: from one run at a time (--seeds 1)");
        if (arguments.learn->extension() != ".policy")
            throw scenarios::ConfigError("--learn " + arguments.learn->string() + ": policies are called FILE.policy");
        expect_writable("--learn", *arguments.learn, arguments.force);
    }
    if (arguments.trace) {
        expect_writable("--trace", *arguments.trace, arguments.force);
        expect_another_file("--trace", *arguments.trace, arguments.scenario, "the scenario");
        if (arguments.out) expect_another_file("--trace", *arguments.trace, *arguments.out, "the file of --out too");
    }
    if (arguments.seeds > 1) return replay_seeds(arguments, catalogue, *prepared);
    return replay_once(arguments, *prepared, version);
}

}  // namespace headway::cli
