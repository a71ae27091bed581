// What a plan sends over which links, and what the state of the links makes of it.
#include <algorithm>
#include <cmath>

#include "sim/iteration/plan_model.h"

namespace headway::sim {
namespace {

using scenarios::Layout;
using scenarios::StepTimes;

std::size_t link_index(int i) {
    return static_cast<std::size_t>(i);
}

std::int64_t rounded(double ns) {
    return std::llround(ns);
}

/// A part of a duration grows as the whole does.
void stretch_part(std::vector<std::int64_t>& part, std::size_t i, std::int64_t before, std::int64_t after) {
    if (part.empty() || before <= 0) return;
    part[i] = rounded(static_cast<double>(part[i]) * static_cast<double>(after) / static_cast<double>(before));
}

}  // namespace

void PlanModel::prepare_sends() {
    const Layout& layout = plan_.layout;
    const int p = layout.pipeline;
    const int v = layout.virtual_pipeline;
    const std::size_t cells = link_index(layout.data * p * v);
    activation_.resize(cells);
    gradient_.resize(cells);
    const double healthy_wire_ns =
        static_cast<double>((costs_.activation.across_nodes - costs_.activation.overhead).ns());
    const auto prepare = [&](int replica, int stage, int chunk, bool forward) {
        const int k = chunk * p + stage + (forward ? 1 : -1);
        if (p == 1 || k < 0 || k >= layout.virtual_stages()) return;
        const int other = k % p;
        const std::size_t cell = link_index((replica * p + stage) * v + chunk);
        SendPath& path = (forward ? activation_ : gradient_)[cell];
        path.from = port(replica, stage);
        path.to = port(replica, other);
        path.hop = forward ? stage : other;
        for (int member = 0; member < layout.ranks_per_worker(); ++member) {
            const int from = plan_.gpu_of_worker(replica, stage, member);
            const int to = plan_.gpu_of_worker(replica, other, member);
            path.across = path.across || topology_.node_of_gpu(from) != topology_.node_of_gpu(to);
        }
        // The first rank stands for the worker also where only others of its ranks leave the rack.
        path.leaves_rack = topology_.rack_of_gpu(path.from) != topology_.rack_of_gpu(path.to);
        const std::vector<std::int64_t>& sends = forward ? healthy_.send_activation : healthy_.send_gradient;
        const double send = sends.empty() ? 0.0 : static_cast<double>(sends[cell]);
        if (path.across) {
            path.wire_ns = std::clamp(healthy_wire_ns, 0.0, send);
            const Route route = topology_.route(path.from, path.to, path.leaves_rack);
            path.rate = healthy_capacity_[link_index(route.links[0])];
            for (int l = 1; l < route.count; ++l)
                path.rate = std::min(path.rate, healthy_capacity_[link_index(route.links[link_index(l)])]);
            has_flows_ = has_flows_ || path.wire_ns > 0.0;
        } else {
            path.wire_ns = std::max(0.0, send - static_cast<double>(costs_.activation.overhead.ns()));
        }
    };
    for (int replica = 0; replica < layout.data; ++replica)
        for (int stage = 0; stage < p; ++stage)
            for (int chunk = 0; chunk < v; ++chunk)
                for (const bool forward : {true, false}) prepare(replica, stage, chunk, forward);
}

void PlanModel::prepare_rings() {
    const Layout& layout = plan_.layout;
    const int v = layout.virtual_pipeline;
    rings_.resize(link_index(layout.pipeline));
    reduce_bytes_.assign(link_index(layout.pipeline * v), 0.0);
    gather_bytes_.assign(link_index(layout.pipeline * v), 0.0);
    if (layout.data < 2) return;
    const double ranks = static_cast<double>(layout.data) * layout.context;
    const double passes = layout.distributed_optimizer ? 1.0 : 2.0;
    for (int stage = 0; stage < layout.pipeline; ++stage) {
        double slowest = 0.0;
        std::vector<RingHop>& ring = rings_[link_index(stage)];
        for (int replica = 0; replica < layout.data; ++replica) {
            const int from = port(replica, stage);
            const int to = port((replica + 1) % layout.data, stage);
            if (topology_.node_of_gpu(from) == topology_.node_of_gpu(to)) continue;
            const Route route = topology_.route(from, to, topology_.rack_of_gpu(from) != topology_.rack_of_gpu(to));
            ring.push_back({replica, route});
            for (int l = 0; l < route.count; ++l) {
                const double capacity = healthy_capacity_[link_index(route.links[link_index(l)])];
                slowest = slowest > 0.0 ? std::min(slowest, capacity) : capacity;
            }
        }
        if (ring.empty()) continue;
        const double efficiency = cluster_.node(topology_.node_of_gpu(port(0, stage))).network.efficiency;
        const scenarios::StageCosts& stage_costs = costs_.stages[link_index(stage)];
        for (int chunk = 0; chunk < v; ++chunk) {
            const std::size_t place = link_index(stage * v + chunk);
            const auto wire = [&](double bytes, double share, std::int64_t whole_ns) {
                return std::min(bytes * share / efficiency, slowest * static_cast<double>(whole_ns) * 1e-9);
            };
            if (!healthy_.reduce_gradients.empty() && !stage_costs.reduce_bytes_per_rank.empty())
                reduce_bytes_[place] =
                    wire(static_cast<double>(stage_costs.reduce_bytes_per_rank[link_index(chunk)].count()),
                         passes * (ranks - 1.0) / ranks, healthy_.reduce_gradients[place]);
            if (!healthy_.gather_parameters.empty() && !stage_costs.gather_bytes_per_rank.empty())
                gather_bytes_[place] =
                    wire(static_cast<double>(stage_costs.gather_bytes_per_rank[link_index(chunk)].count()),
                         (ranks - 1.0) / ranks, healthy_.gather_parameters[place]);
            has_flows_ = has_flows_ || reduce_bytes_[place] > 0.0 || gather_bytes_[place] > 0.0;
        }
    }
}

void PlanModel::prepare_uplinks() {
    uplink_seconds_.assign(link_index(cluster_.racks()), 0.0);
    if (topology_.uplink_out(0) < 0) return;
    std::vector<double> bytes(link_index(topology_.links()), 0.0);
    const auto carry = [&](int from, int to, double amount) {
        if (topology_.rack_of_gpu(from) == topology_.rack_of_gpu(to)) return;
        bytes.at(link_index(topology_.uplink_out(topology_.rack_of_gpu(from)))) += amount;
        bytes.at(link_index(topology_.uplink_in(topology_.rack_of_gpu(to)))) += amount;
    };
    const Layout& layout = plan_.layout;
    const std::size_t cells = link_index(layout.pipeline * layout.virtual_pipeline);
    for (std::size_t cell = 0; cell < activation_.size(); ++cell)
        for (const SendPath& path : {activation_[cell], gradient_[cell]})
            if (path.across)
                carry(path.from, path.to,
                      path.wire_ns * path.rate * 1e-9 * plan_.micro_batches_of_replica[cell / cells]);
    for (int stage = 0; stage < layout.pipeline; ++stage) {
        double ring = 0.0;
        for (int chunk = 0; chunk < layout.virtual_pipeline; ++chunk) {
            const std::size_t place = link_index(stage * layout.virtual_pipeline + chunk);
            ring += reduce_bytes_[place] + gather_bytes_[place];
        }
        for (const RingHop& hop : rings_[link_index(stage)])
            carry(port(hop.replica, stage), port((hop.replica + 1) % layout.data, stage), ring);
    }
    for (int rack = 0; rack < cluster_.racks(); ++rack) {
        if (topology_.uplink_out(rack) < 0) continue;
        for (const int link : {topology_.uplink_out(rack), topology_.uplink_in(rack)})
            uplink_seconds_.at(link_index(rack)) =
                std::max(uplink_seconds_.at(link_index(rack)),
                         bytes.at(link_index(link)) / healthy_capacity_.at(link_index(link)));
    }
}

double PlanModel::uplink_load(int rack, Duration duration) const {
    return duration > Duration() ? std::min(1.0, uplink_seconds_[link_index(rack)] / duration.s()) : 0.0;
}

std::vector<double> PlanModel::capacities(const ClusterState& state, const std::vector<double>& healthy) const {
    std::vector<double> capacity = healthy;
    const Layout& layout = plan_.layout;
    const Environment& e = state.environment;
    const auto factor_of = [&](int gpu) { return e.port_share(gpu, topology_.node_of_gpu(gpu)); };
    for (int replica = 0; replica < layout.data; ++replica) {
        for (int stage = 0; stage < layout.pipeline; ++stage) {
            const int gpu = port(replica, stage);
            double factor = 1.0;  // ranks in lock step go at the pace of the slowest NIC
            for (int member = 0; member < layout.ranks_per_worker(); ++member)
                factor = std::min(factor, factor_of(plan_.gpu_of_worker(replica, stage, member)));
            capacity[link_index(topology_.port_out(gpu))] *= factor;
            capacity[link_index(topology_.port_in(gpu))] *= factor;
        }
    }
    for (std::size_t rack = 0; rack < e.uplink_factor.size(); ++rack) {
        const int out = topology_.uplink_out(static_cast<int>(rack));
        if (out < 0) continue;
        capacity[link_index(out)] *= e.uplink_factor[rack];
        capacity[link_index(topology_.uplink_in(static_cast<int>(rack)))] *= e.uplink_factor[rack];
    }
    return capacity;
}

void PlanModel::slow_sends(const ClusterState& state, const std::vector<double>& capacity, StepTimes& times) const {
    const Environment& e = state.environment;
    const auto slow = [&](const std::vector<SendPath>& paths, std::vector<std::int64_t>& sends,
                          std::vector<std::int64_t>& delays) {
        if (sends.empty()) return;
        if (delays.empty()) delays.assign(sends.size(), 0);
        for (std::size_t cell = 0; cell < paths.size(); ++cell) {
            const SendPath& path = paths[cell];
            if (path.from == path.to) continue;
            double extra = 0.0;
            if (path.across) {
                const Route route = topology_.route(path.from, path.to, path.leaves_rack);
                double rate = path.rate;
                for (int l = 0; l < route.count; ++l)
                    rate = std::min(rate, capacity[link_index(route.links[link_index(l)])]);
                extra = path.wire_ns * (path.rate / rate - 1.0);
                if (path.leaves_rack)
                    delays[cell] += e.uplink_delay[link_index(topology_.rack_of_gpu(path.from))].ns() +
                                    e.uplink_delay[link_index(topology_.rack_of_gpu(path.to))].ns();
            }
            sends[cell] += rounded(extra);
            // A slow hop has no link of its own: what it costs is waited for before the send.
            if (link_index(path.hop) < e.hop_factor.size())
                delays[cell] += rounded(path.wire_ns * (1.0 / e.hop_factor[link_index(path.hop)] - 1.0));
        }
    };
    slow(activation_, times.send_activation, times.delay_activation);
    slow(gradient_, times.send_gradient, times.delay_gradient);
}

void PlanModel::slow_collectives(const std::vector<double>& capacity, StepTimes& times) const {
    const Layout& layout = plan_.layout;
    const int v = layout.virtual_pipeline;
    for (int stage = 0; stage < layout.pipeline; ++stage) {
        double healthy = 0.0;  // slowest link of the ring, healthy and now
        double now = 0.0;
        for (const RingHop& hop : rings_[link_index(stage)]) {
            for (int l = 0; l < hop.route.count; ++l) {
                const auto link = link_index(hop.route.links[link_index(l)]);
                healthy = healthy > 0.0 ? std::min(healthy, healthy_capacity_[link]) : healthy_capacity_[link];
                now = now > 0.0 ? std::min(now, capacity[link]) : capacity[link];
            }
        }
        if (now <= 0.0 || now == healthy) continue;
        const auto slow = [&](std::vector<std::int64_t>& all, std::vector<std::int64_t>& part, double bytes,
                              std::size_t place) {
            if (all.empty()) return;
            const std::int64_t before = all[place];
            all[place] += rounded(bytes * 1e9 * (1.0 / now - 1.0 / healthy));
            stretch_part(part, place, before, all[place]);
        };
        for (int chunk = 0; chunk < v; ++chunk) {
            const std::size_t place = link_index(stage * v + chunk);
            slow(times.reduce_gradients, times.reduce_last_bucket, reduce_bytes_[place], place);
            slow(times.gather_parameters, times.gather_first_bucket, gather_bytes_[place], place);
        }
    }
    // The tied embedding goes between first and last stage of each replica; the slowest pair counts.
    double tied = 1.0;
    for (int replica = 0; layout.pipeline > 1 && replica < layout.data; ++replica) {
        const int first = port(replica, 0), last = port(replica, layout.pipeline - 1);
        if (topology_.node_of_gpu(first) == topology_.node_of_gpu(last)) continue;
        const bool leaves_rack = topology_.rack_of_gpu(first) != topology_.rack_of_gpu(last);
        for (const Route& route :
             {topology_.route(first, last, leaves_rack), topology_.route(last, first, leaves_rack)})
            for (int l = 0; l < route.count; ++l) {
                const auto link = link_index(route.links[link_index(l)]);
                tied = std::max(tied, healthy_capacity_[link] / capacity[link]);
            }
    }
    if (tied > 1.0)
        for (std::int64_t& ns : times.reduce_tied_embedding) ns = rounded(static_cast<double>(ns) * tied);
}

StepTimes PlanModel::times_of(const ClusterState& state) const {
    scenarios::Conditions conditions;
    conditions.gpus = state.paces;
    if (workers_span_nodes_) {  // then the worker's own collectives cross NICs
        const Environment& e = state.environment;
        for (int gpu = 0; gpu < static_cast<int>(conditions.gpus.size()); ++gpu) {
            double& fabric = conditions.gpus[link_index(gpu)].fabric;
            fabric = std::min(fabric, e.port_share(gpu, topology_.node_of_gpu(gpu)));
        }
    }
    conditions.node_delay = state.environment.node_delay;
    conditions.hop_delay = state.environment.hop_delay;
    if (!conditions.hop_delay.empty()) conditions.hop_delay.resize(link_index(std::max(0, plan_.layout.pipeline - 1)));
    conditions.micro_batch_factor = state.micro_batch_factor;
    StepTimes times = timer_.at(conditions);
    const std::vector<double> capacity = capacities(state, healthy_capacity_);
    slow_sends(state, capacity, times);
    slow_collectives(capacity, times);
    return times;
}

double PlanModel::worker_fabric(const ClusterState& state, int worker) const {
    double slowest = 1.0;
    for (int member = 0; member < plan_.layout.ranks_per_worker(); ++member) {
        const int gpu = plan_.gpu_of_worker(worker / plan_.layout.pipeline, worker % plan_.layout.pipeline, member);
        slowest = std::min(slowest, state.paces[link_index(gpu)].fabric);
        if (workers_span_nodes_)
            slowest = std::min(slowest, state.environment.port_share(gpu, topology_.node_of_gpu(gpu)));
    }
    return slowest;
}

bool PlanModel::uplinks_may_contend(const std::vector<double>& capacity) const {
    if (topology_.uplink_out(0) < 0) return false;
    std::vector<double> wanted(link_index(cluster_.racks()), 0.0);
    for (int worker = 0; worker < plan_.workers(); ++worker) {
        const int gpu = port(worker / plan_.layout.pipeline, worker % plan_.layout.pipeline);
        wanted[link_index(topology_.rack_of_gpu(gpu))] += capacity[link_index(topology_.port_out(gpu))];
    }
    for (int rack = 0; rack < cluster_.racks(); ++rack)
        if (uplink_seconds_[link_index(rack)] > 0.0 &&
            wanted[link_index(rack)] > capacity[link_index(topology_.uplink_out(rack))] * (1.0 + 1e-9))
            return true;
    return false;
}

}  // namespace headway::sim
