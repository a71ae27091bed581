#include "cli/evaluation_run.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <memory>
#include <stdexcept>
#include <type_traits>
#include <vector>

#include "cli/interrupt.h"
#include "cli/simulated_run.h"
#include "policies/episode.h"
#include "policies/guardrails.h"
#include "policies/planning/candidate_generator.h"
#include "policies/policy.h"
#include "sim/simulated_cluster.h"

namespace headway::cli {

namespace {

using scenarios::Duration;

class JudgedEpisode final : public policies::EpisodeSink {
  public:
    bool decided(const policies::Decision& decision) override {
        const auto kind = decision.candidates[decision.chosen.candidate].kind;
        if (decision.candidates.size() == 1) ++only_choice;
        if (decision.chosen.by == policies::Action::By::kRule) ++handed_over;
        if (decision.chosen.by == policies::Action::By::kRollback) ++rolled_back;
        if (kind != policies::Candidate::Kind::kKeep && kind != policies::Candidate::Kind::kWaitForReplacement)
            switched_at.push_back(decision.observation.now);
        return !interrupted();
    }

    int only_choice = 0;
    int handed_over = 0;
    int rolled_back = 0;
    std::vector<Duration> switched_at;  ///< ascending
};

/// Time from each disturbance's begin to the first switch while it lasts.
void add_reactions(const std::vector<scenarios::Disturbance>& disturbances, const std::vector<Duration>& switched_at,
                   EvaluationFigures& figures) {
    for (const scenarios::Disturbance& disturbance : disturbances) {
        const auto first = std::lower_bound(switched_at.begin(), switched_at.end(), disturbance.start);
        if (first == switched_at.end()) continue;
        if (disturbance.duration && *first > disturbance.start + *disturbance.duration) continue;
        figures.reactions += 1.0;
        figures.reaction_sum_s += (*first - disturbance.start).s();
    }
}

}  // namespace

EvaluationFigures run_evaluation(const EvaluationCase& one, const std::string& policy, std::uint64_t seed,
                                 bool longest_path, const policies::GuardOptions& guards) {
    catch_interrupts();
    scenarios::Scenario scenario = one.scenario;
    scenario.seed += seed;
    scenario.policy = policy;
    policies::EpisodeOptions episode;
    episode.decision_interval = scenario.decision_interval;
    episode.max_iterations = scenario.run.time ? 0 : scenario.run.iterations;
    episode.seed = scenario.seed;
    sim::SimulationOptions options;
    options.heat_together = true;
    const std::unique_ptr<policies::Policy> judged =
        policies::make_guarded_policy(policy, {what_if_worlds(scenario, options.heat_together), episode}, guards);
    if (longest_path) options.path = sim::Path::kLongestPath;
    sim::SimulatedCluster cluster(scenario, nullptr, options);
    catch_interrupts();
    policies::CandidateGenerator generator(cluster.facts());
    JudgedEpisode sink;
    const policies::EpisodeSummary done = policies::run_episode(cluster, generator, *judged, episode, sink);

    EvaluationFigures figures;
    const double useful = static_cast<double>(done.iterations) * cluster.facts().healthy_iteration.s();
    figures.goodput = done.wall > Duration() ? useful / done.wall.s() : 0.0;
    figures.switches = static_cast<double>(done.switches);
    figures.decisions = static_cast<double>(done.decisions);
    figures.lost_iterations = static_cast<double>(done.iterations_lost);
    figures.paused_s = done.paused.s();
    figures.only_choice = sink.only_choice;
    figures.handed_over = sink.handed_over;
    figures.rolled_back = sink.rolled_back;
    figures.complete = done.complete ? 1.0 : 0.0;
    add_reactions(scenario.disturbances, sink.switched_at, figures);
    return figures;
}

static_assert(std::is_trivially_copyable_v<EvaluationFigures>);

std::string evaluation_bytes(const EvaluationFigures& figures) {
    std::string bytes(sizeof figures, '\0');
    std::memcpy(bytes.data(), &figures, sizeof figures);
    return bytes;
}

EvaluationFigures evaluation_from_bytes(const std::string& bytes) {
    EvaluationFigures figures;
    if (bytes.size() != sizeof figures) throw std::runtime_error("a worker process answered with something else");
    std::memcpy(&figures, bytes.data(), sizeof figures);
    return figures;
}

}  // namespace headway::cli
