#include "scenarios/timing/step_times.h"

#include <algorithm>
#include <span>
#include <stdexcept>
#include <string>

#include "scenarios/costs/placement.h"

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

std::int64_t collective_ns(const PlacedPaces::Links& links, Duration healthy, int passes) {
    if (healthy == Duration()) return 0;
    return (healthy.scaled(1.0 / links.slowest) + links.delay * (passes * links.nodes)).ns();
}

std::int64_t scaled_by_gpu(std::int64_t ns, double scale) {
    return scale == 1.0 ? ns : Duration::nanoseconds(ns).scaled(scale).ns();
}

std::int64_t send_ns(const MessageCosts& message, const PlacedPaces::Way& way) {
    const auto over = [&](Duration healthy, double link) {
        if (link <= 0.0) return std::int64_t{0};
        const Duration overhead = std::min(message.overhead, healthy);
        return (overhead + (healthy - overhead).scaled(1.0 / link)).ns();
    };
    return scaled_by_gpu(std::max(over(message.inside_node, way.inside), over(message.across_nodes, way.across)),
                         way.scale);
}

bool is_nominal(const GpuPace& pace) {
    return pace.compute == 1.0 && pace.memory == 1.0 && pace.fabric == 1.0;
}

/// Work::at with reciprocals at hand.
std::int64_t work_ns(const Work& work, const PlacedPaces::Member& member) {
    if (is_nominal(member.pace)) return work.total().ns();
    return (work.compute.scaled(member.stretched.compute) + work.memory.scaled(member.stretched.memory) + work.fixed +
            work.communication.scaled(member.stretched.fabric))
        .ns();
}

/// Counts distinct numbers of one group after another.
class DistinctCounter {
  public:
    explicit DistinctCounter(std::size_t numbers) : seen_(numbers, 0) {}
    void begin() {
        ++group_;
        count_ = 0;
    }
    void add(int number) {
        int& seen = seen_[static_cast<std::size_t>(number)];
        count_ += seen != group_;
        seen = group_;
    }
    int count() const { return count_; }

  private:
    std::vector<int> seen_;
    int group_ = 0, count_ = 0;
};

}  // namespace

StepTimer::StepTimer(IterationCosts costs, const Plan& plan, const Cluster& cluster)
    : costs_(std::move(costs)),
      layout_(plan.layout),
      cluster_gpus_(static_cast<std::size_t>(cluster.gpus())),
      cluster_nodes_(static_cast<std::size_t>(cluster.nodes())),
      cluster_racks_(static_cast<std::size_t>(cluster.racks())),
      gpu_of_rank_(plan.gpu_of_rank) {
    if (static_cast<int>(gpu_of_rank_.size()) != layout_.world_size())
        throw std::invalid_argument("gpu_of_rank has one entry a rank");
    const std::vector<int> node_of_gpu = nodes_of_gpus(cluster), group_of_node = groups_of_nodes(cluster);
    const std::vector<int> type_of_group = gpu_types_of_groups(cluster);
    for (auto* of_rank : {&node_of_rank_, &rack_of_rank_, &type_of_rank_}) of_rank->reserve(gpu_of_rank_.size());
    for (const int gpu : gpu_of_rank_) {
        if (gpu < 0 || gpu >= static_cast<int>(cluster_gpus_))
            throw std::invalid_argument("GPU " + std::to_string(gpu) + " is not in the cluster");
        const int node = node_of_gpu[static_cast<std::size_t>(gpu)];
        const int group = group_of_node[static_cast<std::size_t>(node)];
        node_of_rank_.push_back(node);
        rack_of_rank_.push_back(cluster.rack_of_node(node));
        type_of_rank_.push_back(type_of_group[static_cast<std::size_t>(group)]);
    }

    DistinctCounter nodes(cluster_nodes_), racks(cluster_racks_);
    const auto count = [&](std::size_t first, std::size_t ranks) {
        for (std::size_t rank = first; rank < first + ranks; ++rank) {
            nodes.add(node_of_rank_[rank]);
            racks.add(rack_of_rank_[rank]);
        }
    };
    const auto begin = [&] {
        nodes.begin();
        racks.begin();
    };
    const auto of_worker = static_cast<std::size_t>(layout_.ranks_per_worker());
    for (int r = 0; r < layout_.data; ++r) {
        for (int s = 0; s < layout_.pipeline; ++s) {
            begin();
            count(first_rank(r, s), of_worker);
            worker_nodes_.push_back(nodes.count());
            worker_racks_.push_back(racks.count());
        }
        // The replicas' ends reduce each among themselves, all at once; the slowest link of all of them counts.
        begin();
        count(first_rank(r, 0), of_worker);
        count(first_rank(r, layout_.pipeline - 1), of_worker);
        ends_nodes_ = std::max(ends_nodes_, nodes.count());
        ends_racks_ = std::max(ends_racks_, racks.count());
    }
    for (int s = 0; s < layout_.pipeline; ++s) {
        begin();
        count(first_rank(0, s), of_worker * static_cast<std::size_t>(layout_.data));
        stage_nodes_.push_back(nodes.count());
        stage_racks_.push_back(racks.count());
    }
}

PlacedPaces::Links StepTimer::links_of(std::size_t first_rank, std::size_t ranks, int nodes, int racks,
                                       const Conditions& conditions) const {
    PlacedPaces::Links links;
    links.nodes = nodes;
    const auto slow = [&](const std::vector<int>& part_of_rank, const auto& bandwidth_of) {
        for (std::size_t rank = first_rank; rank < first_rank + ranks; ++rank)
            links.slowest = std::min(links.slowest, bandwidth_of(static_cast<std::size_t>(part_of_rank[rank])));
    };
    if (!conditions.gpus.empty()) slow(gpu_of_rank_, [&](std::size_t gpu) { return conditions.gpus[gpu].fabric; });
    if (nodes > 1 && !conditions.node_network.empty())
        slow(node_of_rank_, [&](std::size_t node) { return conditions.node_network[node]; });
    if (nodes > 1 && !conditions.node_delay.empty())
        for (std::size_t rank = first_rank; rank < first_rank + ranks; ++rank)
            links.delay = std::max(links.delay, conditions.node_delay[static_cast<std::size_t>(node_of_rank_[rank])]);
    if (racks > 1 && !conditions.rack_uplink.empty())
        slow(rack_of_rank_, [&](std::size_t rack) { return conditions.rack_uplink[rack]; });
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

/// The members whose pace no other member of the same type undercuts in every part: one of them is the slowest at any
/// piece of work.
void StepTimer::add_members(std::size_t worker, const Conditions& conditions, PlacedPaces& out) const {
    const int replica = static_cast<int>(worker) / layout_.pipeline,
              stage = static_cast<int>(worker) % layout_.pipeline;
    const std::size_t first = first_rank(replica, stage);
    const auto ranks = static_cast<std::size_t>(layout_.ranks_per_worker());
    const double link = links_of(first, ranks, worker_nodes_[worker], worker_racks_[worker], conditions).slowest;
    const std::size_t begin = out.members.size();
    for (std::size_t rank = first; rank < first + ranks; ++rank) {
        GpuPace pace = condition_or(conditions.gpus, gpu_of_rank_[rank], GpuPace());
        pace.fabric = link;
        const int type = type_of_rank_[rank];
        const GpuScale scale = condition_or(costs_.gpu_scales, gpu_of_rank_[rank], GpuScale());
        bool counts = true;
        for (std::size_t i = begin; counts && i < out.members.size(); ++i) {
            PlacedPaces::Member& other = out.members[i];
            if (other.type != type) continue;
            const auto slower = [](const GpuPace& a, double a_forward, double a_backward, const GpuPace& b,
                                   double b_forward, double b_backward) {
                return a.compute <= b.compute && a.memory <= b.memory && a_forward >= b_forward &&
                       a_backward >= b_backward;
            };
            if (slower(other.pace, other.forward, other.backward, pace, scale.forward, scale.backward)) {
                counts = false;
            } else if (slower(pace, scale.forward, scale.backward, other.pace, other.forward, other.backward)) {
                other = {type, pace, {}, scale.forward, scale.backward};
                counts = false;
            }
        }
        if (counts) out.members.push_back({type, pace, {}, scale.forward, scale.backward});
    }
    for (std::size_t i = begin; i < out.members.size(); ++i) {
        PlacedPaces::Member& member = out.members[i];
        member.stretched = {1.0 / member.pace.compute, 1.0 / member.pace.memory, 1.0 / member.pace.fabric};
    }
    out.first_member.push_back(out.members.size());
}

/// From each rank of a worker to its peer in another one.
PlacedPaces::Way StepTimer::way(std::size_t from, std::size_t to, Duration hop_delay, double GpuScale::*scale,
                                const Conditions& conditions) const {
    PlacedPaces::Way out;
    if (!costs_.gpu_scales.empty()) {
        out.scale = 0.0;
        for (std::size_t rank = from; rank < from + static_cast<std::size_t>(layout_.ranks_per_worker()); ++rank)
            out.scale = std::max(out.scale, costs_.gpu_scales.at(static_cast<std::size_t>(gpu_of_rank_[rank])).*scale);
    }
    const auto slower = [](double& slowest, double link) {
        if (slowest == 0.0 || link < slowest) slowest = link;
    };
    for (int i = 0; i < layout_.ranks_per_worker(); ++i, ++from, ++to) {
        const int a = node_of_rank_[from], b = node_of_rank_[to];
        Duration delay = hop_delay;
        double link = 1.0;
        if (a != b) {
            if (!conditions.node_network.empty())
                link = std::min(condition_or(conditions.node_network, a, 1.0),
                                condition_or(conditions.node_network, b, 1.0));
            delay += condition_or(conditions.node_delay, a, Duration());
            const int rack_a = rack_of_rank_[from], rack_b = rack_of_rank_[to];
            if (rack_a != rack_b && !conditions.rack_uplink.empty())
                link = std::min({link, condition_or(conditions.rack_uplink, rack_a, 1.0),
                                 condition_or(conditions.rack_uplink, rack_b, 1.0)});
            slower(out.across, link);
        } else {
            if (!conditions.gpus.empty())
                link = std::min(condition_or(conditions.gpus, gpu_of_rank_[from], GpuPace()).fabric,
                                condition_or(conditions.gpus, gpu_of_rank_[to], GpuPace()).fabric);
            slower(out.inside, link);
        }
        out.delay = std::max(out.delay, delay);
    }
    return out;
}

PlacedPaces StepTimer::paces(const Conditions& conditions) const {
    check(conditions);
    const int p = layout_.pipeline, d = layout_.data;
    const auto of_worker = static_cast<std::size_t>(layout_.ranks_per_worker());
    PlacedPaces out;
    out.micro_batch_factor = conditions.micro_batch_factor;
    out.delays = !conditions.node_delay.empty() || !conditions.hop_delay.empty();
    const auto workers = static_cast<std::size_t>(p * d);
    out.members.reserve(workers);
    out.first_member.reserve(workers + 1);
    out.first_member.push_back(0);
    for (std::size_t worker = 0; worker < workers; ++worker) add_members(worker, conditions, out);
    if (layout_.virtual_stages() > 1) {
        // The way from the last stage back to the first is no hop of its own.
        const auto hop_delay = [&](int k) {
            return k == p - 1 ? Duration() : condition_or(conditions.hop_delay, k, Duration());
        };
        out.to_next.reserve(workers);
        out.to_previous.reserve(workers);
        for (int r = 0; r < d; ++r)
            for (int s = 0; s < p; ++s) {
                const int next = (s + 1) % p, previous = (s + p - 1) % p;
                out.to_next.push_back(
                    way(first_rank(r, s), first_rank(r, next), hop_delay(s), &GpuScale::send_activation, conditions));
                out.to_previous.push_back(way(first_rank(r, s), first_rank(r, previous), hop_delay(previous),
                                              &GpuScale::send_gradient, conditions));
            }
    }
    const std::size_t of_stage = of_worker * static_cast<std::size_t>(d);
    for (int s = 0; s < p; ++s) {
        const auto stage = static_cast<std::size_t>(s);
        out.stages.push_back(
            links_of(first_rank(0, s), of_stage, stage_nodes_[stage], stage_racks_[stage], conditions));
    }
    out.ends = links_of(0, of_stage, ends_nodes_, ends_racks_, conditions);
    const PlacedPaces::Links last = links_of(first_rank(0, p - 1), of_stage, ends_nodes_, ends_racks_, conditions);
    out.ends.slowest = std::min(out.ends.slowest, last.slowest);
    out.ends.delay = std::max(out.ends.delay, last.delay);
    return out;
}

void StepTimer::times(const IterationCosts& costs, const PlacedPaces& paces, StepTimes& out) const {
    const int p = layout_.pipeline, v = layout_.virtual_pipeline;
    const auto workers = static_cast<std::size_t>(layout_.data * p);
    const std::size_t cells = workers * static_cast<std::size_t>(v), places = static_cast<std::size_t>(p * v);
    const bool splits = layout_.schedule == Schedule::kZeroBubble;
    for (auto* values : {&out.forward, &out.backward, &out.send_activation, &out.send_gradient})
        values->assign(cells, 0);
    for (auto* values : {&out.backward_input, &out.backward_weight}) values->assign(splits ? cells : 0, 0);
    for (auto* values : {&out.delay_activation, &out.delay_gradient}) values->assign(paces.delays ? cells : 0, 0);
    out.optimizer.assign(workers, 0);
    out.micro_batch_factor = paces.micro_batch_factor;

    for (std::size_t worker = 0; worker < workers; ++worker) {
        const int r = static_cast<int>(worker) / p, s = static_cast<int>(worker) % p;
        const std::span members(paces.members.data() + paces.first_member[worker],
                                paces.first_member[worker + 1] - paces.first_member[worker]);
        std::int64_t activation = 0, gradient = 0;
        if (!paces.to_next.empty()) {
            activation = send_ns(costs.activation, paces.to_next[worker]);
            gradient = send_ns(costs.activation, paces.to_previous[worker]);
        }
        const StageCosts& stage = costs.stages[static_cast<std::size_t>(s)];
        for (const PlacedPaces::Member& member : members) {
            const auto& of_type = costs.virtual_stages[static_cast<std::size_t>(member.type)];
            Work optimizer = stage.optimizer;
            for (int c = 0; c < v; ++c) {
                const std::size_t cell = worker * static_cast<std::size_t>(v) + static_cast<std::size_t>(c);
                const VirtualStageCosts& of_cell = of_type.at(costs.class_of(layout_, r, c * p + s));
                const auto slower = [&](std::int64_t& longest, const Work& work, double scale) {
                    longest = std::max(longest, scaled_by_gpu(work_ns(work, member), scale));
                };
                slower(out.forward[cell], of_cell.forward, member.forward);
                slower(out.backward[cell], of_cell.backward, member.backward);
                if (splits) {
                    slower(out.backward_input[cell], of_cell.backward_input, member.backward);
                    slower(out.backward_weight[cell], of_cell.backward_weight, member.backward);
                }
                optimizer += of_cell.optimizer;
            }
            out.optimizer[worker] = std::max(out.optimizer[worker], work_ns(optimizer, member));
        }
        for (int c = 0; c < v; ++c) {
            const std::size_t cell = worker * static_cast<std::size_t>(v) + static_cast<std::size_t>(c);
            const int k = c * p + s;
            if (k + 1 < layout_.virtual_stages()) {
                out.send_activation[cell] = activation;
                if (paces.delays) out.delay_activation[cell] = paces.to_next[worker].delay.ns();
            }
            if (k > 0) {
                out.send_gradient[cell] = gradient;
                if (paces.delays) out.delay_gradient[cell] = paces.to_previous[worker].delay.ns();
            }
        }
    }

    for (auto* values :
         {&out.reduce_gradients, &out.reduce_last_bucket, &out.gather_parameters, &out.gather_first_bucket})
        values->assign(places, 0);
    out.reduce_tied_embedding.assign(static_cast<std::size_t>(p), 0);
    const int passes = layout_.distributed_optimizer ? 1 : 2;
    for (std::size_t s = 0; s < static_cast<std::size_t>(p); ++s) {
        const StageCosts& stage = costs.stages[s];
        for (std::size_t c = 0; c < static_cast<std::size_t>(v); ++c) {
            const std::size_t place = s * static_cast<std::size_t>(v) + c;
            const Duration reduce = stage.reduce_gradients.at(c), gather = stage.gather_parameters.at(c);
            out.reduce_gradients[place] = collective_ns(paces.stages[s], reduce, passes);
            out.reduce_last_bucket[place] =
                same_share(out.reduce_gradients[place], stage.reduce_last_bucket.at(c), reduce);
            out.gather_parameters[place] = collective_ns(paces.stages[s], gather, 1);
            out.gather_first_bucket[place] =
                same_share(out.gather_parameters[place], stage.gather_first_bucket.at(c), gather);
        }
        out.reduce_tied_embedding[s] = collective_ns(paces.ends, stage.reduce_tied_embedding, 2);
    }
}

StepTimes StepTimer::at(const Conditions& conditions) const {
    StepTimes out;
    times(costs_, paces(conditions), out);
    return out;
}

StepTimes step_times(const IterationCosts& costs, const Plan& plan, const Cluster& cluster,
                     const Conditions& conditions) {
    return StepTimer(costs, plan, cluster).at(conditions);
}

}  // namespace headway::scenarios
