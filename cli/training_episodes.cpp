#include "cli/training_episodes.h"

#include <memory>
#include <optional>

#include "cli/simulated_run.h"
#include "policies/learning/byte_stream.h"
#include "policies/learning/learned_policy.h"
#include "policies/planning/candidate_generator.h"
#include "policies/policy.h"
#include "scenarios/language/random.h"
#include "scenarios/sampling/draw_scenario.h"
#include "sim/simulated_cluster.h"

namespace headway::cli {

namespace {

/// Quiet: what the episode tells is not wanted.
class NobodyListens final : public policies::EpisodeSink {};

/// A drawn scenario on the simulator's quick path, with what runs an episode of it.
class TrainingWorld {
  public:
    /// `cut_off`: the run's time ends episodes but not the scenario.
    TrainingWorld(const scenarios::ScenarioSet& set, std::uint64_t index, const std::string& family,
                  const scenarios::SetStage* stage, bool cut_off) {
        scenarios::DrawOptions draw;
        if (!family.empty()) draw.family = family;
        draw.stage = stage;
        scenario_ = scenarios::draw_scenario(set, index, draw).scenario;
        episode_.decision_interval = scenario_.decision_interval;
        episode_.seed = scenario_.seed;
        if (cut_off) {
            episode_.max_time = *scenario_.run.time;
            scenario_.run.time = *scenario_.run.time * 2;
        }
        cluster_ = std::make_unique<sim::SimulatedCluster>(scenario_, nullptr, sim::SimulationOptions::quick());
        generator_.emplace(cluster_->facts());
    }

    policies::TrainingCluster& cluster() { return *cluster_; }
    policies::CandidateGenerator& generator() { return *generator_; }
    const policies::EpisodeOptions& episode() const { return episode_; }

    std::unique_ptr<policies::Policy> policy(const std::string& name) const {
        return policies::make_policy(name, {what_if_worlds(scenario_, true), episode_});
    }

    ValidationFigures run(policies::Policy& policy) {
        NobodyListens sink;
        const policies::EpisodeSummary done = policies::run_episode(*cluster_, *generator_, policy, episode_, sink);
        ValidationFigures figures;
        const double useful = static_cast<double>(done.iterations) * cluster_->facts().healthy_iteration.s();
        figures.goodput = done.wall > scenarios::Duration() ? useful / done.wall.s() : 0.0;
        figures.switches = static_cast<double>(done.switches);
        return figures;
    }

  private:
    scenarios::Scenario scenario_;
    policies::EpisodeOptions episode_;
    std::unique_ptr<sim::SimulatedCluster> cluster_;
    std::optional<policies::CandidateGenerator> generator_;
};

policies::RolloutOptions rollout_options(const TrainingWorld& world, const TrainingGroup& group) {
    policies::RolloutOptions options;
    options.episode = world.episode();
    options.group = group.group;
    options.scenario = group.slot;
    return options;
}

}  // namespace

GroupResult explore(const scenarios::ScenarioSet& set, const TrainingGroup& group,
                    const policies::TrainedPolicy& learner, const std::string& reference) {
    TrainingWorld world(set, group.index, group.family, group.stage, true);
    GroupResult result;
    result.reference_goodput = world.run(*world.policy(reference)).goodput;
    for (int i = 0; i < group.episodes; ++i) {
        scenarios::RandomStream actions(group.actions, "training/actions",
                                        group.index * 64 + static_cast<std::uint64_t>(i));
        result.rollouts.push_back(
            policies::collect(world.cluster(), world.generator(), learner, rollout_options(world, group), actions));
    }
    return result;
}

ComparedGroup compare(const scenarios::ScenarioSet& set, const TrainingGroup& group,
                      const policies::TrainedPolicy& learner, const std::string& reference) {
    TrainingWorld world(set, group.index, group.family, group.stage, true);
    ComparedGroup result;
    result.reference_goodput = world.run(*world.policy(reference)).goodput;
    policies::ComparisonOptions options;
    options.episode = world.episode();
    scenarios::RandomStream choices(group.actions, "training/choices", group.index);
    result.comparisons =
        policies::compare_choices(world.cluster(), world.generator(), learner, options, choices, &result.goodput);
    return result;
}

policies::Rollout teach(const scenarios::ScenarioSet& set, const TrainingGroup& group, const std::string& teacher) {
    TrainingWorld world(set, group.index, group.family, group.stage, true);
    return policies::demonstrate(world.cluster(), world.generator(), *world.policy(teacher),
                                 rollout_options(world, group));
}

ValidationFigures validate_named(const scenarios::ScenarioSet& set, std::uint64_t index, const std::string& policy) {
    TrainingWorld world(set, index, "", nullptr, false);
    return world.run(*world.policy(policy));
}

ValidationFigures validate_learner(const scenarios::ScenarioSet& set, std::uint64_t index,
                                   const policies::TrainedPolicy& learner) {
    TrainingWorld world(set, index, "", nullptr, false);
    policies::LearnedPolicy policy(learner);
    return world.run(policy);
}

std::string group_bytes(const GroupResult& result) {
    policies::ByteWriter writer;
    writer.number(result.reference_goodput);
    writer.number<std::uint64_t>(result.rollouts.size());
    for (const policies::Rollout& rollout : result.rollouts) writer.text(policies::rollout_bytes(rollout));
    return writer.take();
}

GroupResult group_from_bytes(const std::string& bytes) {
    policies::ByteReader reader(bytes);
    GroupResult result;
    result.reference_goodput = reader.number<double>();
    const auto count = reader.number<std::uint64_t>();
    for (std::uint64_t i = 0; i < count; ++i) result.rollouts.push_back(policies::rollout_from_bytes(reader.text()));
    return result;
}

std::string compared_bytes(const ComparedGroup& result) {
    policies::ByteWriter writer;
    writer.number(result.reference_goodput);
    writer.number(result.goodput);
    writer.text(policies::comparison_bytes(result.comparisons));
    return writer.take();
}

ComparedGroup compared_from_bytes(const std::string& bytes) {
    policies::ByteReader reader(bytes);
    ComparedGroup result;
    result.reference_goodput = reader.number<double>();
    result.goodput = reader.number<double>();
    result.comparisons = policies::comparisons_from_bytes(reader.text());
    return result;
}

std::string validation_bytes(const ValidationFigures& figures) {
    policies::ByteWriter writer;
    writer.number(figures.goodput);
    writer.number(figures.switches);
    return writer.take();
}

ValidationFigures validation_from_bytes(const std::string& bytes) {
    policies::ByteReader reader(bytes);
    ValidationFigures figures;
    figures.goodput = reader.number<double>();
    figures.switches = reader.number<double>();
    return figures;
}

}  // namespace headway::cli
