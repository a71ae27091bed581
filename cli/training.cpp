#include "cli/training.h"

#include <algorithm>
#include <deque>
#include <limits>
#include <stdexcept>

#include "cli/training_episodes.h"
#include "cli/worker_processes.h"
#include "policies/evaluation.h"
#include "policies/learning/byte_stream.h"
#include "policies/learning/curriculum.h"
#include "policies/learning/policy_file.h"
#include "scenarios/language/config_error.h"
#include "scenarios/language/random.h"
#include "scenarios/record/learning_record.h"

namespace headway::cli {

namespace {

constexpr std::uint32_t kStateVersion = 1;

/// Rounds whose comparisons are learned from: older ones are of a policy that is no more.
constexpr std::size_t kRoundsKept = 32;
constexpr int kComparisonEpochs = 2;
constexpr double kComparisonRate = 1e-3;  ///< at the first round; falls to a tenth

constexpr double kPpoRate = 3e-3;  ///< at the first update

/// A policy that ends below static loses trust: what it loses there counts this much again.
constexpr double kLossWeight = 2.0;

double validation_score(const std::vector<double>& policy, const std::vector<double>& do_nothing) {
    double score = policies::mean_goodput(policy);
    for (std::size_t i = 0; i < policy.size(); ++i)
        score -= kLossWeight * std::max(0.0, do_nothing[i] * (1.0 - policies::kWorthCounting) - policy[i]) /
                 static_cast<double>(policy.size());
    return score;
}

}  // namespace

class Training::Impl {
  public:
    Impl(const scenarios::ScenarioSet& set, const TrainingSettings& settings, policies::Reduction& reduction)
        : set_(set), settings_(settings), reduction_(reduction), curriculum_(set.families.size()) {
        policies::TrainerOptions options;
        options.seed = settings.seed;
        options.updates = settings.updates;
        options.curriculum = set.name;
        options.ppo.learning_rate = kPpoRate;
        trainer_ = std::make_unique<policies::Trainer>(options, reduction);
    }

    const scenarios::ScenarioSet& set_;
    TrainingSettings settings_;
    policies::Reduction& reduction_;
    std::unique_ptr<policies::Trainer> trainer_;
    policies::Curriculum curriculum_;

    /// Goodputs on the validation scenarios of those who do not learn.
    struct ValidationReferences {
        std::vector<double> do_nothing;
        std::vector<double> rule;
        std::vector<double> teacher;  ///< empty: nobody teaches
    };
    bool prepared_ = false;
    ValidationReferences references_;
    policies::TrainedPolicy best_;
    double best_score_ = -std::numeric_limits<double>::infinity();
    double best_goodput_ = 0.0;
    std::vector<std::string> lines_;
    std::int64_t rounds_ = 0;
    std::deque<std::string> compared_;  ///< this process's comparisons of the latest rounds, as bytes

    std::int64_t done() const { return rounds_ + trainer_->updates_done(); }
    std::int64_t planned() const { return settings_.rounds + settings_.updates; }

    /// What must agree for a state to be gone on with. Workers may change.
    std::string fingerprint() const {
        policies::ByteWriter writer;
        writer.text(set_.name);
        writer.number(set_.seed);
        writer.number<std::int64_t>(set_.count);
        for (const scenarios::ScenarioFamily& family : set_.families) writer.text(family.name);
        writer.number(settings_.seed);
        writer.number(settings_.updates);
        for (const int number : {settings_.rounds, settings_.groups, settings_.episodes, settings_.demonstrations,
                                 settings_.imitation_epochs, settings_.validate_every})
            writer.number(number);
        writer.text(settings_.teacher);
        writer.text(settings_.reference);
        return writer.take();
    }

    ProcessOptions processes(const std::function<bool()>& end_asked) const {
        ProcessOptions options;
        options.at_a_time = settings_.workers;
        options.end_asked = end_asked;
        options.abandon = true;
        return options;
    }

    /// Whether every process of the reduction got all its answers.
    bool all_there(const std::vector<std::optional<std::string>>& answers) {
        double missing = static_cast<double>(std::count(answers.begin(), answers.end(), std::nullopt));
        reduction_.sum(std::span(&missing, 1));
        return missing == 0.0;
    }

    /// Indices 0..count-1 that are this process's.
    std::vector<std::size_t> own(std::size_t count) const {
        std::vector<std::size_t> mine;
        for (std::size_t i = 0; i < count; ++i)
            if (i % static_cast<std::size_t>(reduction_.size()) == static_cast<std::size_t>(reduction_.rank()))
                mine.push_back(i);
        return mine;
    }

    using Validated = std::function<ValidationFigures(std::uint64_t index)>;

    /// Goodput and switches on every validation scenario; empty when it was ended.
    std::optional<std::vector<ValidationFigures>> validate(const Validated& run,
                                                           const std::function<bool()>& end_asked) {
        const std::vector<std::size_t> mine = own(static_cast<std::size_t>(set_.count));
        const auto answers = answers_of_processes(
            mine.size(), [&](std::size_t i) { return validation_bytes(run(mine[i])); }, processes(end_asked));
        if (!all_there(answers)) return std::nullopt;
        std::vector<double> sums(2 * static_cast<std::size_t>(set_.count), 0.0);
        for (std::size_t i = 0; i < mine.size(); ++i) {
            const ValidationFigures figures = validation_from_bytes(*answers[i]);
            sums[2 * mine[i]] = figures.goodput;
            sums[2 * mine[i] + 1] = figures.switches;
        }
        reduction_.sum(sums);
        std::vector<ValidationFigures> all;
        for (std::size_t i = 0; i < sums.size(); i += 2) all.push_back({sums[i], sums[i + 1]});
        return all;
    }

    static std::vector<double> goodputs(const std::vector<ValidationFigures>& figures) {
        std::vector<double> all;
        for (const ValidationFigures& one : figures) all.push_back(one.goodput);
        return all;
    }

    void write_evaluation(std::int64_t update, const std::string& policy,
                          const std::vector<ValidationFigures>& figures) {
        scenarios::EvaluationEvent event;
        event.update = update;
        event.policy = policy;
        event.scenarios = static_cast<std::int64_t>(figures.size());
        const std::vector<double> reached = goodputs(figures);
        event.goodput = policies::mean_goodput(reached);
        for (const ValidationFigures& one : figures)
            event.switches += one.switches / static_cast<double>(figures.size());
        event.lost_fraction = policies::lost_fraction(reached, references_.do_nothing);
        if (!references_.teacher.empty())
            event.recovered_share = policies::recovered_share(reached, references_.do_nothing, references_.teacher);
        lines_.push_back(scenarios::evaluation_line(event));
    }

    bool prepare(const std::function<bool()>& end_asked) {
        const auto by_name = [&](const std::string& policy) {
            return validate([&](std::uint64_t index) { return validate_named(set_, index, policy); }, end_asked);
        };
        const auto do_nothing = by_name("static");
        const auto rule = do_nothing ? by_name(settings_.reference) : std::nullopt;
        if (!rule) return false;
        std::optional<std::vector<ValidationFigures>> teacher;
        std::vector<policies::Rollout> demonstrations;
        if (!settings_.teacher.empty()) {
            teacher = by_name(settings_.teacher);
            if (!teacher || !watch_teacher(demonstrations, end_asked)) return false;
        }
        references_ = {goodputs(*do_nothing), goodputs(*rule), {}};
        if (teacher) references_.teacher = goodputs(*teacher);
        write_evaluation(0, "static", *do_nothing);
        write_evaluation(0, settings_.reference, *rule);
        if (teacher) {
            write_evaluation(0, settings_.teacher, *teacher);
            trainer_->imitate(demonstrations, settings_.imitation_epochs);
        }
        prepared_ = true;
        return true;
    }

    /// Demonstrations come from the whole set, after the validation scenarios.
    bool watch_teacher(std::vector<policies::Rollout>& demonstrations, const std::function<bool()>& end_asked) {
        const std::vector<std::size_t> mine = own(static_cast<std::size_t>(settings_.demonstrations));
        const auto run = [&](std::size_t i) {
            TrainingGroup group;
            group.index = static_cast<std::uint64_t>(set_.count) + mine[i];
            group.group = static_cast<std::int64_t>(mine[i]);
            return policies::rollout_bytes(teach(set_, group, settings_.teacher));
        };
        const auto answers = answers_of_processes(mine.size(), run, processes(end_asked));
        if (!all_there(answers)) return false;
        for (const auto& answer : answers) demonstrations.push_back(policies::rollout_from_bytes(*answer));
        return true;
    }

    /// The scenarios of the next update, the same in every process.
    std::vector<TrainingGroup> next_groups(const scenarios::SetStage& stage) const {
        const std::int64_t update = done();
        scenarios::RandomStream stream(settings_.seed, "training/families", static_cast<std::uint64_t>(update));
        const std::uint64_t first = static_cast<std::uint64_t>(set_.count) +
                                    static_cast<std::uint64_t>(settings_.demonstrations) +
                                    static_cast<std::uint64_t>(update) * static_cast<std::uint64_t>(settings_.groups);
        std::vector<TrainingGroup> groups;
        for (int g = 0; g < settings_.groups; ++g) {
            TrainingGroup group;
            group.index = (settings_.seed << 32) + first + static_cast<std::uint64_t>(g);
            do {
                group.slot = static_cast<std::int64_t>(curriculum_.draw(stream));
                group.family = set_.families[static_cast<std::size_t>(group.slot)].name;
            } while (!stage.families.empty() &&
                     std::find(stage.families.begin(), stage.families.end(), group.family) == stage.families.end());
            group.stage = &stage;
            group.group = g;
            group.episodes = settings_.episodes;
            group.actions = settings_.seed;
            groups.push_back(std::move(group));
        }
        return groups;
    }

    std::optional<TrainingStep> step(const std::function<bool()>& end_asked) {
        const scenarios::SetStage& stage =
            scenarios::stage_at(set_, static_cast<double>(done()) / static_cast<double>(planned()));
        const std::vector<TrainingGroup> groups = next_groups(stage);
        const bool comparing = rounds_ < settings_.rounds;
        const std::vector<std::size_t> mine = own(groups.size());
        const policies::TrainedPolicy learner = trainer_->policy();
        const auto run = [&](std::size_t i) {
            const TrainingGroup& group = groups[mine[i]];
            return comparing ? compared_bytes(compare(set_, group, learner, settings_.reference))
                             : group_bytes(explore(set_, group, learner, settings_.reference));
        };
        const auto answers = answers_of_processes(mine.size(), run, processes(end_asked));
        if (!all_there(answers)) return std::nullopt;
        std::vector<double> reached(2 * groups.size(), 0.0);  // the learner's and the rule's goodput, group by group
        TrainingStep made;
        made.stage = stage.name;
        if (comparing)
            learn_from_comparisons(mine, answers, reached, made);
        else
            learn_from_rollouts(mine, answers, reached, made);
        for (std::size_t g = 0; g < groups.size(); ++g) {
            curriculum_.record(static_cast<std::size_t>(groups[g].slot), reached[2 * g], reached[2 * g + 1]);
            made.reference_goodput += reached[2 * g + 1] / static_cast<double>(groups.size());
        }
        const policies::UpdateReport& report = made.report;
        lines_.push_back(scenarios::training_update_line(
            {report.update, made.method, made.stage, report.episodes, report.decisions, report.goodput,
             made.reference_goodput, report.switches, report.policy_loss, report.value_loss, report.entropy, report.kl,
             report.clip_fraction, report.explained_variance, report.learning_rate, report.gradient_norm}));
        if (report.update % settings_.validate_every == 0 || report.update == planned()) judge(made);
        return made;
    }

    using Answers = std::vector<std::optional<std::string>>;

    void learn_from_comparisons(const std::vector<std::size_t>& mine, const Answers& answers,
                                std::vector<double>& reached, TrainingStep& made) {
        std::vector<policies::Comparison> latest;
        for (std::size_t i = 0; i < mine.size(); ++i) {
            ComparedGroup result = compared_from_bytes(*answers[i]);
            reached[2 * mine[i]] = result.goodput;
            reached[2 * mine[i] + 1] = result.reference_goodput;
            for (policies::Comparison& comparison : result.comparisons) latest.push_back(std::move(comparison));
        }
        reduction_.sum(reached);
        compared_.push_back(policies::comparison_bytes(latest));
        if (compared_.size() > kRoundsKept) compared_.pop_front();
        std::vector<policies::Comparison> all;
        for (const std::string& bytes : compared_)
            for (policies::Comparison& comparison : policies::comparisons_from_bytes(bytes))
                all.push_back(std::move(comparison));
        const double rate =
            kComparisonRate * (1.0 - 0.9 * static_cast<double>(rounds_) / static_cast<double>(settings_.rounds));
        const policies::ComparisonReport report = trainer_->learn_from(all, kComparisonEpochs, rate);
        ++rounds_;
        made.method = "comparison";
        made.report.update = done();
        made.report.episodes = static_cast<std::int64_t>(reached.size() / 2);
        made.report.decisions = report.decisions;
        made.report.policy_loss = report.loss;
        made.report.learning_rate = rate;
        for (std::size_t g = 0; g < reached.size(); g += 2)
            made.report.goodput += reached[g] / static_cast<double>(reached.size() / 2);
    }

    void learn_from_rollouts(const std::vector<std::size_t>& mine, const Answers& answers, std::vector<double>& reached,
                             TrainingStep& made) {
        std::vector<policies::Rollout> rollouts;
        for (std::size_t i = 0; i < mine.size(); ++i) {
            GroupResult result = group_from_bytes(*answers[i]);
            for (policies::Rollout& rollout : result.rollouts) {
                reached[2 * mine[i]] += rollout.goodput / static_cast<double>(result.rollouts.size());
                rollouts.push_back(std::move(rollout));
            }
            reached[2 * mine[i] + 1] = result.reference_goodput;
        }
        reduction_.sum(reached);
        made.method = "ppo";
        made.report = trainer_->update(rollouts);
        made.report.update = done();
    }

    /// Never ended early: the update is made, and what belongs to it is too.
    void judge(TrainingStep& done) {
        const policies::TrainedPolicy learner = trainer_->policy();
        const auto figures = validate([&](std::uint64_t index) { return validate_learner(set_, index, learner); }, {});
        const std::vector<double> reached = goodputs(*figures);
        write_evaluation(done.report.update, "learner", *figures);
        done.validated = true;
        done.validation_goodput = policies::mean_goodput(reached);
        done.validation_lost = policies::lost_fraction(reached, references_.do_nothing);
        const double score = validation_score(reached, references_.do_nothing);
        if (score <= best_score_) return;
        done.best = true;
        best_score_ = score;
        best_goodput_ = done.validation_goodput;
        best_ = learner;
    }

    std::string state() const {
        policies::ByteWriter writer;
        writer.number(kStateVersion);
        writer.text(fingerprint());
        writer.text(trainer_->checkpoint());
        writer.text(curriculum_.bytes());
        writer.number<std::uint8_t>(prepared_ ? 1 : 0);
        writer.numbers(references_.do_nothing);
        writer.numbers(references_.rule);
        writer.numbers(references_.teacher);
        writer.text(best_.parameters.empty() ? std::string() : policies::policy_bytes(best_));
        writer.number(best_score_);
        writer.number(best_goodput_);
        writer.number<std::uint64_t>(lines_.size());
        for (const std::string& line : lines_) writer.text(line);
        writer.number(rounds_);
        writer.number<std::uint64_t>(compared_.size());
        for (const std::string& bytes : compared_) writer.text(bytes);
        return writer.take();
    }

    void restore(const std::string& state, const std::string& name) {
        policies::ByteReader reader(state);
        if (reader.number<std::uint32_t>() != kStateVersion)
            throw scenarios::ConfigError(name + ": of another version of this program, or no training to go on with");
        if (reader.text() != fingerprint())
            throw scenarios::ConfigError(name +
                                         ": of a training on another set or with other settings (seed, updates, " +
                                         "groups, episodes, teacher); give the same, or train anew without --resume");
        trainer_ = std::make_unique<policies::Trainer>(policies::Trainer::resume(reader.text(), name, reduction_));
        curriculum_.restore(reader.text());
        prepared_ = reader.number<std::uint8_t>() != 0;
        references_.do_nothing = reader.numbers<double>();
        references_.rule = reader.numbers<double>();
        references_.teacher = reader.numbers<double>();
        const std::string best = reader.text();
        if (!best.empty()) best_ = policies::policy_from_bytes(best, name);
        best_score_ = reader.number<double>();
        best_goodput_ = reader.number<double>();
        const auto lines = reader.number<std::uint64_t>();
        for (std::uint64_t i = 0; i < lines; ++i) lines_.push_back(reader.text());
        rounds_ = reader.number<std::int64_t>();
        const auto rounds = reader.number<std::uint64_t>();
        for (std::uint64_t i = 0; i < rounds; ++i) compared_.push_back(reader.text());
        if (!reader.at_end()) throw std::runtime_error("more than there should be");
    }
};

Training::Training(const scenarios::ScenarioSet& set, const TrainingSettings& settings, policies::Reduction& reduction)
    : impl_(std::make_unique<Impl>(set, settings, reduction)) {}
Training::Training(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Training::~Training() = default;
Training::Training(Training&&) noexcept = default;

Training Training::resume(const scenarios::ScenarioSet& set, const TrainingSettings& settings,
                          policies::Reduction& reduction, const std::string& state, const std::string& name) {
    auto impl = std::make_unique<Impl>(set, settings, reduction);
    try {
        impl->restore(state, name);
    } catch (const scenarios::ConfigError&) {
        throw;
    } catch (const std::runtime_error& error) {
        throw scenarios::ConfigError(name + ": damaged: " + error.what());
    }
    return Training(std::move(impl));
}

bool Training::finished() const {
    return impl_->done() >= impl_->planned();
}
std::int64_t Training::updates_done() const {
    return impl_->done();
}
bool Training::prepared() const {
    return impl_->prepared_;
}
bool Training::prepare(const std::function<bool()>& end_asked) {
    return impl_->prepared_ || impl_->prepare(end_asked);
}
std::optional<TrainingStep> Training::step(const std::function<bool()>& end_asked) {
    if (!impl_->prepared_) throw std::logic_error("a training is prepared first");
    return impl_->step(end_asked);
}
const policies::TrainedPolicy& Training::best_policy() const {
    return impl_->best_;
}
double Training::best_score() const {
    return impl_->best_score_;
}
double Training::best_goodput() const {
    return impl_->best_goodput_;
}
double Training::static_goodput() const {
    return policies::mean_goodput(impl_->references_.do_nothing);
}
double Training::rule_goodput() const {
    return policies::mean_goodput(impl_->references_.rule);
}
std::optional<double> Training::teacher_goodput() const {
    if (impl_->references_.teacher.empty()) return std::nullopt;
    return policies::mean_goodput(impl_->references_.teacher);
}
const std::vector<std::string>& Training::record_lines() const {
    return impl_->lines_;
}
std::string Training::state() const {
    return impl_->state();
}

}  // namespace headway::cli
