#include "sim/disturbances/timeline.h"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <limits>
#include <string>
#include <type_traits>
#include <variant>

#include "scenarios/language/config_error.h"

namespace headway::sim {

namespace {

const Duration kForever = Duration::nanoseconds(std::numeric_limits<std::int64_t>::max());

template <class T>
constexpr bool acts_by_itself = std::is_same_v<T, scenarios::GpuLoss> || std::is_same_v<T, scenarios::NodeLoss> ||
                                std::is_same_v<T, scenarios::NodeArrival>;

bool is_event(const scenarios::Cause& cause) {
    return std::visit([](const auto& c) { return acts_by_itself<std::decay_t<decltype(c)>>; }, cause);
}

Duration sum_or_forever(Duration a, Duration b) {
    return a >= kForever - b ? kForever : a + b;
}

auto row_after(const std::vector<scenarios::SpeedPoint>& series, Duration since) {
    return std::upper_bound(series.begin(), series.end(), since,
                            [](Duration t, const scenarios::SpeedPoint& p) { return t < p.time; });
}

double factor_at(const std::vector<scenarios::SpeedPoint>& series, Duration since) {
    const auto after = row_after(series, since);
    return after == series.begin() ? 1.0 : std::prev(after)->factor;
}

[[noreturn]] void refuse_disturbance(const scenarios::Disturbance& disturbance, const std::string& why) {
    throw scenarios::ConfigError("disturbance '" + disturbance.name + "' (" + scenarios::kind_of(disturbance.cause) +
                                 "): " + why);
}

}  // namespace

bool Timeline::thermal(const scenarios::Cause& cause) {
    return std::holds_alternative<scenarios::Airflow>(cause) || std::holds_alternative<scenarios::Inlet>(cause) ||
           std::holds_alternative<scenarios::PowerCap>(cause);
}

Timeline::Timeline(const scenarios::Scenario& scenario)
    : cluster_(scenario.cluster), disturbances_(scenario.disturbances) {
    for (std::size_t i = 0; i < disturbances_.size(); ++i) {
        const scenarios::Disturbance& d = disturbances_[i];
        check(i);
        intervals_.push_back({d.start, d.duration ? sum_or_forever(d.start, *d.duration) : kForever});
        if (const auto* loss = std::get_if<scenarios::GpuLoss>(&d.cause))
            losses_.push_back(
                {d.start, static_cast<int>(i), loss->gpu, -1, d.duration.value_or(cluster_.facility.gpu_repair)});
        if (const auto* loss = std::get_if<scenarios::NodeLoss>(&d.cause))
            losses_.push_back(
                {d.start, static_cast<int>(i), -1, loss->node, d.duration.value_or(cluster_.facility.node_repair)});
        if (const auto* arrival = std::get_if<scenarios::NodeArrival>(&d.cause)) {
            arrivals_.push_back({d.start, arrival->nodes});
            if (d.duration) arrivals_.push_back({intervals_.back().end, -arrival->nodes});
        }
    }
    const auto earlier = [](const auto& a, const auto& b) { return a.at < b.at; };
    std::stable_sort(losses_.begin(), losses_.end(), earlier);
    std::stable_sort(arrivals_.begin(), arrivals_.end(), earlier);
}

void Timeline::check(std::size_t index) const {
    const scenarios::Disturbance& d = disturbances_[index];
    const auto within = [&](const char* what, int value, int count) {
        if (value >= count)
            refuse_disturbance(d, std::string(what) + " " + std::to_string(value) +
                                      " does not exist (the cluster has " + std::to_string(count) +
                                      ", numbered from 0)");
    };
    const auto gpu_target = [&](const scenarios::GpuTarget& at) {
        within("gpu", at.gpu, cluster_.gpus());
        within("node", at.node, cluster_.nodes());
        within("rack", at.rack, cluster_.racks());
    };
    const auto link_target = [&](const scenarios::LinkTarget& at) {
        within("rack_uplink", at.rack_uplink, cluster_.racks());
        within("node_network", at.node_network, cluster_.nodes());
        within("nic", at.nic, cluster_.gpus());
        within("node_fabric", at.node_fabric, cluster_.nodes());
    };
    std::visit(
        [&](const auto& c) {
            using T = std::decay_t<decltype(c)>;
            if constexpr (std::is_same_v<T, scenarios::GpuLoss>) within("gpu", c.gpu, cluster_.gpus());
            if constexpr (std::is_same_v<T, scenarios::NodeLoss>) within("node", c.node, cluster_.nodes());
            if constexpr (std::is_same_v<T, scenarios::LinkBandwidth> || std::is_same_v<T, scenarios::LinkDelay> ||
                          std::is_same_v<T, scenarios::LinkFlap>)
                link_target(c.at);
            if constexpr (std::is_same_v<T, scenarios::Airflow> || std::is_same_v<T, scenarios::Inlet> ||
                          std::is_same_v<T, scenarios::PowerCap> || std::is_same_v<T, scenarios::CoTenant> ||
                          std::is_same_v<T, scenarios::SpeedFactor>)
                gpu_target(c.at);
            if constexpr (std::is_same_v<T, scenarios::LinkBandwidth>)
                if (!(c.factor > 0.0)) refuse_disturbance(d, "factor must be above 0");
            if constexpr (std::is_same_v<T, scenarios::SpeedFactor>)
                if (c.series.empty() && !(c.factor > 0.0)) refuse_disturbance(d, "factor must be above 0");
            if constexpr (std::is_same_v<T, scenarios::CoTenant>)
                if (!(c.compute_share >= 0.0 && c.compute_share < 1.0 && c.memory_share >= 0.0 && c.memory_share < 1.0))
                    refuse_disturbance(d, "shares must be at least 0 and below 1");
            if constexpr (std::is_same_v<T, scenarios::LinkFlap>)
                if (c.period <= Duration() || c.down <= Duration() || c.down > c.period)
                    refuse_disturbance(d, "down must be above 0 and at most the period");
        },
        d.cause);
}

std::vector<int> Timeline::targets(const scenarios::GpuTarget& target) const {
    std::vector<int> result;
    const auto add_node = [&](int node) {
        const int first = cluster_.first_gpu(node);
        for (int g = 0; g < cluster_.node(node).gpus; ++g) result.push_back(first + g);
    };
    if (target.gpu >= 0) {
        result.push_back(target.gpu);
    } else if (target.node >= 0) {
        add_node(target.node);
    } else {
        for (int node = 0; node < cluster_.nodes(); ++node)
            if (target.rack < 0 || cluster_.rack_of_node(node) == target.rack) add_node(node);
    }
    return result;
}

std::vector<int> Timeline::gpus_of(int disturbance) const {
    return std::visit(
        [&](const auto& c) -> std::vector<int> {
            using T = std::decay_t<decltype(c)>;
            if constexpr (std::is_same_v<T, scenarios::Airflow> || std::is_same_v<T, scenarios::Inlet> ||
                          std::is_same_v<T, scenarios::PowerCap> || std::is_same_v<T, scenarios::CoTenant> ||
                          std::is_same_v<T, scenarios::SpeedFactor>)
                return targets(c.at);
            return {};
        },
        disturbances_[static_cast<std::size_t>(disturbance)].cause);
}

Environment Timeline::healthy() const {
    const auto gpus = static_cast<std::size_t>(cluster_.gpus());
    const auto nodes = static_cast<std::size_t>(cluster_.nodes());
    const auto racks = static_cast<std::size_t>(cluster_.racks());
    Environment e;
    GpuSurroundings normal;
    normal.inlet_c = cluster_.facility.inlet.value;
    e.surroundings.assign(gpus, normal);
    e.compute_share.assign(gpus, 1.0);
    e.memory_share.assign(gpus, 1.0);
    e.fabric_factor.assign(nodes, 1.0);
    e.node_network.assign(nodes, 1.0);
    e.nic_factor.assign(gpus, 1.0);
    e.uplink_factor.assign(racks, 1.0);
    e.node_delay.assign(nodes, Duration());
    e.uplink_delay.assign(racks, Duration());
    return e;
}

Environment Timeline::environment(Duration at, const std::vector<int>& without) const {
    Environment e = healthy();
    for (std::size_t i = 0; i < disturbances_.size(); ++i) {
        if (intervals_[i].start > at || intervals_[i].end <= at) continue;
        if (std::binary_search(without.begin(), without.end(), static_cast<int>(i))) continue;
        apply(static_cast<int>(i), at, e);
    }
    return e;
}

namespace {

/// A factor or delay on what a link target names.
void act_on_links(const scenarios::LinkTarget& at, double factor, Duration delay, const scenarios::Cluster& cluster,
                  Environment& e) {
    const auto scale = [&](std::vector<double>& factors, int index) {
        double& left = factors[static_cast<std::size_t>(index)];
        left = std::max(kDownLinkShare, left * factor);
    };
    const auto add = [&](std::vector<Duration>& delays, int index) {
        delays[static_cast<std::size_t>(index)] += delay;
    };
    if (at.rack_uplink >= 0) {
        scale(e.uplink_factor, at.rack_uplink);
        add(e.uplink_delay, at.rack_uplink);
    }
    if (at.node_network >= 0) {
        scale(e.node_network, at.node_network);
        add(e.node_delay, at.node_network);
    }
    if (at.nic >= 0) {
        const int node = cluster.node_of(at.nic);
        const scenarios::Node& hardware = cluster.node(node);
        const auto nic_of = [&](int slot) { return slot * hardware.nics / hardware.gpus; };
        for (int slot = 0; slot < hardware.gpus; ++slot)
            if (nic_of(slot) == nic_of(cluster.slot_of(at.nic))) scale(e.nic_factor, cluster.first_gpu(node) + slot);
        add(e.node_delay, node);
    }
    if (at.node_fabric >= 0) scale(e.fabric_factor, at.node_fabric);  // the language knows no delay there
    if (at.pipeline_hop >= 0) {
        const auto hop = static_cast<std::size_t>(at.pipeline_hop);
        if (e.hop_delay.size() <= hop) e.hop_delay.resize(hop + 1);
        if (e.hop_factor.size() <= hop) e.hop_factor.resize(hop + 1, 1.0);
        scale(e.hop_factor, at.pipeline_hop);
        add(e.hop_delay, at.pipeline_hop);
    }
}

}  // namespace

void Timeline::apply(int index, Duration at, Environment& e) const {
    const scenarios::Disturbance& d = disturbances_[static_cast<std::size_t>(index)];
    const Duration since = at - d.start;
    const auto on_gpus = [&](const scenarios::GpuTarget& target, auto&& change) {
        for (const int gpu : targets(target)) change(static_cast<std::size_t>(gpu));
    };
    std::visit(
        [&](const auto& c) {
            using T = std::decay_t<decltype(c)>;
            if constexpr (std::is_same_v<T, scenarios::Airflow>) {
                on_gpus(c.at, [&](std::size_t g) { e.surroundings[g].resistance_factor *= c.resistance_factor; });
            } else if constexpr (std::is_same_v<T, scenarios::Inlet>) {
                on_gpus(c.at, [&](std::size_t g) {
                    double& inlet = e.surroundings[g].inlet_c;
                    const bool first = inlet == cluster_.facility.inlet.value;
                    inlet = first ? c.temperature.value : std::max(inlet, c.temperature.value);
                });
            } else if constexpr (std::is_same_v<T, scenarios::PowerCap>) {
                on_gpus(c.at, [&](std::size_t g) {
                    double& limit = e.surroundings[g].power_limit_w;
                    const double board = cluster_.gpu_type(static_cast<int>(g)).power_limit.value;
                    limit = std::min({limit > 0.0 ? limit : board, c.limit.value, board});
                });
            } else if constexpr (std::is_same_v<T, scenarios::CoTenant>) {
                on_gpus(c.at, [&](std::size_t g) {
                    e.compute_share[g] *= 1.0 - c.compute_share;
                    e.memory_share[g] *= 1.0 - c.memory_share;
                });
            } else if constexpr (std::is_same_v<T, scenarios::SpeedFactor>) {
                const double factor = c.series.empty() ? c.factor : factor_at(c.series, since);
                on_gpus(c.at, [&](std::size_t g) {
                    e.compute_share[g] *= factor;
                    e.memory_share[g] *= factor;
                });
            } else if constexpr (std::is_same_v<T, scenarios::LinkBandwidth>) {
                act_on_links(c.at, c.factor, Duration(), cluster_, e);
            } else if constexpr (std::is_same_v<T, scenarios::LinkDelay>) {
                act_on_links(c.at, 1.0, c.delay, cluster_, e);
            } else if constexpr (std::is_same_v<T, scenarios::LinkFlap>) {
                const bool down = since.ns() % c.period.ns() < c.down.ns();
                act_on_links(c.at, down ? kDownLinkShare : 1.0, Duration(), cluster_, e);
            } else if constexpr (std::is_same_v<T, scenarios::SequenceLengths>) {
                e.sequence_spread = std::hypot(e.sequence_spread, c.spread);
            } else if constexpr (std::is_same_v<T, scenarios::Jitter>) {
                e.jitter_spread = std::hypot(e.jitter_spread, c.spread);
            }
        },
        d.cause);
}

std::uint64_t Timeline::fingerprint(Duration at) const {
    std::uint64_t result = 0xcbf29ce484222325ULL;
    const auto add = [&](std::uint64_t value) { result = (result ^ value) * 0x100000001b3ULL; };
    for (std::size_t i = 0; i < disturbances_.size(); ++i) {
        const scenarios::Disturbance& d = disturbances_[i];
        if (is_event(d.cause) || intervals_[i].start > at || intervals_[i].end <= at) continue;
        add(i + 1);
        const Duration since = at - d.start;
        if (const auto* flap = std::get_if<scenarios::LinkFlap>(&d.cause))
            add(since.ns() % flap->period.ns() < flap->down.ns() ? 1 : 2);
        if (const auto* speed = std::get_if<scenarios::SpeedFactor>(&d.cause))
            add(static_cast<std::uint64_t>(row_after(speed->series, since) - speed->series.begin()));
    }
    return result;
}

Duration Timeline::next_change(Duration after) const {
    Duration next = kForever;
    const auto consider = [&](Duration t) {
        if (t > after && t < next) next = t;
    };
    for (std::size_t i = 0; i < disturbances_.size(); ++i) {
        const scenarios::Disturbance& d = disturbances_[i];
        if (is_event(d.cause)) continue;
        consider(intervals_[i].start);
        consider(intervals_[i].end);
        if (after < intervals_[i].start || after >= intervals_[i].end) continue;
        const Duration since = after - d.start;
        if (const auto* flap = std::get_if<scenarios::LinkFlap>(&d.cause)) {
            const std::int64_t phase = since.ns() % flap->period.ns();
            const std::int64_t step = phase < flap->down.ns() ? flap->down.ns() - phase : flap->period.ns() - phase;
            consider(std::min(after + Duration::nanoseconds(step), intervals_[i].end));
        }
        if (const auto* speed = std::get_if<scenarios::SpeedFactor>(&d.cause)) {
            const auto point = row_after(speed->series, since);
            if (point != speed->series.end()) consider(std::min(d.start + point->time, intervals_[i].end));
        }
    }
    return next;
}

std::optional<Duration> Timeline::end_of(int disturbance) const {
    const auto i = static_cast<std::size_t>(disturbance);
    if (scenarios::is_loss(disturbances_[i].cause) || intervals_[i].end == kForever) return std::nullopt;
    return intervals_[i].end;
}

std::vector<int> Timeline::active(Duration at) const {
    std::vector<int> result;
    for (std::size_t i = 0; i < disturbances_.size(); ++i)
        if (!is_event(disturbances_[i].cause) && intervals_[i].start <= at && at < intervals_[i].end)
            result.push_back(static_cast<int>(i));
    return result;
}

}  // namespace headway::sim
