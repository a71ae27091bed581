#include "policies/planning/placement_plans.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "policies/planning/reasons.h"
#include "policies/planning/rebalance.h"
#include "policies/planning/workers.h"

namespace headway::policies {

using scenarios::Plan;
using Kind = Candidate::Kind;

namespace {

constexpr double kSlowWorker = 1.03;     ///< over the middle one
constexpr double kFaster = 0.005;        ///< than everything offered before: moving costs more than sharing
constexpr double kFasterLeftOut = 0.02;  ///< what is left out is not measured, and missing when it is well again

/// How slow every worker is, whatever its stage.
class WorkerSpeeds {
  public:
    WorkerSpeeds(LayoutPredictor& layout, const Plan& plan, int layers) {
        for (int replica = 0; replica < plan.layout.data; ++replica)
            for (int stage = 0; stage < plan.layout.pipeline; ++stage)
                seconds_.push_back(layout.plain_seconds(replica, stage, layers));
        std::vector<double> sorted = seconds_;
        const auto middle = sorted.begin() + static_cast<std::ptrdiff_t>(sorted.size() / 2);
        std::nth_element(sorted.begin(), middle, sorted.end());
        middle_ = *middle;
        for (std::size_t w = 0; w < seconds_.size(); ++w)
            if (seconds_[w] > kSlowWorker * middle_) slow_.push_back(w);
        std::stable_sort(slow_.begin(), slow_.end(),
                         [&](std::size_t a, std::size_t b) { return seconds_[a] > seconds_[b]; });
    }

    const std::vector<std::size_t>& slow() const { return slow_; }  ///< the slowest first
    bool is_slow(std::size_t worker) const { return seconds_[worker] > kSlowWorker * middle_; }
    double slowness(std::size_t worker) const { return seconds_[worker] / middle_; }

  private:
    std::vector<double> seconds_;
    std::vector<std::size_t> slow_;
    double middle_ = 0.0;
};

/// A plan on other GPUs, and what shares and splits make of it.
void offer_with_rebalancing(Proposal& proposal, Kind kind, const Plan& plan, const std::string& why) {
    if (!proposal.legal(plan)) return;
    const auto layout = proposal.predictor().of_layout(plan);
    layout->set(proposal.conditions());
    Rebalancer rebalancer(*layout, proposal.facts().job, proposal.facts().adapt);
    const double faster = kind == Kind::kDropGpus ? kFasterLeftOut : kFaster;
    const auto offer = [&](const Plan& better, const std::string& also) {
        proposal.offer(kind, better, why + also, proposal.gain_over_fastest(faster));
    };
    if (const auto both = rebalancer.split_and_share(plan, true)) offer(*both, ", with layers and shares to suit");
    if (const auto shared = rebalancer.share(plan)) offer(*shared, ", with shares to suit");
    if (const auto split = rebalancer.split(plan, true)) offer(*split, ", with layers to suit");
    offer(plan, "");
}

using Workers = std::vector<std::vector<int>>;

Plan placed(const scenarios::Job& job, const Plan& plan, const Workers& workers) {
    Plan result = put_together(job, plan.layout, workers, plan.layers_of_cell);
    result.micro_batches_of_replica = plan.micro_batches_of_replica;
    return result;
}

/// Slow workers change places with others so that they stand in as few replicas as they fill. Returns whether any did.
bool gather(const WorkerSpeeds& speeds, int replicas, int stages, Workers& workers) {
    std::vector<double> loss(static_cast<std::size_t>(replicas), 0.0);
    for (const std::size_t w : speeds.slow()) loss[w / static_cast<std::size_t>(stages)] += speeds.slowness(w) - 1.0;
    std::vector<std::size_t> order;
    for (std::size_t r = 0; r < loss.size(); ++r) order.push_back(r);
    std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return loss[a] > loss[b]; });
    order.resize((speeds.slow().size() + static_cast<std::size_t>(stages) - 1) / static_cast<std::size_t>(stages));
    const auto wanted = [&](std::size_t replica) {
        return std::find(order.begin(), order.end(), replica) != order.end();
    };
    std::vector<char> is_slow(workers.size(), 0);
    for (const std::size_t w : speeds.slow()) is_slow[w] = 1;
    bool moved = false;
    for (const std::size_t w : speeds.slow()) {
        const std::size_t stage = w % static_cast<std::size_t>(stages);
        if (wanted(w / static_cast<std::size_t>(stages))) continue;
        // The same stage first: its replicas hold the same weights.
        std::optional<std::size_t> to;
        for (const std::size_t replica : order)
            for (std::size_t s = 0; s < static_cast<std::size_t>(stages) && !to; ++s) {
                const std::size_t other =
                    replica * static_cast<std::size_t>(stages) + (stage + s) % static_cast<std::size_t>(stages);
                if (!is_slow[other]) to = other;
            }
        if (!to) break;
        std::swap(workers[w], workers[*to]);
        std::swap(is_slow[w], is_slow[*to]);
        moved = true;
    }
    return moved;
}

/// Slow GPUs of a node change places within the node, so that they slow as few workers as they fill. Returns whether
/// any did.
bool gather_in_nodes(const Proposal& proposal, const WorkerSpeeds& speeds, Workers& workers) {
    const auto& gpus = proposal.conditions().gpus;
    if (gpus.empty() || workers.front().size() < 2) return false;
    const auto slowness = [&](int gpu) {
        return 1.0 / std::min(gpus[static_cast<std::size_t>(gpu)].compute, gpus[static_cast<std::size_t>(gpu)].memory);
    };
    bool moved = false;
    // The slowest worker takes the slowest GPUs of the other slow workers of its node.
    for (const std::size_t target : speeds.slow()) {
        const int node = proposal.facts().cluster.node_of(workers[target].front());
        for (const std::size_t other : speeds.slow()) {
            if (other <= target && other != target && speeds.slowness(other) > speeds.slowness(target)) continue;
            if (other == target || proposal.facts().cluster.node_of(workers[other].front()) != node) continue;
            auto &a = workers[target], &b = workers[other];
            const auto by = [&](int x, int y) { return slowness(x) < slowness(y); };
            for (std::size_t turn = 0; turn < a.size(); ++turn) {
                const auto fast = std::min_element(a.begin(), a.end(), by);
                const auto slow = std::max_element(b.begin(), b.end(), by);
                if (slowness(*slow) < kSlowWorker * slowness(*fast)) break;
                std::swap(*fast, *slow);
                moved = true;
            }
        }
    }
    return moved;
}

std::vector<int> gpus_of_workers(const Workers& workers, const std::vector<std::size_t>& which) {
    std::vector<int> gpus;
    for (const std::size_t w : which) gpus.insert(gpus.end(), workers[w].begin(), workers[w].end());
    return gpus;
}

}  // namespace

void offer_placements(Proposal& proposal, LayoutPredictor& layout) {
    const Plan plan = proposal.plan();
    const scenarios::Adapt& adapt = proposal.facts().adapt;
    if (!adapt.placement) return;
    const int layers = std::max(1, proposal.facts().job.model.layers / plan.layout.virtual_stages());
    const WorkerSpeeds speeds(layout, plan, layers);
    if (speeds.slow().empty() || speeds.slow().size() * 2 > static_cast<std::size_t>(plan.workers())) return;
    const Workers before = workers_of(plan);
    const std::string slow = gpus_text(gpus_of_workers(before, {speeds.slow().front()})) + " " +
                             (before.front().size() == 1 ? "is " : "are ") +
                             short_number(speeds.slowness(speeds.slow().front())) + " times slower";

    // Idle GPUs instead: the slowest workers first.
    const std::vector<std::vector<int>> idle = idle_groups(proposal.facts().cluster, plan, proposal.unavailable());
    if (!idle.empty()) {
        Workers workers = before;
        for (std::size_t i = 0; i < std::min(idle.size(), speeds.slow().size()); ++i)
            workers[speeds.slow()[i]] = idle[i];
        offer_with_rebalancing(proposal, Kind::kPlaceRanks, placed(proposal.facts().job, plan, workers),
                               slow + ": idle GPUs take over");
    }
    Workers workers = before;
    const bool in_nodes = gather_in_nodes(proposal, speeds, workers);
    if (in_nodes)
        offer_with_rebalancing(proposal, Kind::kPlaceRanks, placed(proposal.facts().job, plan, workers),
                               slow + ": slow GPUs of a node into one worker");
    if (!in_nodes && plan.layout.data > 1 && gather(speeds, plan.layout.data, plan.layout.pipeline, workers))
        offer_with_rebalancing(proposal, Kind::kPlaceRanks, placed(proposal.facts().job, plan, workers),
                               slow + ": slow workers into one replica");
    if (in_nodes) {
        // What is slow has changed: look again from there.
        const Plan moved = placed(proposal.facts().job, plan, workers);
        if (!proposal.legal(moved)) return;
        const auto there = proposal.predictor().of_layout(moved);
        there->set(proposal.conditions());
        const WorkerSpeeds again(*there, moved, layers);
        if (plan.layout.data > 1 && gather(again, plan.layout.data, plan.layout.pipeline, workers))
            offer_with_rebalancing(proposal, Kind::kPlaceRanks, placed(proposal.facts().job, plan, workers),
                                   slow + ": slow GPUs into one worker and one replica");
    }
}

void offer_other_sizes(Proposal& proposal, LayoutPredictor& layout) {
    const ClusterFacts& facts = proposal.facts();
    if (!facts.adapt.drop) return;
    const Plan plan = proposal.plan();
    Rebalancer rebalancer(layout, facts.job, facts.adapt);

    // Further replicas of idle GPUs.
    const std::vector<std::vector<int>> idle = idle_groups(facts.cluster, plan, proposal.unavailable());
    const int more = static_cast<int>(idle.size()) / plan.layout.pipeline;
    if (more > 0) {
        Workers workers = workers_of(plan);
        workers.insert(workers.end(), idle.begin(),
                       idle.begin() + static_cast<std::ptrdiff_t>(more) * plan.layout.pipeline);
        std::vector<int> layers = plan.layers_of_cell;
        const std::vector<int> first = layers_of_replica(plan, 0);
        for (int replica = 0; replica < more; ++replica) layers.insert(layers.end(), first.begin(), first.end());
        const Plan larger = put_together(facts.job, plan.layout, workers, layers);
        if (!larger.micro_batches_of_replica.empty())
            offer_with_rebalancing(proposal, Kind::kBringBack, larger,
                                   std::to_string(idle.size() * idle.front().size()) +
                                       " GPUs are idle: " + std::to_string(plan.layout.data + more) + " instead of " +
                                       std::to_string(plan.layout.data) + " replicas");
    }

    // Without the slowest replica.
    if (plan.layout.data < 2 || !layout.replicas_differ()) return;
    int slowest = 0;
    std::vector<double> seconds;
    for (int replica = 0; replica < plan.layout.data; ++replica) {
        seconds.push_back(rebalancer.slowest_stage_seconds(plan, replica));
        if (seconds.back() > seconds[static_cast<std::size_t>(slowest)]) slowest = replica;
    }
    const double most = seconds[static_cast<std::size_t>(slowest)];
    std::sort(seconds.begin(), seconds.end());
    if (most < kSlowWorker * seconds.front()) return;
    const Plan rest = without_replicas(facts.job, plan, {slowest});
    if (rest.micro_batches_of_replica.empty()) return;
    offer_with_rebalancing(proposal, Kind::kDropGpus, rest,
                           "replica " + std::to_string(slowest) + " takes " + short_number(most / seconds.front()) +
                               " times as long as the fastest: go on without it");
}

}  // namespace headway::policies
