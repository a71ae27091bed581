#include "scenarios/timing/step_times.h"

#include <algorithm>
#include <set>
#include <stdexcept>
#include <string>

namespace headway::scenarios {

namespace {

template <class T>
T condition_or(const std::vector<T>& values, int i, T healthy) {
    return values.empty() ? healthy : values[static_cast<std::size_t>(i)];
}

/// A part of `whole` that is the same share of it as when healthy.
std::int64_t same_share(std::int64_t whole_ns, Duration healthy_part, Duration healthy_whole) {
    if (healthy_whole == Duration()) return 0;
    return Duration::nanoseconds(whole_ns).scaled(healthy_part / healthy_whole).ns();
}

}  // namespace

/// State of the links of a group.
struct StepTimer::Links {
    double slowest = 1.0;  // bandwidth over nominal
    int nodes = 1;
    Duration delay;  // longest that is added to a message of one of the nodes

    std::int64_t collective_ns(Duration healthy, int passes) const {
        if (healthy == Duration()) return 0;
        return (healthy.scaled(1.0 / slowest) + delay * (passes * nodes)).ns();
    }
};

struct StepTimer::Message {
    std::int64_t send_ns = 0, delay_ns = 0;
};

StepTimer::StepTimer(IterationCosts costs, const Plan& plan, const Cluster& cluster)
    : costs_(std::move(costs)),
      layout_(plan.layout),
      cluster_gpus_(static_cast<std::size_t>(cluster.gpus())),
      cluster_nodes_(static_cast<std::size_t>(cluster.nodes())),
      cluster_racks_(static_cast<std::size_t>(cluster.racks())),
      gpu_of_rank_(plan.gpu_of_rank) {
    if (static_cast<int>(gpu_of_rank_.size()) != layout_.world_size())
        throw std::invalid_argument("gpu_of_rank has one entry a rank");
    std::vector<int> type_of_node(cluster_nodes_, -1);
    for (const int gpu : gpu_of_rank_) {
        if (gpu < 0 || gpu >= static_cast<int>(cluster_gpus_))
            throw std::invalid_argument("GPU " + std::to_string(gpu) + " is not in the cluster");
        const int node = cluster.node_of(gpu);
        int& type = type_of_node[static_cast<std::size_t>(node)];
        if (type < 0) type = gpu_type_index(cluster, gpu);
        node_of_rank_.push_back(node);
        rack_of_rank_.push_back(cluster.rack_of_node(node));
        type_of_rank_.push_back(type);
    }
    std::vector<std::vector<int>> of_stage(static_cast<std::size_t>(layout_.pipeline));
    std::vector<int> ends;
    for (int r = 0; r < layout_.data; ++r) {
        for (int s = 0; s < layout_.pipeline; ++s) {
            std::vector<int> ranks;
            for (int context = 0; context < layout_.context; ++context)
                for (int tensor = 0; tensor < layout_.tensor; ++tensor)
                    ranks.push_back(plan.rank(tensor, context, r, s));
            auto& stage = of_stage[static_cast<std::size_t>(s)];
            stage.insert(stage.end(), ranks.begin(), ranks.end());
            if (s == 0 || s == layout_.pipeline - 1) ends.insert(ends.end(), ranks.begin(), ranks.end());
            workers_.push_back(group_of(std::move(ranks)));
        }
    }
    for (auto& ranks : of_stage) stages_.push_back(group_of(std::move(ranks)));
    // The replicas' ends reduce each among themselves, all at once; the slowest link of all of them counts.
    const auto of_replica = static_cast<std::ptrdiff_t>(ends.size()) / layout_.data;
    int nodes = 1, racks = 1;
    for (auto begin = ends.begin(); begin != ends.end(); begin += of_replica) {
        const Group one = group_of({begin, begin + of_replica});
        nodes = std::max(nodes, one.nodes);
        racks = std::max(racks, one.racks);
    }
    ends_ = {std::move(ends), nodes, racks};
}

StepTimer::Group StepTimer::group_of(std::vector<int> ranks) const {
    std::set<int> nodes, racks;
    for (const int rank : ranks) {
        nodes.insert(node_of_rank_[static_cast<std::size_t>(rank)]);
        racks.insert(rack_of_rank_[static_cast<std::size_t>(rank)]);
    }
    return {std::move(ranks), static_cast<int>(nodes.size()), static_cast<int>(racks.size())};
}

StepTimer::Links StepTimer::links_of(const Group& group, const Conditions& conditions) const {
    Links links;
    links.nodes = group.nodes;
    for (const int rank : group.ranks) {
        const int node = node_of_rank_[static_cast<std::size_t>(rank)];
        const int rack = rack_of_rank_[static_cast<std::size_t>(rank)];
        links.slowest = std::min(links.slowest, pace_of(rank, conditions).fabric);
        if (group.nodes > 1) {
            links.slowest = std::min(links.slowest, condition_or(conditions.node_network, node, 1.0));
            links.delay = std::max(links.delay, condition_or(conditions.node_delay, node, Duration()));
        }
        if (group.racks > 1) links.slowest = std::min(links.slowest, condition_or(conditions.rack_uplink, rack, 1.0));
    }
    return links;
}

void StepTimer::check(const Conditions& conditions) const {
    const auto expect = [](std::size_t size, std::size_t wanted, const char* name) {
        if (size != 0 && size != wanted)
            throw std::invalid_argument(std::string("Conditions::") + name + " has " + std::to_string(size) +
                                        " entries, not " + std::to_string(wanted));
    };
    expect(conditions.gpus.size(), cluster_gpus_, "gpus");
    expect(conditions.node_network.size(), cluster_nodes_, "node_network");
    expect(conditions.rack_uplink.size(), cluster_racks_, "rack_uplink");
    expect(conditions.node_delay.size(), cluster_nodes_, "node_delay");
    expect(conditions.hop_delay.size(), static_cast<std::size_t>(layout_.pipeline - 1), "hop_delay");
    const auto positive = [](double factor) { return factor > 0.0; };
    for (const GpuPace& pace : conditions.gpus)
        if (!positive(pace.compute) || !positive(pace.memory) || !positive(pace.fabric))
            throw std::invalid_argument("the pace of a GPU is positive");
    if (!std::all_of(conditions.node_network.begin(), conditions.node_network.end(), positive) ||
        !std::all_of(conditions.rack_uplink.begin(), conditions.rack_uplink.end(), positive))
        throw std::invalid_argument("the bandwidth of a link is positive");
}

GpuPace StepTimer::pace_of(int rank, const Conditions& conditions) const {
    return condition_or(conditions.gpus, gpu_of_rank_[static_cast<std::size_t>(rank)], GpuPace());
}

/// Time of a piece of work on the slowest member of a worker; `work(type)` is its cost on a GPU type. Members'
/// communication with each other runs at the pace `link` of the slowest link between them.
template <class WorkOfType>
std::int64_t StepTimer::slowest(const Group& worker, double link, const Conditions& conditions,
                                const WorkOfType& work) const {
    std::int64_t longest = 0;
    int last_type = -1;
    GpuPace last_pace;
    for (const int rank : worker.ranks) {
        GpuPace pace = pace_of(rank, conditions);
        pace.fabric = link;
        const int type = type_of_rank_[static_cast<std::size_t>(rank)];
        if (type == last_type && pace == last_pace) continue;  // most members are alike
        last_type = type;
        last_pace = pace;
        longest = std::max(longest, work(static_cast<std::size_t>(type)).at(pace).ns());
    }
    return longest;
}

/// From each rank of a worker to its peer in another one.
StepTimer::Message StepTimer::message(const Group& from, const Group& to, Duration hop_delay,
                                      const Conditions& conditions) const {
    Message longest;
    for (std::size_t i = 0; i < from.ranks.size(); ++i) {
        const auto a = static_cast<std::size_t>(from.ranks[i]), b = static_cast<std::size_t>(to.ranks[i]);
        const bool across = node_of_rank_[a] != node_of_rank_[b];
        double link = 1.0;
        Duration delay = hop_delay;
        if (across) {
            link = std::min(condition_or(conditions.node_network, node_of_rank_[a], 1.0),
                            condition_or(conditions.node_network, node_of_rank_[b], 1.0));
            delay += condition_or(conditions.node_delay, node_of_rank_[a], Duration());
        } else {
            link = std::min(pace_of(from.ranks[i], conditions).fabric, pace_of(to.ranks[i], conditions).fabric);
        }
        if (rack_of_rank_[a] != rack_of_rank_[b])
            link = std::min({link, condition_or(conditions.rack_uplink, rack_of_rank_[a], 1.0),
                             condition_or(conditions.rack_uplink, rack_of_rank_[b], 1.0)});
        const Duration healthy = across ? costs_.activation.across_nodes : costs_.activation.inside_node;
        const Duration overhead = std::min(costs_.activation.overhead, healthy);
        longest.send_ns = std::max(longest.send_ns, (overhead + (healthy - overhead).scaled(1.0 / link)).ns());
        longest.delay_ns = std::max(longest.delay_ns, delay.ns());
    }
    return longest;
}

void StepTimer::add_worker(int r, int s, const Conditions& conditions, StepTimes& times) const {
    const int p = layout_.pipeline;
    const auto worker_of = [&](int stage) -> const Group& { return workers_[static_cast<std::size_t>(r * p + stage)]; };
    const Group& worker = worker_of(s);
    const double link = links_of(worker, conditions).slowest;
    // The way from the last stage back to the first is no hop of its own.
    const auto hop_delay = [&](int k) {
        return k == p - 1 ? Duration() : condition_or(conditions.hop_delay, k, Duration());
    };
    const int next = (s + 1) % p, previous = (s + p - 1) % p;
    Message activation, gradient;
    if (layout_.virtual_stages() > 1) {
        activation = message(worker, worker_of(next), hop_delay(s), conditions);
        gradient = message(worker, worker_of(previous), hop_delay(previous), conditions);
    }
    for (int c = 0; c < layout_.virtual_pipeline; ++c) {
        const int k = c * p + s;
        const auto of = [&](Work VirtualStageCosts::*work) {
            return slowest(worker, link, conditions, [&](std::size_t type) -> const Work& {
                return costs_.virtual_stages.at(type).at(static_cast<std::size_t>(k)).*work;
            });
        };
        times.forward.push_back(of(&VirtualStageCosts::forward));
        times.backward.push_back(of(&VirtualStageCosts::backward));
        if (layout_.schedule == Schedule::kZeroBubble) {
            times.backward_input.push_back(of(&VirtualStageCosts::backward_input));
            times.backward_weight.push_back(of(&VirtualStageCosts::backward_weight));
        }
        const Message none;
        const Message& out = k + 1 < layout_.virtual_stages() ? activation : none;
        const Message& back = k > 0 ? gradient : none;
        times.send_activation.push_back(out.send_ns);
        times.send_gradient.push_back(back.send_ns);
        times.delay_activation.push_back(out.delay_ns);
        times.delay_gradient.push_back(back.delay_ns);
    }
    times.optimizer.push_back(slowest(worker, link, conditions, [&](std::size_t) -> const Work& {
        return costs_.stages.at(static_cast<std::size_t>(s)).optimizer;
    }));
}

void StepTimer::add_collectives(int s, const Conditions& conditions, StepTimes& times) const {
    const StageCosts& stage = costs_.stages.at(static_cast<std::size_t>(s));
    const Links links = links_of(stages_[static_cast<std::size_t>(s)], conditions);
    const int passes = layout_.distributed_optimizer ? 1 : 2;
    for (std::size_t c = 0; c < static_cast<std::size_t>(layout_.virtual_pipeline); ++c) {
        const Duration reduce = stage.reduce_gradients.at(c), gather = stage.gather_parameters.at(c);
        times.reduce_gradients.push_back(links.collective_ns(reduce, passes));
        times.reduce_last_bucket.push_back(
            same_share(times.reduce_gradients.back(), stage.reduce_last_bucket.at(c), reduce));
        times.gather_parameters.push_back(links.collective_ns(gather, 1));
        times.gather_first_bucket.push_back(
            same_share(times.gather_parameters.back(), stage.gather_first_bucket.at(c), gather));
    }
    times.reduce_tied_embedding.push_back(links_of(ends_, conditions).collective_ns(stage.reduce_tied_embedding, 2));
}

StepTimes StepTimer::at(const Conditions& conditions) const {
    check(conditions);
    StepTimes times;
    times.micro_batch_factor = conditions.micro_batch_factor;
    for (int r = 0; r < layout_.data; ++r)
        for (int s = 0; s < layout_.pipeline; ++s) add_worker(r, s, conditions, times);
    for (int s = 0; s < layout_.pipeline; ++s) add_collectives(s, conditions, times);
    if (conditions.node_delay.empty() && conditions.hop_delay.empty()) {
        times.delay_activation.clear();
        times.delay_gradient.clear();
    }
    return times;
}

StepTimes step_times(const IterationCosts& costs, const Plan& plan, const Cluster& cluster,
                     const Conditions& conditions) {
    return StepTimer(costs, plan, cluster).at(conditions);
}

}  // namespace headway::scenarios
