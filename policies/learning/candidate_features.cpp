#include <algorithm>

#include "policies/learning/feature_math.h"
#include "policies/learning/features.h"

/// Features of the candidates.
namespace headway::policies {

namespace {

constexpr double kNeverPays = 5.0;
constexpr double kSlowGpu = 0.92;
constexpr double kNominalHorizon = 12.0;

double change_of(int from, int to) {
    return log_ratio(to, from);
}

}  // namespace

void FeatureBuilder::write_candidates(const Observation& observation, const std::vector<Candidate>& candidates) {
    constexpr std::size_t kKinds = static_cast<std::size_t>(Candidate::Kind::kFurther) + 1;
    static_assert(kKinds == std::tuple_size_v<decltype(gain_of_kind_)>);
    std::vector<float>& out = features_.candidates;
    out.clear();
    features_.gain.clear();
    features_.cost.clear();
    const auto add = [&](double value) { out.push_back(static_cast<float>(std::clamp(value, -8.0, 8.0))); };
    const double interval_s = iterations_per_interval_ * healthy_s_;
    const auto speed_of = [&](const Candidate& candidate) {
        return std::min(share(healthy_s_, candidate.predicted.iteration.s()), 3.0);
    };
    const auto gain_of = [&](const Candidate& candidate) {
        return log_ratio(candidates[0].predicted.iteration.s(), candidate.predicted.iteration.s());
    };
    const double speed = speed_of(candidates[0]);
    const double lost = speed * share(candidates[0].predicted.pause.s(), interval_s);
    best_gain_ = 0.0;
    std::array<double, kKinds> best_of_kind{};
    for (const Candidate& candidate : candidates) {
        double& best = best_of_kind[static_cast<std::size_t>(candidate.kind)];
        best = std::max(best, gain_of(candidate));
        best_gain_ = std::max(best_gain_, gain_of(candidate));
    }
    for (std::size_t kind = 0; kind < kKinds; ++kind) {
        gain_of_kind_[kind] +=
            (best_of_kind[kind] - gain_of_kind_[kind]) / static_cast<double>(std::min<std::int64_t>(decision_ + 1, 3));
    }
    gain_mean_ += (best_gain_ - gain_mean_) / static_cast<double>(std::min<std::int64_t>(decision_ + 1, 3));
    gain_offered_.see(best_gain_ > 0.03);

    std::size_t slowest = 0;
    double slow_gpus = 0.0;
    for (std::size_t gpu = 0; gpu < score_of_gpu_.size(); ++gpu) {
        if (score_of_gpu_[gpu] < score_of_gpu_[slowest]) slowest = gpu;
        slow_gpus += score_of_gpu_[gpu] < kSlowGpu ? 1.0 : 0.0;
    }
    double used_bytes = 0.0;
    for (const RankObservation& rank : observation.ranks) {
        used_bytes += static_cast<double>(rank.measured.memory_used_bytes);
    }
    double smallest_memory = 0.0;
    for (const scenarios::NodeGroup& group : facts_.cluster.node_groups) {
        const auto memory = static_cast<double>(group.node.gpu.memory.count());
        smallest_memory = smallest_memory > 0.0 ? std::min(smallest_memory, memory) : memory;
    }

    const scenarios::Plan& now = observation.plan;
    for (const Candidate& candidate : candidates) {
        const scenarios::Plan& plan = candidate.plan;
        const Prediction& predicted = candidate.predicted;
        const double candidate_speed = speed_of(candidate);
        const double gain = std::clamp(candidate_speed - speed, -2.0, 2.0);
        const double cost = std::clamp(candidate_speed * share(predicted.pause.s(), interval_s) - lost, -100.0, 100.0);
        features_.gain.push_back(static_cast<float>(gain));
        features_.cost.push_back(static_cast<float>(cost));

        for (std::size_t kind = 0; kind < kKinds; ++kind) {
            add(kind == static_cast<std::size_t>(candidate.kind) ? 1.0 : 0.0);
        }
        add(-gain_of(candidate));
        add(log_ratio(predicted.iteration.s(), healthy_s_));
        add(gain);
        add(signed_log(cost));
        add(signed_log(kNominalHorizon * gain - cost));
        const bool pays = gain > 1e-3 || cost < 0.0;
        add(!pays ? kNeverPays : std::min(kNeverPays, signed_log(std::max(0.0, cost) / std::max(gain, 1e-3))));
        add(log_ratio(predicted.pause.s(), predicted.restart.s()));
        add(signed_log(share(static_cast<double>(predicted.moved.count()), used_bytes)));
        add(share(static_cast<double>(predicted.memory.count()), smallest_memory));
        const auto left = left_.find(plan_hash(plan));
        const bool was_left = left != left_.end() && candidate.plan != now;
        add(was_left ? 1.0 / (1.0 + 0.1 * static_cast<double>(decision_ - left->second.decision)) : 0.0);
        add(was_left ? left->second.miss : 0.0);

        const std::size_t common = std::min(plan.gpu_of_rank.size(), now.gpu_of_rank.size());
        double changed = static_cast<double>(std::max(plan.gpu_of_rank.size(), now.gpu_of_rank.size()) - common);
        for (std::size_t i = 0; i < common; ++i) changed += plan.gpu_of_rank[i] != now.gpu_of_rank[i] ? 1.0 : 0.0;
        add(share(changed, static_cast<double>(now.gpu_of_rank.size())));
        add(moved_share(now.layers_of_cell, plan.layers_of_cell));
        add(moved_share(now.micro_batches_of_replica, plan.micro_batches_of_replica));
        add(change_of(now.layout.world_size(), plan.layout.world_size()));
        add(change_of(now.layout.tensor, plan.layout.tensor));
        add(change_of(now.layout.pipeline, plan.layout.pipeline));
        add(change_of(now.layout.data, plan.layout.data));
        add(change_of(now.layout.context, plan.layout.context));

        gpu_used_.assign(gpus_.size(), 0);
        for (const int gpu : plan.gpu_of_rank) {
            if (static_cast<std::size_t>(gpu) < gpu_used_.size()) gpu_used_[static_cast<std::size_t>(gpu)] = 1;
        }
        double left_out = 0.0;
        for (std::size_t gpu = 0; gpu < gpu_used_.size(); ++gpu) {
            left_out += score_of_gpu_[gpu] < kSlowGpu && !gpu_used_[gpu] ? 1.0 : 0.0;
        }
        add(slow_gpus > 0.0 && gpu_used_[slowest] ? 1.0 : 0.0);
        add(share(left_out, slow_gpus));
        add(imbalance(plan.micro_batches_of_replica.data(), plan.micro_batches_of_replica.size()));
        add(imbalance(plan.layers_of_cell.data(), plan.layers_of_cell.size()));
        add(gain_of_kind_[static_cast<std::size_t>(candidate.kind)]);
        add(share(gain_of(candidate), best_gain_));
        add(plan_hash(plan) == initial_plan_ ? 1.0 : 0.0);
    }
}

}  // namespace headway::policies
