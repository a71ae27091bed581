#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <optional>

#include "backend/communicator/host_reduction.h"
#include "backend/launch/process_rank.h"
#include "cli/catalogue_choice.h"
#include "cli/commands.h"
#include "cli/exit_codes.h"
#include "cli/interrupt.h"
#include "cli/output_file.h"
#include "cli/standard_output.h"
#include "cli/training.h"
#include "policies/learning/policy_file.h"
#include "policies/policy.h"
#include "scenarios/language/config_error.h"
#include "scenarios/record/figures.h"
#include "scenarios/record/learning_record.h"
#include "scenarios/record/training_report.h"
#include "scenarios/record/whole_file.h"

namespace headway::cli {

namespace fs = std::filesystem;

namespace {

using Clock = std::chrono::steady_clock;

/// One training of the command: where it keeps its things.
struct TrainingFiles {
    fs::path out;
    fs::path checkpoint;
    std::optional<fs::path> record;
};

constexpr const char* kCheckpoint = "the checkpoint of a training";

std::string whole_text(const fs::path& file) {
    expect_readable(file, kCheckpoint);
    std::ifstream stream(file, std::ios::binary);
    return {std::istreambuf_iterator<char>(stream), {}};
}

void write_whole(const fs::path& file, const std::string& bytes) {
    scenarios::WholeFile whole(file);
    whole.write(bytes);
    whole.commit();
}

/// One line that changes in place on a terminal; elsewhere a line for every validation.
class TrainingProgress {
  public:
    TrainingProgress(bool talks, std::int64_t done, std::int64_t updates)
        : talks_(talks), terminal_(::isatty(STDERR_FILENO) != 0), first_(done), updates_(updates) {}

    void say(const std::string& text) const {
        if (talks_) std::fprintf(stderr, "%s%s%s", terminal_ ? "\r\033[K" : "", text.c_str(), terminal_ ? "" : "\n");
        if (talks_) std::fflush(stderr);
    }
    void wipe() const {
        if (talks_ && terminal_) std::fputs("\r\033[K", stderr);
    }

    void made(const TrainingStep& step, const Training& training) const {
        const policies::UpdateReport& report = step.report;
        char text[320];
        if (step.validated) {
            std::snprintf(
                text, sizeof text, "update %lld: validation goodput %.2f %% (static %.2f, rule %.2f), lost %.1f %%%s",
                static_cast<long long>(report.update), 100 * step.validation_goodput, 100 * training.static_goodput(),
                100 * training.rule_goodput(), 100 * step.validation_lost, step.best ? ", best so far" : "");
            say(std::string(text) + (terminal_ ? "\n" : ""));
        }
        if (!terminal_) return;
        const auto ns = std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now() - begun_).count();
        const std::int64_t left = ns / (report.update - first_) * (updates_ - report.update);
        std::snprintf(text, sizeof text,
                      "update %lld of %lld (%s): goodput %.1f %%, rule %.1f %%, KL %.4f, entropy %.2f, ",
                      static_cast<long long>(report.update), static_cast<long long>(updates_), step.stage.c_str(),
                      100 * report.goodput, 100 * step.reference_goodput, report.kl, report.entropy);
        say(text + scenarios::duration_text(left) + " left");
    }

  private:
    bool talks_;
    bool terminal_;
    std::int64_t first_;
    std::int64_t updates_;
    Clock::time_point begun_ = Clock::now();
};

TrainingSettings settings_of(const TrainArguments& arguments, std::uint64_t seed) {
    TrainingSettings settings;
    settings.seed = seed;
    settings.rounds = arguments.rounds;
    settings.updates = arguments.updates;
    settings.groups = arguments.groups;
    settings.episodes = arguments.episodes;
    settings.teacher = arguments.teacher == "none" ? "" : arguments.teacher;
    settings.demonstrations = settings.teacher.empty() ? 0 : arguments.demonstrations;
    settings.validate_every = arguments.validate_every;
    settings.workers = arguments.workers ? static_cast<std::size_t>(*arguments.workers) : 0;
    return settings;
}

/// Whether some process wants to end: all have to end together.
bool ends_anywhere(policies::Reduction& reduction, bool here) {
    double asked = here ? 1.0 : 0.0;
    reduction.sum(std::span(&asked, 1));
    return asked > 0.0;
}

/// Runs one training to its end, or until it is ended; writes what it has after every update.
class TrainingRun {
  public:
    TrainingRun(const TrainArguments& arguments, const scenarios::ScenarioSet& set, TrainingFiles files,
                std::uint64_t seed, policies::Reduction& reduction)
        : arguments_(arguments),
          files_(std::move(files)),
          seed_(seed),
          set_(set),
          reduction_(reduction),
          training_(begin(set)) {}

    scenarios::TrainedSeed run(Clock::time_point latest, const std::string& version) {
        const TrainingProgress progress(writes(), training_.updates_done(), planned());
        if (!training_.prepared()) progress.say("static, rule and teacher on the validation scenarios ...");
        const bool ready = training_.prepare(interrupted);
        if (ready && writes()) {
            open_record(version);
            keep(training_.state());
        }
        bool ended = !ready;
        while (!ended && !training_.finished()) {
            if (ends_anywhere(reduction_, interrupted() || Clock::now() >= latest)) break;
            const std::optional<TrainingStep> step = training_.step(interrupted);
            if (!step) break;
            if (writes()) save(*step);
            progress.made(*step, training_);
        }
        progress.wipe();
        return finish();
    }

  private:
    std::int64_t planned() const { return arguments_.rounds + arguments_.updates; }
    bool writes() const { return reduction_.rank() == 0; }

    Training begin(const scenarios::ScenarioSet& set) {
        const TrainingSettings settings = settings_of(arguments_, seed_);
        // Of several seeds, those after the one that was interrupted had not begun.
        const bool begun = arguments_.seeds == 1 || fs::exists(files_.checkpoint);
        if (!arguments_.resume || !begun) return Training(set, settings, reduction_);
        return Training::resume(set, settings, reduction_, whole_text(files_.checkpoint), files_.checkpoint.string());
    }

    void open_record(const std::string& version) {
        if (!files_.record) return;
        record_.emplace(
            *files_.record,
            scenarios::LearningHeader{scenarios::LearningHeader::Kind::kTraining, set_.name, seed_, planned()},
            scenarios::current_provenance("headway " + version), training_.record_lines());
        recorded_ = training_.record_lines().size();
    }

    void keep(const std::string& state) const { write_whole(files_.checkpoint, state); }

    void save(const TrainingStep& step) {
        if (step.best) policies::write_policy(files_.out, training_.best_policy());
        keep(training_.state());
        for (; record_ && recorded_ < training_.record_lines().size(); ++recorded_)
            record_->add(training_.record_lines()[recorded_]);
    }

    scenarios::TrainedSeed finish() {
        const bool done = training_.prepared() && training_.finished();
        if (writes()) {
            if (record_) record_->end(done);
            if (done) policies::write_policy(files_.out, training_.best_policy());
        }
        scenarios::TrainedSeed result;
        result.seed = seed_;
        result.complete = done;
        result.updates = training_.updates_done();
        result.score = training_.best_score();
        if (training_.best_policy().parameters.empty()) return result;
        result.policy = files_.out.string();
        result.goodput = training_.best_goodput();
        result.static_goodput = training_.static_goodput();
        result.rule_goodput = training_.rule_goodput();
        result.teacher_goodput = training_.teacher_goodput();
        return result;
    }

    const TrainArguments& arguments_;
    TrainingFiles files_;
    std::uint64_t seed_;
    const scenarios::ScenarioSet& set_;
    policies::Reduction& reduction_;
    Training training_;
    std::optional<scenarios::LearningRecordWriter> record_;
    std::size_t recorded_ = 0;
};

TrainingFiles files_of(const TrainArguments& arguments, std::uint64_t seed) {
    TrainingFiles files{arguments.out, arguments.out, arguments.record};
    if (arguments.seeds > 1) files.out += ".seed" + std::to_string(seed);
    files.checkpoint = files.out;
    files.checkpoint += ".checkpoint";
    return files;
}

void check_before_anything_runs(const TrainArguments& arguments) {
    if (arguments.out.extension() != ".policy")
        throw scenarios::ConfigError("--out " + arguments.out.string() + ": policies are called FILE.policy");
    const bool replaces = arguments.force || arguments.resume;
    expect_writable("--out", arguments.out, replaces);
    bool begun = false;
    for (int i = 0; i < arguments.seeds; ++i) {
        const TrainingFiles files = files_of(arguments, arguments.seed + static_cast<std::uint64_t>(i));
        expect_writable("--out", files.out, replaces);
        if (!fs::exists(files.checkpoint)) continue;
        begun = true;
        if (!replaces)
            throw scenarios::ConfigError("--out " + arguments.out.string() + ": " + files.checkpoint.string() +
                                         " is there, of a training that was not finished (--resume goes on with it, " +
                                         "--force begins anew)");
    }
    if (arguments.resume && !begun) expect_readable(files_of(arguments, arguments.seed).checkpoint, kCheckpoint);
    if (arguments.record) {
        expect_writable("--record", *arguments.record, replaces);
        expect_record_or_nothing("--record", *arguments.record);
        if (fs::absolute(*arguments.record) == fs::absolute(arguments.out))
            throw scenarios::ConfigError("--record " + arguments.record->string() + ": is the file of --out too");
    }
    if (arguments.rounds + arguments.updates == 0)
        throw scenarios::ConfigError("--rounds 0 --updates 0: nothing to learn from");
    if (arguments.teacher == "none") return;
    try {
        policies::check_policy(arguments.teacher);
    } catch (const std::invalid_argument& error) {
        throw scenarios::ConfigError("--teacher " + arguments.teacher + ": " + error.what());
    }
}

/// One process alone, or those that a launcher started.
std::unique_ptr<policies::Reduction> processes_of(const TrainArguments& arguments) {
    const backend::ProcessRank process = backend::process_rank();
    if (process.size == 1) {
        if (arguments.rendezvous && process.told_by.empty())
            throw scenarios::ConfigError("--rendezvous: started alone (mpirun -n N or srun start several processes)");
        return std::make_unique<policies::NoReduction>();
    }
    const std::chrono::milliseconds timeout(static_cast<std::int64_t>(arguments.timeout_minutes * 6e4));
    const backend::MeetingPoint meeting = backend::meeting_point(process, arguments.rendezvous, timeout);
    return std::make_unique<backend::HostReduction>(meeting.point, process.rank, process.size, timeout);
}

}  // namespace

int train(const TrainArguments& arguments, const std::string& version) {
    check_before_anything_runs(arguments);
    const scenarios::ScenarioSet set = scenarios::read_scenario_set(arguments.curriculum, chosen_catalogue(arguments));
    catch_interrupts();
    const std::unique_ptr<policies::Reduction> together = processes_of(arguments);
    policies::Reduction& reduction = *together;
    const Clock::time_point latest =
        arguments.minutes
            ? Clock::now() + std::chrono::milliseconds(static_cast<std::int64_t>(*arguments.minutes * 6e4))
            : Clock::time_point::max();
    scenarios::TrainingReport report;
    report.curriculum = set.name;
    report.planned = arguments.rounds + arguments.updates;
    std::size_t best = 0;
    for (int i = 0; i < arguments.seeds; ++i) {
        const std::uint64_t seed = arguments.seed + static_cast<std::uint64_t>(i);
        TrainingRun run(arguments, set, files_of(arguments, seed), seed, reduction);
        report.seeds.push_back(run.run(latest, version));
        if (report.seeds.back().score > report.seeds[best].score) best = report.seeds.size() - 1;
        if (ends_anywhere(reduction, interrupted() || Clock::now() >= latest)) break;
    }
    const bool all_done = report.seeds.size() == static_cast<std::size_t>(arguments.seeds) &&
                          std::all_of(report.seeds.begin(), report.seeds.end(),
                                      [](const scenarios::TrainedSeed& seed) { return seed.complete; });
    if (all_done && reduction.rank() == 0) {
        std::error_code ignored;
        for (const scenarios::TrainedSeed& seed : report.seeds)
            fs::remove(files_of(arguments, seed.seed).checkpoint, ignored);
    }
    const scenarios::TrainedSeed& kept = report.seeds[best];
    if (!kept.policy.empty() && reduction.rank() == 0) {
        if (fs::path(kept.policy) != arguments.out)
            policies::write_policy(arguments.out, policies::read_policy(kept.policy));
        report.policy = arguments.out.string();
    }
    const bool begun = all_done || fs::exists(files_of(arguments, report.seeds.back().seed).checkpoint);
    const int exit_code = interrupted() ? kInterrupted : kSucceeded;
    if (reduction.rank() != 0) return exit_code;
    if (interrupted())
        complain(begun ? "interrupted: --resume goes on after the last update"
                       : "interrupted before the first update: nothing is kept");
    else if (kept.policy.empty())
        complain(begun ? "--minutes ended before a policy was validated: --resume goes on after the last update"
                       : "--minutes ended before the first update: nothing is kept");
    print(arguments.json ? scenarios::training_json(report) : scenarios::training_text(report));
    return exit_code;
}

}  // namespace headway::cli
