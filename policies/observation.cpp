#include "policies/observation.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <string>

namespace headway::policies {

namespace {

/// FLOPs of the logits layer over those of one transformer layer, forward, for one token.
double logits_in_layers(const scenarios::Model& model) {
    const double hidden = model.hidden;
    const double head_dim = model.head_dim > 0 ? model.head_dim : hidden / model.heads;
    const double attention =
        2.0 * hidden * head_dim * (model.heads + model.kv_heads) + 2.0 * head_dim * model.heads * model.sequence_length;
    const double mlp = (model.gated_mlp ? 3.0 : 2.0) * hidden * model.ffn;
    return hidden * model.vocab / (attention + mlp);
}

/// Work of one rank in one iteration, in layers times micro-batches.
double rank_work(const scenarios::Job& job, const scenarios::Plan& plan, int replica, int stage) {
    const scenarios::Layout& layout = plan.layout;
    double layers = 0.0;
    for (int chunk = 0; chunk < layout.virtual_pipeline; ++chunk) {
        layers += plan.layers(replica, chunk * layout.pipeline + stage);
    }
    if (stage == layout.pipeline - 1) layers += logits_in_layers(job.model);
    return layers * plan.micro_batches_of_replica[static_cast<std::size_t>(replica)] / layout.ranks_per_worker();
}

/// What sensors resolve, and no more: a record then holds exactly what a policy was told.
double resolved(double value, double steps_per_unit) {
    return std::round(value * steps_per_unit) / steps_per_unit;
}

RankMeasurement resolved(RankMeasurement raw) {
    raw.temperature_c = resolved(raw.temperature_c, 10.0);
    raw.sm_clock_mhz = resolved(raw.sm_clock_mhz, 1.0);
    raw.power_w = resolved(raw.power_w, 1.0);
    return raw;
}

}  // namespace

void ObservationBuilder::start_episode() {
    best_speed_of_gpu_.clear();
}

Observation ObservationBuilder::build(const ClusterFacts& facts, const scenarios::Plan& plan,
                                      const Measurements& measured, Duration now) {
    const scenarios::Layout& layout = plan.layout;
    if (!measured.ranks.empty() && measured.ranks.size() != static_cast<std::size_t>(layout.world_size())) {
        throw std::invalid_argument("measurements of " + std::to_string(measured.ranks.size()) +
                                    " ranks for a plan of " + std::to_string(layout.world_size()));
    }
    Observation observation;
    observation.now = now;
    observation.groups = measured.groups;
    for (GroupMeasurement& group : observation.groups) {
        group.bus_bytes_per_second = std::round(group.bus_bytes_per_second / 1e6) * 1e6;
    }
    observation.loss = measured.loss;
    observation.unavailable_gpus = measured.unavailable_gpus;
    observation.plan = plan;
    observation.iterations = measured.iterations;
    if (!measured.iterations.empty()) {
        Duration sum;
        for (const Duration duration : measured.iterations) sum += duration;
        observation.iteration = Duration::nanoseconds(sum.ns() / static_cast<std::int64_t>(measured.iterations.size()));
    }
    if (measured.ranks.empty()) return observation;

    std::vector<double> speed(measured.ranks.size(), 0.0);
    std::vector<double> fastest_of_stage(static_cast<std::size_t>(layout.pipeline), 0.0);
    const auto stage_of = [&](std::size_t rank) {
        return rank / static_cast<std::size_t>(layout.data * layout.ranks_per_worker());
    };
    for (std::size_t rank = 0; rank < speed.size(); ++rank) {
        const RankMeasurement& raw = measured.ranks[rank];
        if (raw.compute.ns() <= 0) continue;
        const auto replica =
            (rank / static_cast<std::size_t>(layout.ranks_per_worker())) % static_cast<std::size_t>(layout.data);
        speed[rank] =
            rank_work(facts.job, plan, static_cast<int>(replica), static_cast<int>(stage_of(rank))) / raw.compute.s();
        fastest_of_stage[stage_of(rank)] = std::max(fastest_of_stage[stage_of(rank)], speed[rank]);
        const auto gpu = static_cast<std::size_t>(raw.gpu);
        if (gpu >= best_speed_of_gpu_.size()) best_speed_of_gpu_.resize(gpu + 1, 0.0);
        best_speed_of_gpu_[gpu] = std::max(best_speed_of_gpu_[gpu], speed[rank]);
    }
    observation.ranks.reserve(speed.size());
    for (std::size_t rank = 0; rank < speed.size(); ++rank) {
        RankObservation seen{resolved(measured.ranks[rank]), 1.0, 1.0};
        if (speed[rank] > 0.0) {
            seen.relative_score = speed[rank] / fastest_of_stage[stage_of(rank)];
            seen.individual_score = speed[rank] / best_speed_of_gpu_[static_cast<std::size_t>(seen.measured.gpu)];
        }
        observation.ranks.push_back(seen);
    }
    return observation;
}

}  // namespace headway::policies
