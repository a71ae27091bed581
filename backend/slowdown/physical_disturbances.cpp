#include "backend/slowdown/physical_disturbances.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <set>
#include <type_traits>
#include <variant>

namespace headway::backend {

using scenarios::Duration;

namespace {

const Duration kNever = Duration::nanoseconds(std::numeric_limits<std::int64_t>::max());
constexpr double kLeastBandwidth = 1e-4;  ///< of a link that is down: messages wait rather than fail
constexpr double kFullLoad = 1.3;         ///< power at boost clock over the limit, as in sim/thermal

double speed_of_series(const std::vector<scenarios::SpeedPoint>& series, Duration since) {
    double factor = 1.0;
    for (const scenarios::SpeedPoint& point : series)
        if (point.time <= since) factor = point.factor;
    return factor;
}

/// Clock over boost within a power limit.
double clock_at_limit(const scenarios::GpuType& type, double limit_w) {
    const double dynamic = (type.power_limit.value - type.idle_power.value) * kFullLoad;
    if (dynamic <= 0.0) return 1.0;
    const double clock = std::cbrt(std::max(0.0, limit_w - type.idle_power.value) / dynamic);
    return std::clamp(clock, type.min_clock.value / type.boost_clock.value, 1.0);
}

const scenarios::LinkTarget* link_target_of(const scenarios::Cause& cause) {
    return std::visit(
        [](const auto& c) -> const scenarios::LinkTarget* {
            if constexpr (requires { c.at.pipeline_hop; }) return &c.at;
            return nullptr;
        },
        cause);
}

}  // namespace

PhysicalDisturbances::PhysicalDisturbances(const scenarios::Scenario& scenario)
    : cluster_(scenario.cluster), disturbances_(scenario.disturbances) {
    for (std::size_t i = 0; i < disturbances_.size(); ++i) {
        const scenarios::Disturbance& d = disturbances_[i];
        const bool ends = d.duration && d.start < kNever - *d.duration;
        intervals_.push_back({d.start, ends ? d.start + *d.duration : kNever});
        acts_on_links_ = acts_on_links_ || link_target_of(d.cause) != nullptr;
        if (const auto* loss = std::get_if<scenarios::GpuLoss>(&d.cause))
            losses_.push_back({d.start, loss->gpu, static_cast<int>(i)});
        if (const auto* loss = std::get_if<scenarios::NodeLoss>(&d.cause)) {
            const int first = cluster_.first_gpu(loss->node);
            for (int slot = 0; slot < cluster_.node(loss->node).gpus; ++slot)
                losses_.push_back({d.start, first + slot, static_cast<int>(i)});
        }
    }
    std::stable_sort(losses_.begin(), losses_.end(),
                     [](const ProcessLoss& a, const ProcessLoss& b) { return a.at < b.at; });
}

bool PhysicalDisturbances::hits(const scenarios::GpuTarget& target, int gpu) const {
    if (target.gpu >= 0) return target.gpu == gpu;
    if (target.node >= 0) return cluster_.node_of(gpu) == target.node;
    return target.rack < 0 || cluster_.rack_of_node(cluster_.node_of(gpu)) == target.rack;
}

scenarios::GpuPace PhysicalDisturbances::gpu(int gpu, Duration at) const {
    scenarios::GpuPace pace;
    double lowest_limit = std::numeric_limits<double>::infinity();
    for (std::size_t i = 0; i < disturbances_.size(); ++i) {
        if (!intervals_[i].covers(at)) continue;
        const Duration since = at - intervals_[i].start;
        const scenarios::Cause& cause = disturbances_[i].cause;
        if (const auto* c = std::get_if<scenarios::CoTenant>(&cause); c != nullptr && hits(c->at, gpu)) {
            pace.compute *= 1.0 - c->compute_share;
            pace.memory *= 1.0 - c->memory_share;
        } else if (const auto* factor = std::get_if<scenarios::SpeedFactor>(&cause);
                   factor != nullptr && hits(factor->at, gpu)) {
            pace.compute *= factor->series.empty() ? factor->factor : speed_of_series(factor->series, since);
        } else if (const auto* cap = std::get_if<scenarios::PowerCap>(&cause); cap != nullptr && hits(cap->at, gpu)) {
            lowest_limit = std::min(lowest_limit, cap->limit.value);
        }
    }
    if (lowest_limit < std::numeric_limits<double>::infinity()) {
        const scenarios::GpuType& type = cluster_.gpu_type(gpu);
        pace.compute *=
            std::min(1.0, clock_at_limit(type, lowest_limit) / clock_at_limit(type, type.power_limit.value));
    }
    return pace;
}

LinkState PhysicalDisturbances::link(int from_gpu, int to_gpu, int from_stage, int to_stage, Duration at) const {
    LinkState state;
    if (!acts_on_links_) return state;
    const int from_node = cluster_.node_of(from_gpu), to_node = cluster_.node_of(to_gpu);
    const int from_rack = cluster_.rack_of_node(from_node), to_rack = cluster_.rack_of_node(to_node);
    const bool across_nodes = from_node != to_node, across_racks = from_rack != to_rack;
    const auto shares_nic = [&](int nic_gpu) {
        const int node = cluster_.node_of(nic_gpu);
        if (!across_nodes || (node != from_node && node != to_node)) return false;
        const scenarios::Node& kind = cluster_.node(node);
        const int each = std::max(1, kind.gpus / std::max(1, kind.nics));
        const int own = node == from_node ? from_gpu : to_gpu;
        return cluster_.slot_of(own) / each == cluster_.slot_of(nic_gpu) / each;
    };
    const auto hop = [&](int k) {
        return std::min(from_stage, to_stage) == k && std::max(from_stage, to_stage) == k + 1;
    };
    for (std::size_t i = 0; i < disturbances_.size(); ++i) {
        const scenarios::LinkTarget* target = link_target_of(disturbances_[i].cause);
        if (target == nullptr || !intervals_[i].covers(at)) continue;
        const bool hit = (target->rack_uplink >= 0 && across_racks &&
                          (from_rack == target->rack_uplink || to_rack == target->rack_uplink)) ||
                         (target->node_network >= 0 && across_nodes &&
                          (from_node == target->node_network || to_node == target->node_network)) ||
                         (target->nic >= 0 && shares_nic(target->nic)) ||
                         (target->node_fabric >= 0 && !across_nodes && from_node == target->node_fabric) ||
                         (target->pipeline_hop >= 0 && hop(target->pipeline_hop));
        if (!hit) continue;
        const scenarios::Cause& cause = disturbances_[i].cause;
        if (const auto* c = std::get_if<scenarios::LinkBandwidth>(&cause)) state.bandwidth *= c->factor;
        if (const auto* c = std::get_if<scenarios::LinkDelay>(&cause)) state.delay += c->delay;
        if (const auto* c = std::get_if<scenarios::LinkFlap>(&cause)) {
            const std::int64_t since = (at - intervals_[i].start).ns() % c->period.ns();
            if (since < c->down.ns()) state.delay += c->down - Duration::nanoseconds(since);  // until it is up again
        }
    }
    state.bandwidth = std::max(kLeastBandwidth, state.bandwidth);
    return state;
}

double PhysicalDisturbances::nominal_bandwidth(int from_gpu, int to_gpu) const {
    const int from = cluster_.node_of(from_gpu), to = cluster_.node_of(to_gpu);
    const scenarios::Node& node = cluster_.node(from);
    if (from == to) return node.fabric.bandwidth.value * node.fabric.efficiency;
    const double nics = std::min(1.0, static_cast<double>(node.nics) / node.gpus);
    return node.network.bandwidth.value * node.network.efficiency * nics;
}

int PhysicalDisturbances::nodes_of(const std::vector<int>& gpus) const {
    std::set<int> nodes;
    for (const int gpu : gpus) nodes.insert(cluster_.node_of(gpu));
    return static_cast<int>(nodes.size());
}

double PhysicalDisturbances::jitter_spread(Duration at) const {
    double spread = 0.0;
    for (std::size_t i = 0; i < disturbances_.size(); ++i)
        if (const auto* c = std::get_if<scenarios::Jitter>(&disturbances_[i].cause); c && intervals_[i].covers(at))
            spread = std::hypot(spread, c->spread);
    return spread;
}

double PhysicalDisturbances::sequence_spread(Duration at) const {
    double spread = 0.0;
    for (std::size_t i = 0; i < disturbances_.size(); ++i)
        if (const auto* c = std::get_if<scenarios::SequenceLengths>(&disturbances_[i].cause);
            c && intervals_[i].covers(at))
            spread = std::hypot(spread, c->spread);
    return spread;
}

std::vector<std::string> PhysicalDisturbances::not_physical(bool paced) const {
    std::vector<std::string> sentences;
    for (const scenarios::Disturbance& d : disturbances_) {
        const auto add = [&](const std::string& why) {
            sentences.push_back("'" + d.name + "' (" + scenarios::kind_of(d.cause) + ") will not be felt: " + why);
        };
        if (std::holds_alternative<scenarios::Airflow>(d.cause) || std::holds_alternative<scenarios::Inlet>(d.cause))
            add("the air of real processors is not ours to change");
        if (std::holds_alternative<scenarios::NodeArrival>(d.cause)) add("no processes are started while a job runs");
        if (!paced && (std::holds_alternative<scenarios::Jitter>(d.cause) ||
                       std::holds_alternative<scenarios::SequenceLengths>(d.cause)))
            add("only ranks at a declared pace (deploy.pace) can be made faster as well as slower");
        if (const auto* link = link_target_of(d.cause); link != nullptr && cluster_.gpus() < 2)
            add("there is one process, and it sends nothing");
        if (const auto* loss = std::get_if<scenarios::GpuLoss>(&d.cause); loss != nullptr && loss->gpu == 0)
            add("GPU 0 is the process that writes the record");
        if (const auto* loss = std::get_if<scenarios::NodeLoss>(&d.cause); loss != nullptr && loss->node == 0)
            add("GPU 0 is the process that writes the record; the node's other processes are killed");
    }
    return sentences;
}

}  // namespace headway::backend
