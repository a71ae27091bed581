#include "policies/planning/proposal.h"

#include <algorithm>
#include <utility>

#include "policies/planning/legality.h"
#include "scenarios/costs/checkpoint.h"

namespace headway::policies {

using scenarios::Duration;
using scenarios::Plan;

void Proposal::start(Candidate first) {
    candidates_.clear();
    candidates_.push_back(std::move(first));
}

bool Proposal::known(const Plan& plan) const {
    return std::any_of(candidates_.begin(), candidates_.end(),
                       [&](const Candidate& candidate) { return candidate.plan == plan; });
}

bool Proposal::legal(const Plan& plan) const {
    return uses_none(plan, unavailable_) && predictor_.fits(plan);
}

Duration Proposal::fastest() const {
    Duration least = candidates_.front().predicted.iteration;
    for (const Candidate& candidate : candidates_) least = std::min(least, candidate.predicted.iteration);
    return least;
}

std::optional<Duration> Proposal::fastest_restart() const {
    std::optional<Duration> least;
    for (const Candidate& candidate : candidates_)
        if (candidate.kind == Candidate::Kind::kRestart && (!least || candidate.predicted.iteration < *least))
            least = candidate.predicted.iteration;
    return least;
}

double Proposal::gain_over_fastest(double further) const {
    return 1.0 - (1.0 - further) * (fastest() / candidates_.front().predicted.iteration);
}

Duration Proposal::iteration(const Plan& plan) {
    return predictor_.iteration(plan, conditions_).scaled(corrections_.of(plan));
}

bool Proposal::offer(Candidate::Kind kind, const Plan& plan, std::string why, double gain) {
    const Candidate& first = candidates_.front();
    if (known(plan) || !may_change(facts_.adapt, first.plan, plan) || !legal(plan)) return false;
    Candidate candidate{kind, plan, {}, std::move(why)};
    candidate.predicted.iteration = iteration(plan);
    if (gain > 0.0 && candidate.predicted.iteration > first.predicted.iteration.scaled(1.0 - gain)) return false;
    candidates_.push_back(std::move(candidate));
    return true;
}

bool Proposal::offer_restart(const Plan& plan, std::string why) {
    if (known(plan) || !may_change(facts_.adapt, candidates_.front().plan, plan) || !legal(plan)) return false;
    Candidate candidate{Candidate::Kind::kRestart, plan, {}, std::move(why)};
    candidate.predicted.iteration = iteration(plan);
    candidate.predicted.pause = scenarios::checkpoint_costs(facts_.job, facts_.cluster, plan).restart;
    candidate.predicted.restart = candidate.predicted.pause;
    candidate.predicted.memory = predictor_.memory(plan);
    candidates_.push_back(std::move(candidate));
    return true;
}

double Proposal::slowest_link(const Plan& from, const Plan& to) const {
    const std::vector<double>&nodes = conditions_.node_network, &uplinks = conditions_.rack_uplink;
    if (nodes.empty() && uplinks.empty()) return 1.0;
    const scenarios::Layout &a = from.layout, &b = to.layout;
    const bool same_degrees = a.tensor == b.tensor && a.pipeline == b.pipeline && a.data == b.data &&
                              a.context == b.context && a.virtual_pipeline == b.virtual_pipeline;
    double slowest = 1.0;
    for (const Plan* plan : {&from, &to})
        for (std::size_t rank = 0; rank < plan->gpu_of_rank.size(); ++rank) {
            if (same_degrees && from.gpu_of_rank[rank] == to.gpu_of_rank[rank]) {
                const auto worker = rank / static_cast<std::size_t>(a.ranks_per_worker());
                const int replica = static_cast<int>(worker) % a.data, stage = static_cast<int>(worker) / a.data;
                bool same_layers = true;
                for (int k = stage; k < a.virtual_stages(); k += a.pipeline)
                    same_layers = same_layers && from.layers(replica, k) == to.layers(replica, k);
                if (same_layers) continue;
            }
            const int node = facts_.cluster.node_of(plan->gpu_of_rank[rank]);
            if (!nodes.empty()) slowest = std::min(slowest, nodes[static_cast<std::size_t>(node)]);
            if (!uplinks.empty())
                slowest = std::min(slowest, uplinks[static_cast<std::size_t>(facts_.cluster.rack_of_node(node))]);
        }
    return slowest;
}

std::vector<Candidate> Proposal::finish(std::size_t most) {
    std::stable_sort(candidates_.begin() + 1, candidates_.end(), [](const Candidate& a, const Candidate& b) {
        return std::pair(a.kind, a.predicted.iteration) < std::pair(b.kind, b.predicted.iteration);
    });
    std::vector<Candidate> kept;
    std::size_t of_kind = 0;
    for (Candidate& candidate : candidates_) {
        of_kind = !kept.empty() && kept.back().kind == candidate.kind ? of_kind + 1 : 1;
        if (of_kind <= most || candidate.kind == Candidate::Kind::kFurther) kept.push_back(std::move(candidate));
    }
    candidates_.clear();
    std::unique_ptr<scenarios::SwitchEstimate> estimate;
    for (std::size_t i = 1; i < kept.size(); ++i) {
        Candidate& candidate = kept[i];
        if (candidate.kind == Candidate::Kind::kRestart) {
            const scenarios::SwitchCosts back =
                scenarios::SwitchEstimate(facts_.job, facts_.cluster, candidate.plan).to(kept.front().plan);
            const bool live = facts_.adapt.live && back.fits_live;
            candidate.predicted.way_back =
                live ? back.live_pause_behind(candidate.predicted.iteration) : back.restart_pause;
            continue;
        }
        if (!estimate)
            estimate = std::make_unique<scenarios::SwitchEstimate>(facts_.job, facts_.cluster, kept.front().plan);
        const scenarios::SwitchCosts costs = estimate->to(candidate.plan);
        const bool live = facts_.adapt.live && costs.fits_live;
        const double links = slowest_link(kept.front().plan, candidate.plan);
        const Duration relaunch = facts_.job.checkpoint.restart;
        candidate.predicted.restart = relaunch + (costs.restart_pause - relaunch).scaled(1.0 / links);
        candidate.predicted.pause = live ? costs.live_pause_behind(kept.front().predicted.iteration,
                                                                   costs.moved > scenarios::Bytes() ? links : 1.0)
                                         : candidate.predicted.restart;
        candidate.predicted.moved = costs.moved;
        candidate.predicted.memory = std::max(kept.front().predicted.memory, predictor_.memory(candidate.plan));
        if (live) candidate.predicted.memory = std::max(candidate.predicted.memory, costs.peak_memory);
    }
    return kept;
}

}  // namespace headway::policies
