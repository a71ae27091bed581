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
    for (const Duration each : seen.iterations) event.iterations_ns.push_back(each.ns());
    if (seen.loss) {
        event.lost_gpus = seen.loss->gpus;
        event.noticed_ns = seen.loss->noticed_at.ns();
    }
    event.unavailable_gpus = seen.unavailable_gpus;
    event.plan = seen.plan;
    event.measured = measured_columns(seen);
    for (const Candidate& candidate : decision.candidates) {
        const Prediction& predicted = candidate.predicted;
        event.candidates.push_back({name_of(candidate.kind), candidate.why, predicted.iteration.ns(),
                                    predicted.pause.ns(), predicted.restart.ns(), predicted.moved.count(),
                                    predicted.memory.count(), predicted.way_back.ns()});
    }
    event.chosen = static_cast<int>(decision.chosen.candidate);
    event.by = decision.chosen.by;
    const Candidate& chosen = decision.candidates.at(decision.chosen.candidate);
    if (chosen.plan != seen.plan) event.chosen_plan = chosen.plan;
    return event;
}

Measurements measurements_of(const scenarios::DecisionEvent& event) {
    Measurements measured;
    for (const std::int64_t each : event.iterations_ns) measured.iterations.push_back(Duration::nanoseconds(each));
    const scenarios::MeasuredColumns& columns = event.measured;
    for (std::size_t rank = 0; rank < columns.gpu.size(); ++rank) {
        RankMeasurement& raw = measured.ranks.emplace_back();
        raw.gpu = columns.gpu[rank];
        raw.compute = Duration::nanoseconds(columns.compute_ns[rank]);
        raw.exposed_communication = Duration::nanoseconds(columns.exposed_ns[rank]);
        raw.idle = Duration::nanoseconds(columns.idle_ns[rank]);
        raw.temperature_c = columns.temperature_c[rank];
        raw.sm_clock_mhz = columns.sm_clock_mhz[rank];
        raw.power_w = columns.power_w[rank];
        raw.throttle_reasons = columns.throttle_reasons[rank];
        raw.memory_used_bytes = columns.memory_bytes[rank];
    }
    for (std::size_t group = 0; group < columns.group_index.size(); ++group) {
        measured.groups.push_back({static_cast<GroupMeasurement::Kind>(columns.group_kind[group]),
                                   columns.group_index[group], columns.group_bytes_per_s[group]});
    }
    if (!event.lost_gpus.empty()) measured.loss = Loss{event.lost_gpus, Duration::nanoseconds(event.noticed_ns)};
    measured.unavailable_gpus = event.unavailable_gpus;
    return measured;
}

namespace {

/// Acts on the decision: takes the job to the chosen plan.
class ActingJob {
  public:
    ActingJob(TrainingCluster& cluster, EpisodeSummary& summary, scenarios::Plan plan)
        : cluster_(cluster), summary_(summary), plan_(std::move(plan)) {}

    const scenarios::Plan& plan() const { return plan_; }

    /// Returns the iterations that were rolled back.
    int act(const Candidate& chosen) {
        switch (chosen.kind) {
            case Candidate::Kind::kKeep:
                return 0;
            case Candidate::Kind::kWaitForReplacement:
                return recover({Recovery::Kind::kWaitForReplacement, {}});
            case Candidate::Kind::kRestart:
                ++summary_.switches;
                return recover({Recovery::Kind::kRestart, chosen.plan});
            default:
                ++summary_.switches;
                summary_.paused += cluster_.move_to(chosen.plan);
                plan_ = chosen.plan;
                return 0;
        }
    }

  private:
    int recover(const Recovery& choice) {
        RecoveryOutcome outcome = cluster_.recover(choice);
        summary_.paused += outcome.pause;
        summary_.iterations -= outcome.iterations_lost;
        summary_.iterations_lost += outcome.iterations_lost;
        plan_ = std::move(outcome.plan);
        return outcome.iterations_lost;
    }

    TrainingCluster& cluster_;
    EpisodeSummary& summary_;
    scenarios::Plan plan_;
};

}  // namespace

EpisodeSummary run_episode(TrainingCluster& cluster, CandidateGenerator& generator, Policy& policy,
                           const EpisodeOptions& options, EpisodeSink& sink) {
    if (options.decision_interval < 1) throw std::invalid_argument("decision interval: at least 1 iteration");
    const ClusterFacts& facts = cluster.facts();
    cluster.start_episode(options.seed);
    generator.start_episode();
    policy.start_episode(facts, options.seed);
    ObservationBuilder builder;
    builder.start_episode();

    EpisodeSummary summary;
    ActingJob job(cluster, summary, facts.initial_plan);
    const auto remaining = [&] {
        return options.max_iterations > 0 ? options.max_iterations - summary.iterations
                                          : std::numeric_limits<std::int64_t>::max();
    };
    const auto limit_reached = [&] {
        return remaining() <= 0 || (options.max_time > Duration() && cluster.now() >= options.max_time);
    };
    std::optional<Interval> since_decision;
    Duration decided_at;
    while (!limit_reached()) {
        const auto wanted = static_cast<int>(std::min<std::int64_t>(options.decision_interval, remaining()));
        const Measurements measured = cluster.run(job.plan(), wanted);
        const auto trained = static_cast<std::int64_t>(measured.iterations.size());
        summary.iterations += trained;
        const bool last = measured.ended || limit_reached();
        if (since_decision) {
            since_decision->iterations = trained;
            since_decision->wall = cluster.now() - decided_at;
            since_decision->last = last;
            since_decision->truncated = last && !measured.ended;
            sink.earned(*since_decision);
        }
        if (last) break;
        if (measured.iterations.empty() && !measured.loss) {
            throw std::logic_error("the cluster trained nothing, lost nothing and did not end");
        }

        Decision decision;
        decision.iteration = summary.iterations;
        decision.observation = builder.build(facts, job.plan(), measured, cluster.now());
        decision.candidates = generator.propose(decision.observation, policy.further_plans());
        decision.chosen = policy.decide(decision.observation, decision.candidates);
        if (decision.chosen.candidate >= decision.candidates.size()) {
            throw std::logic_error("policy '" + std::string(policy.name()) + "' chose a candidate that does not exist");
        }
        ++summary.decisions;
        if (!sink.decided(decision)) {
            summary.complete = false;
            break;
        }
        decided_at = cluster.now();
        since_decision = Interval{};
        since_decision->iterations_lost = job.act(decision.candidates[decision.chosen.candidate]);
    }
    summary.wall = cluster.now();
    return summary;
}

}  // namespace headway::policies
