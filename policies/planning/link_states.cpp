#include "policies/planning/link_states.h"

#include <algorithm>
#include <cmath>

namespace headway::policies {

namespace {

using scenarios::Duration;
using GroupKind = GroupMeasurement::Kind;

constexpr double kLinkDifference = 0.03;  ///< of bandwidths, not worth telling
constexpr double kLeastFactor = 1e-4;
/// A delay counts from this share of a healthy message on, and from this long on.
constexpr double kDelayShare = 0.2;
constexpr double kLeastDelaySeconds = 5e-6;

}  // namespace

LinkStates::LinkStates(const scenarios::Cluster& cluster) : cluster_(&cluster) {
    for (int node = 0; node < cluster.nodes(); ++node)
        node_of_gpu_.insert(node_of_gpu_.end(), static_cast<std::size_t>(cluster.node(node).gpus), node);
    start_episode();
}

void LinkStates::start_episode() {
    plan_ = scenarios::Plan();
    groups_.clear();
    fabric_.clear();
    node_.assign(static_cast<std::size_t>(cluster_->nodes()), 1.0);
    uplink_.assign(static_cast<std::size_t>(cluster_->racks()), 1.0);
    node_delay_.assign(node_.size(), Duration());
    hop_delay_.clear();
    seen_.start(2 * node_.size() + uplink_.size());
    hops_ = 0;
    ambiguous_ = delays_first_ = false;
}

/// The groups of a plan and the links behind them.
void LinkStates::lay_out(const scenarios::Plan& plan) {
    plan_ = plan;
    groups_.clear();
    const scenarios::Layout& layout = plan.layout;
    const auto node_of = [&](int gpu) { return node_of_gpu_[static_cast<std::size_t>(gpu)]; };
    // All ranks of some workers; a group within one node uses its fabric, else NICs, between racks uplinks too.
    const auto parts_of = [&](std::vector<int> nodes) {
        std::sort(nodes.begin(), nodes.end());
        nodes.erase(std::unique(nodes.begin(), nodes.end()), nodes.end());
        std::vector<Part> parts;
        if (nodes.size() == 1) return std::vector<Part>{{Link::kFabric, nodes.front()}};
        std::vector<int> racks;
        for (const int node : nodes) {
            parts.push_back({Link::kNode, node});
            racks.push_back(cluster_->rack_of_node(node));
        }
        racks.erase(std::unique(racks.begin(), racks.end()), racks.end());
        if (racks.size() > 1)
            for (const int rack : racks) parts.push_back({Link::kUplink, rack});
        return parts;
    };
    const auto add_nodes = [&](std::vector<int>& nodes, int replica, int stage) {
        for (int member = 0; member < layout.ranks_per_worker(); ++member)
            nodes.push_back(node_of(plan.gpu_of_worker(replica, stage, member)));
    };
    for (int worker = 0; worker < plan.workers(); ++worker) {
        const int replica = worker / layout.pipeline, stage = worker % layout.pipeline;
        std::vector<int> nodes;
        add_nodes(nodes, replica, stage);
        if (layout.ranks_per_worker() > 1)
            groups_.push_back({GroupKind::kTensor, worker, parts_of(nodes), 1.0, 0, 1, {}});
        if (layout.pipeline == 1) continue;
        add_nodes(nodes, replica, (stage + 1) % layout.pipeline);
        groups_.push_back({GroupKind::kPipeline, worker, parts_of(nodes), 1.0, 0, 1, {}});
    }
    for (int stage = 0; stage < layout.pipeline; ++stage) {
        std::vector<int> nodes;
        for (int replica = 0; replica < layout.data; ++replica) add_nodes(nodes, replica, stage);
        groups_.push_back({GroupKind::kData, stage, parts_of(nodes), 1.0, 0, 1, {}});
    }
    best_tensor_ = 0.0;
    hops_ = layout.pipeline - 1;
    hop_delay_.assign(static_cast<std::size_t>(std::max(0, hops_)), Duration());
}

/// Bandwidth over nominal that a measurement means; what it takes when healthy goes into `group`.
double LinkStates::expected(Group& group, const scenarios::IterationCosts& costs, double measured) const {
    const scenarios::Layout& layout = plan_.layout;
    const bool inside = group.parts.front().link == Link::kFabric;
    if (group.kind == GroupKind::kTensor) return measured / best_tensor_;
    if (group.kind == GroupKind::kPipeline) {
        const scenarios::MessageCosts& message = costs.activation;
        const Duration whole = inside ? message.inside_node : message.across_nodes;
        const double overhead = std::min(message.overhead, whole).s();
        group.healthy_s = whole.s() - overhead;
        group.messages = 1;
        const double took = static_cast<double>(message.bytes_per_rank.count()) / measured - overhead;
        return took > 0.0 ? group.healthy_s / took : 1.0;
    }
    const scenarios::StageCosts& stage = costs.stages[static_cast<std::size_t>(group.index)];
    double bytes = 0.0, healthy = 0.0;
    for (std::size_t chunk = 0; chunk < stage.reduce_gradients.size(); ++chunk) {
        bytes += static_cast<double>(stage.reduce_bytes_per_rank[chunk].count());
        healthy += stage.reduce_gradients[chunk].s();
    }
    const double ranks = static_cast<double>(layout.data) * layout.context;
    const double passes = layout.distributed_optimizer ? 1.0 : 2.0;
    if (healthy <= 0.0) return 1.0;
    const auto nodes = std::count_if(group.parts.begin(), group.parts.end(),
                                     [](const Part& part) { return part.link == Link::kNode; });
    group.healthy_s = healthy;
    group.messages = passes * static_cast<double>(nodes) * static_cast<double>(stage.reduce_gradients.size());
    return measured / (bytes * passes * (ranks - 1.0) / ranks / healthy);
}

bool LinkStates::update(const Observation& observation, const scenarios::IterationCosts& costs, double noise) {
    if (observation.groups.empty() || observation.iteration <= Duration()) return false;
    const scenarios::Plan& plan = observation.plan;
    bool changed = false;
    if (!(plan_.layout == plan.layout && plan_.gpu_of_rank == plan.gpu_of_rank)) {
        lay_out(plan);
        changed = true;
    }
    for (auto& of_kind : bandwidth_) of_kind.assign(static_cast<std::size_t>(plan.workers()), 0.0);
    for (const GroupMeasurement& measured : observation.groups) {
        auto& of_kind = bandwidth_[static_cast<std::size_t>(measured.kind)];
        if (measured.index < 0 || static_cast<std::size_t>(measured.index) >= of_kind.size()) continue;
        of_kind[static_cast<std::size_t>(measured.index)] = measured.bus_bytes_per_second;
        if (measured.kind == GroupKind::kTensor) best_tensor_ = std::max(best_tensor_, measured.bus_bytes_per_second);
    }
    for (Group& group : groups_) {
        const double measured = bandwidth_[static_cast<std::size_t>(group.kind)][static_cast<std::size_t>(group.index)];
        if (measured <= 0.0) continue;
        const double factor = std::max(kLeastFactor, expected(group, costs, measured));
        if (group.log_factor.update(std::min(0.0, std::log(factor)), noise, kLinkDifference)) changed = true;
        group.factor = std::exp(group.log_factor.published());
    }
    if (changed) explain();
    remember_seen(observation.now);
    return forget_what_is_long_ago(observation.now) || changed;
}

std::size_t LinkStates::number(const Part& part) const {
    const auto at = static_cast<std::size_t>(part.index);
    return part.link == Link::kFabric ? at : part.link == Link::kNode ? node_.size() + at : 2 * node_.size() + at;
}

bool LinkStates::slow(std::size_t link) const {
    const std::size_t nodes = node_.size();
    if (link < nodes) return link < fabric_.size() && fabric_[link] < 1.0;
    if (link >= 2 * nodes) return uplink_[link - 2 * nodes] < 1.0;
    return node_[link - nodes] < 1.0 || node_delay_[link - nodes] > Duration();
}

void LinkStates::remember_seen(Duration now) {
    for (const Group& group : groups_) {
        if (!group.log_factor.known()) continue;
        for (const Part& part : group.parts) seen_.measured(number(part), slow(number(part)), now);
    }
}

bool LinkStates::forget_what_is_long_ago(Duration now) {
    const std::size_t nodes = node_.size();
    bool any = false;
    for (std::size_t link = 0; link < 2 * nodes + uplink_.size(); ++link) {
        if (!seen_.may_be_well(link, now) || !slow(link)) continue;
        if (link < nodes) {
            fabric_[link] = 1.0;
        } else if (link >= 2 * nodes) {
            uplink_[link - 2 * nodes] = 1.0;
        } else {
            node_[link - nodes] = 1.0;
            node_delay_[link - nodes] = Duration();
        }
        any = true;
    }
    return any;
}

void LinkStates::explain() {
    explain_by_bandwidth();
    explain_by_delay();
}

void LinkStates::take_for_delays(bool delays) {
    delays_first_ = delays;
    explain();
}

/// Every link is at least as fast as the fastest of its groups. Slow groups are explained by as few links as do: first
/// by the one that explains most, all of several that explain as many. Links without a group stay as they were.
void LinkStates::explain_by_bandwidth() {
    constexpr double kAlike = 1.05;
    const std::size_t nodes = node_.size(), links = 2 * nodes + uplink_.size();
    std::vector<double> least(links, 0.0), value(links, 0.0);
    std::vector<const Group*> slow;
    ambiguous_ = false;
    for (const Group& group : groups_) {
        if (!group.log_factor.known()) continue;
        const bool message = group.kind == GroupKind::kPipeline && group.parts.front().link == Link::kNode;
        if (group.factor < 1.0) {
            ambiguous_ = ambiguous_ || message;
            if (!message || !delays_first_) slow.push_back(&group);
        }
        for (const Part& part : group.parts) {
            const std::size_t at = number(part);
            least[at] = std::max(least[at], group.factor);
            value[at] = 1.0;
        }
    }
    std::vector<int> explains(links);
    while (!slow.empty()) {
        std::fill(explains.begin(), explains.end(), 0);
        int most = 0;
        for (const Group* group : slow)
            for (const Part& part : group->parts)
                if (least[number(part)] <= group->factor * kAlike) most = std::max(most, ++explains[number(part)]);
        if (most == 0) break;  // a delay, or links that are slow in turns
        for (std::size_t at = 0; at < links; ++at)
            if (explains[at] == most) value[at] = least[at];
        std::erase_if(slow, [&](const Group* group) {
            return std::any_of(group->parts.begin(), group->parts.end(), [&](const Part& part) {
                return explains[number(part)] == most && least[number(part)] <= group->factor * kAlike;
            });
        });
    }
    fabric_.resize(nodes, 1.0);
    for (std::size_t n = 0; n < nodes; ++n) {
        if (value[n] > 0.0) fabric_[n] = value[n];
        if (value[nodes + n] > 0.0) node_[n] = value[nodes + n];
    }
    for (std::size_t r = 0; r < uplink_.size(); ++r)
        if (value[2 * nodes + r] > 0.0) uplink_[r] = value[2 * nodes + r];
}

double LinkStates::slowest_of(const Group& group) const {
    double slowest = 1.0;
    for (const Part& part : group.parts) {
        const auto& of_link = part.link == Link::kFabric ? fabric_ : part.link == Link::kNode ? node_ : uplink_;
        slowest = std::min(slowest, of_link[static_cast<std::size_t>(part.index)]);
    }
    return slowest;
}

double LinkStates::unexplained(const Group& group) const {
    const double explained = group.healthy_s / slowest_of(group);
    const double left = group.healthy_s / group.factor - explained;
    return left > std::max(kLeastDelaySeconds, kDelayShare * explained) ? left / group.messages : 0.0;
}

/// Node from which the messages of a hop come.
int LinkStates::sender(const Group& hop) const {
    const int pipeline = plan_.layout.pipeline;
    return node_of_gpu_[static_cast<std::size_t>(plan_.gpu_of_worker(hop.index / pipeline, hop.index % pipeline, 0))];
}

void LinkStates::explain_by_delay() {
    const int pipeline = plan_.layout.pipeline;
    const auto delays_on_nodes = [](const Group& group) { return group.parts.front().link == Link::kNode; };
    for (const Group& group : groups_)
        for (const Part& part : group.parts)
            if (part.link == Link::kNode && group.log_factor.known())
                node_delay_[static_cast<std::size_t>(part.index)] = Duration();
    std::fill(hop_delay_.begin(), hop_delay_.end(), Duration());
    // A hop that all replicas wait for, from more than one node: otherwise it is the node that they share.
    struct Hop {
        int node = -1;
        bool seen = false, from_several = false;
        double left = 0.0;
    };
    std::vector<Hop> hops(hop_delay_.size());
    std::vector<char> sends(node_.size(), 0);
    for (const Group& group : groups_) {
        if (group.kind != GroupKind::kPipeline || !group.log_factor.known()) continue;
        const int from = sender(group);
        if (delays_on_nodes(group)) sends[static_cast<std::size_t>(from)] = 1;
        const auto at = static_cast<std::size_t>(group.index % pipeline);
        if (at >= hops.size()) continue;
        Hop& hop = hops[at];
        const double left = unexplained(group);
        hop.left = hop.seen ? std::min(hop.left, left) : left;
        hop.from_several = hop.from_several || (hop.seen && hop.node != from);
        hop.node = from;
        hop.seen = true;
    }
    for (std::size_t at = 0; at < hops.size(); ++at)
        if (hops[at].from_several) hop_delay_[at] = Duration::seconds(hops[at].left);
    for (const Group& group : groups_) {
        if (group.kind != GroupKind::kPipeline || !group.log_factor.known() || !delays_on_nodes(group)) continue;
        const auto hop = static_cast<std::size_t>(group.index % pipeline);
        const double left = unexplained(group) - (hop < hop_delay_.size() ? hop_delay_[hop].s() : 0.0);
        if (left <= kLeastDelaySeconds) continue;
        Duration& delay = node_delay_[static_cast<std::size_t>(sender(group))];
        delay = std::max(delay, Duration::seconds(left));
    }
    // Nodes that send no activations (the last stage) show in their collective only.
    for (const Group& group : groups_) {
        if (group.kind != GroupKind::kData || !group.log_factor.known() || group.messages < 1.0) continue;
        const double each = unexplained(group);
        if (each <= kLeastDelaySeconds) continue;
        for (const Part& part : group.parts) {
            if (part.link != Link::kNode || sends[static_cast<std::size_t>(part.index)]) continue;
            Duration& delay = node_delay_[static_cast<std::size_t>(part.index)];
            delay = std::max(delay, Duration::seconds(each));
        }
    }
}

void LinkStates::put(scenarios::Conditions& conditions, int pipeline) const {
    const auto slow = [](const std::vector<double>& factors) {
        return std::any_of(factors.begin(), factors.end(), [](double factor) { return factor < 1.0; });
    };
    const auto late = [](const std::vector<Duration>& delays) {
        return std::any_of(delays.begin(), delays.end(), [](Duration delay) { return delay > Duration(); });
    };
    conditions.node_network = slow(node_) ? node_ : std::vector<double>();
    conditions.rack_uplink = slow(uplink_) ? uplink_ : std::vector<double>();
    conditions.node_delay = late(node_delay_) ? node_delay_ : std::vector<Duration>();
    conditions.hop_delay = pipeline - 1 == hops_ && late(hop_delay_) ? hop_delay_ : std::vector<Duration>();
}

}  // namespace headway::policies
