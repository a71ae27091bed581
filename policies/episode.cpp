#include "policies/episode.h"

#include <algorithm>
#include <limits>
#include <stdexcept>
#include <utility>

namespace headway::policies {

namespace {

scenarios::MeasuredColumns measured_columns(const Observation& seen) {
    scenarios::MeasuredColumns columns;
    for (const RankObservation& rank : seen.ranks) {
        columns.gpu.push_back(rank.measured.gpu);
        columns.compute_ns.push_back(rank.measured.compute.ns());
        columns.exposed_ns.push_back(rank.measured.exposed_communication.ns());
        columns.idle_ns.push_back(rank.measured.idle.ns());
        columns.temperature_c.push_back(rank.measured.temperature_c);
        columns.sm_clock_mhz.push_back(rank.measured.sm_clock_mhz);
        columns.power_w.push_back(rank.measured.power_w);
        columns.throttle_reasons.push_back(rank.measured.throttle_reasons);
        columns.memory_bytes.push_back(rank.measured.memory_used_bytes);
    }
    for (const GroupMeasurement& group : seen.groups) {
        columns.group_kind.push_back(static_cast<int>(group.kind));
        columns.group_index.push_back(group.index);
        columns.group_bytes_per_s.push_back(group.bus_bytes_per_second);
    }
    return columns;
}

}  // namespace

scenarios::DecisionEvent decision_event(const Decision& decision) {
    scenarios::DecisionEvent event;
    const Observation& seen = decision.observation;
    event.time_ns = seen.now.ns();
    event.iteration = decision.iteration;
    event.iteration_ns = seen.iteration.ns();
    if (seen.loss) event.lost_gpus = seen.loss->gpus;
    if (decision.candidates.size() > 1) event.measured = measured_columns(seen);
    for (const Candidate& candidate : decision.candidates) {
        event.candidates.push_back({name_of(candidate.kind), candidate.why});
    }
    event.chosen = static_cast<int>(decision.chosen.candidate);
    return event;
}

EpisodeSummary run_episode(TrainingCluster& cluster, Policy& policy, const EpisodeOptions& options,
                           const DecisionSink& sink) {
    if (options.decision_interval < 1) throw std::invalid_argument("decision interval: at least 1 iteration");
    cluster.start_episode(options.seed);
    policy.start_episode(options.seed);
    ObservationBuilder builder;
    builder.start_episode();

    const ClusterFacts& facts = cluster.facts();
    scenarios::Plan plan = facts.initial_plan;
    EpisodeSummary summary;
    const auto remaining = [&] {
        return options.max_iterations > 0 ? options.max_iterations - summary.iterations
                                          : std::numeric_limits<std::int64_t>::max();
    };
    while (remaining() > 0) {
        const auto wanted = static_cast<int>(std::min<std::int64_t>(options.decision_interval, remaining()));
        const Measurements measured = cluster.run(plan, wanted);
        summary.iterations += static_cast<std::int64_t>(measured.iterations.size());
        if (measured.ended || remaining() <= 0) break;
        if (measured.iterations.empty() && !measured.loss) {
            throw std::logic_error("the cluster trained nothing, lost nothing and did not end");
        }

        Decision decision;
        decision.iteration = summary.iterations;
        decision.observation = builder.build(facts, plan, measured, cluster.now());
        decision.candidates = propose_candidates(decision.observation);
        decision.chosen = policy.decide(decision.observation, decision.candidates);
        if (decision.chosen.candidate >= decision.candidates.size()) {
            throw std::logic_error("policy '" + std::string(policy.name()) + "' chose a candidate that does not exist");
        }
        ++summary.decisions;
        if (sink && !sink(decision)) {
            summary.complete = false;
            break;
        }

        const Candidate& chosen = decision.candidates[decision.chosen.candidate];
        switch (chosen.kind) {
            case Candidate::Kind::kKeep:
                break;
            case Candidate::Kind::kWaitForReplacement: {
                RecoveryOutcome outcome = cluster.recover(Recovery::kWaitForReplacement);
                summary.paused += outcome.pause;
                summary.iterations -= outcome.iterations_lost;
                summary.iterations_lost += outcome.iterations_lost;
                plan = std::move(outcome.plan);
                break;
            }
        }
    }
    summary.wall = cluster.now();
    return summary;
}

}  // namespace headway::policies
