#include "scenarios/language/generator.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <stdexcept>

#include "scenarios/language/random.h"

namespace headway::scenarios {
namespace {

constexpr double kSecondsOfDay = 86400.0;
constexpr double kMostExpectedEvents = 100'000.0;

/// Makes the cause of one event: of which part, how severe.
using CauseMaker = std::function<Cause(RandomStream& stream, int part, double severity)>;

enum class Lasts { kDrawn, kUntilRepaired };

class TimelineDrawer {
  public:
    TimelineDrawer(std::uint64_t seed, Duration end) : seed_(seed), end_(end) {}

    void draw(const char* family, const FamilyRate& rate, int parts, Lasts lasts, const CauseMaker& make) {
        const double per_second = rate.per_day * parts / kSecondsOfDay;
        if (per_second <= 0.0) return;
        if (per_second * end_.s() + static_cast<double>(events_.size()) > kMostExpectedEvents) {
            throw std::invalid_argument(std::string(family) + ": about " +
                                        std::to_string(std::llround(per_second * end_.s())) +
                                        " events are to be expected (at most 100000 in all)");
        }
        RandomStream stream(seed_, std::string("generate/") + family);
        double at = 0.0;
        while (true) {
            at += stream.exponential() / per_second;
            if (at >= end_.s()) return;
            Disturbance event;
            event.start = Duration::milliseconds(std::floor(at * 1e3));
            const auto part = static_cast<int>(stream.below(parts));
            const double severity = rounded(stream.log_uniform(rate.severity_min, rate.severity_max));
            const double seconds = stream.log_uniform(rate.shortest.s(), rate.longest.s());
            if (lasts == Lasts::kDrawn) event.duration = Duration::milliseconds(std::ceil(seconds * 1e3));
            event.cause = make(stream, part, severity);
            event.name = default_name(event.cause);
            events_.push_back(std::move(event));
        }
    }

    std::vector<Disturbance> take() {
        std::stable_sort(events_.begin(), events_.end(),
                         [](const Disturbance& a, const Disturbance& b) { return a.start < b.start; });
        return std::move(events_);
    }

    /// Three digits are enough to read, and to write down.
    static double rounded(double value) {
        double scale = 1.0;
        while (value * scale < 100.0) scale *= 10.0;
        return std::round(value * scale) / scale;
    }

  private:
    std::uint64_t seed_;
    Duration end_;
    std::vector<Disturbance> events_;
};

struct GoneParts {
    Duration until;
    int first_gpu;
    int end_gpu;
};

/// Leaves out losses of what is already gone.
void drop_impossible_losses(std::vector<Disturbance>& events, const Scenario& scenario) {
    const Facility& facility = scenario.cluster.facility;
    std::vector<GoneParts> gone;
    const auto add_or_refuse = [&](const Disturbance& event) {
        if (!is_loss(event.cause)) return false;
        GoneParts parts{};
        Duration repair = facility.gpu_repair;
        if (const auto* loss = std::get_if<GpuLoss>(&event.cause)) {
            parts = {{}, loss->gpu, loss->gpu + 1};
        } else {
            const int node = std::get<NodeLoss>(event.cause).node;
            parts = {{},
                     scenario.cluster.first_gpu(node),
                     scenario.cluster.first_gpu(node) + scenario.cluster.node(node).gpus};
            repair = facility.node_repair;
        }
        parts.until = event.start + event.duration.value_or(repair);
        for (const GoneParts& other : gone) {
            if (event.start < other.until && parts.first_gpu < other.end_gpu && other.first_gpu < parts.end_gpu)
                return true;
        }
        gone.push_back(parts);
        return false;
    };
    // What the scenario itself loses comes first, whenever it happens.
    for (const Disturbance& given : scenario.disturbances) add_or_refuse(given);
    const std::size_t given = gone.size();
    const auto hits_given_loss = [&](const Disturbance& event) {
        if (!is_loss(event.cause)) return false;
        const int first = std::holds_alternative<GpuLoss>(event.cause)
                              ? std::get<GpuLoss>(event.cause).gpu
                              : scenario.cluster.first_gpu(std::get<NodeLoss>(event.cause).node);
        const int end = std::holds_alternative<GpuLoss>(event.cause)
                            ? first + 1
                            : first + scenario.cluster.node(std::get<NodeLoss>(event.cause).node).gpus;
        return std::any_of(gone.begin(), gone.begin() + static_cast<std::ptrdiff_t>(given),
                           [&](const GoneParts& other) { return first < other.end_gpu && other.first_gpu < end; });
    };
    std::erase_if(events, [&](const Disturbance& event) { return hits_given_loss(event) || add_or_refuse(event); });
}

GpuTarget at_gpu(int gpu) {
    return {gpu, -1, -1};
}
GpuTarget at_node(int node) {
    return {-1, node, -1};
}
GpuTarget at_rack(int rack) {
    return {-1, -1, rack};
}
LinkTarget at_network(int node) {
    return {-1, node, -1, -1, -1};
}
LinkTarget at_uplink(int rack) {
    return {rack, -1, -1, -1, -1};
}

/// What is left or taken, kept inside the language's bounds.
double clamp_share(double share) {
    return std::clamp(share, 0.001, 0.999);
}

}  // namespace

std::vector<Disturbance> generate_disturbances(const DisturbanceRates& rates, const Scenario& scenario, Duration end) {
    const Cluster& cluster = scenario.cluster;
    const int gpus = cluster.gpus();
    const int nodes = cluster.nodes();
    const int racks = cluster.racks();
    const int uplinks = racks > 1 ? racks : 0;
    TimelineDrawer drawer(scenario.seed, end);
    drawer.draw("airflow", rates.airflow, gpus, Lasts::kDrawn, [](RandomStream&, int part, double severity) {
        return Airflow{at_gpu(part), std::min(severity, 100.0)};
    });
    drawer.draw("inlet", rates.inlet, racks, Lasts::kDrawn, [&](RandomStream&, int part, double severity) {
        return Inlet{at_rack(part), Celsius{std::min(cluster.facility.inlet.value + severity, 100.0)}};
    });
    drawer.draw("power_cap", rates.power_cap, nodes, Lasts::kDrawn, [&](RandomStream&, int part, double severity) {
        const GpuType& gpu = cluster.node(part).gpu;
        double lowest = 0.0;  // above every GPU's idle power, as the language demands
        for (const NodeGroup& group : cluster.node_groups)
            lowest = std::max(lowest, group.node.gpu.idle_power.value + 1.0);
        return PowerCap{at_node(part), Watts{std::max(std::round(gpu.power_limit.value * severity), lowest)}};
    });
    drawer.draw("co_tenant", rates.co_tenant, gpus, Lasts::kDrawn, [](RandomStream&, int part, double severity) {
        return CoTenant{at_gpu(part), clamp_share(severity), clamp_share(severity)};
    });
    drawer.draw("speed_factor", rates.speed_factor, gpus, Lasts::kDrawn, [](RandomStream&, int part, double severity) {
        return SpeedFactor{at_gpu(part), std::clamp(severity, 0.001, 10.0), {}};
    });
    drawer.draw(
        "link_bandwidth", rates.link_bandwidth, uplinks + nodes, Lasts::kDrawn,
        [&](RandomStream&, int part, double severity) {
            return LinkBandwidth{part < uplinks ? at_uplink(part) : at_network(part - uplinks), clamp_share(severity)};
        });
    drawer.draw("link_delay", rates.link_delay, nodes, Lasts::kDrawn, [](RandomStream&, int part, double severity) {
        return LinkDelay{at_network(part),
                         std::max(Duration::nanoseconds(1), Duration::seconds(std::min(severity, 3600.0)))};
    });
    drawer.draw("link_flap", rates.link_flap, nodes, Lasts::kDrawn,
                [](RandomStream& stream, int part, double severity) {
                    const Duration period = Duration::milliseconds(std::round(stream.log_uniform(1e3, 60e3)));
                    return LinkFlap{at_network(part), period.scaled(clamp_share(severity)), period};
                });
    drawer.draw("gpu_loss", rates.gpu_loss, gpus, Lasts::kUntilRepaired,
                [](RandomStream&, int part, double) { return GpuLoss{part}; });
    drawer.draw("node_loss", rates.node_loss, nodes, Lasts::kUntilRepaired,
                [](RandomStream&, int part, double) { return NodeLoss{part}; });
    drawer.draw("node_arrival", rates.node_arrival, 1, Lasts::kUntilRepaired, [](RandomStream&, int, double severity) {
        return NodeArrival{static_cast<int>(std::clamp(std::round(severity), 1.0, 1e6))};
    });
    drawer.draw("sequence_lengths", rates.sequence_lengths, 1, Lasts::kDrawn,
                [](RandomStream&, int, double severity) { return SequenceLengths{std::min(severity, 2.0)}; });
    drawer.draw("jitter", rates.jitter, 1, Lasts::kDrawn,
                [](RandomStream&, int, double severity) { return Jitter{std::min(severity, 2.0)}; });
    std::vector<Disturbance> events = drawer.take();
    drop_impossible_losses(events, scenario);
    return events;
}

}  // namespace headway::scenarios
