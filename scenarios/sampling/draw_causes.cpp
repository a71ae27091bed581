#include "scenarios/sampling/draw_causes.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>

namespace headway::scenarios {

namespace {

/// Three digits are enough to read, and to write down.
double three_digits(double value) {
    double scale = 1.0;
    while (value * scale < 100.0) scale *= 10.0;
    return std::round(value * scale) / scale;
}

double taken(double share) {
    return std::clamp(share, 0.001, 0.999);
}

/// Draws parts 0..count-1, each once before any comes again.
class PartDrawer {
  public:
    int draw(RandomStream& stream, int count) {
        if (static_cast<int>(used_.size()) != count) used_.assign(static_cast<std::size_t>(count), 0);
        if (std::find(used_.begin(), used_.end(), 0) == used_.end()) std::fill(used_.begin(), used_.end(), char{0});
        auto skip = stream.below(std::count(used_.begin(), used_.end(), 0));
        int part = 0;
        while (used_[static_cast<std::size_t>(part)] != 0 || skip-- > 0) ++part;
        used_[static_cast<std::size_t>(part)] = 1;
        return part;
    }

  private:
    std::vector<char> used_;
};

/// One disturbance target for each GPU, or for each node where all of a node's GPUs are among them.
std::vector<GpuTarget> targets_of(const std::vector<int>& gpus, const Cluster& cluster) {
    std::vector<char> hit(static_cast<std::size_t>(cluster.gpus()), 0);
    for (const int gpu : gpus) hit[static_cast<std::size_t>(gpu)] = 1;
    std::vector<GpuTarget> targets;
    for (int node = 0; node < cluster.nodes(); ++node) {
        const int first = cluster.first_gpu(node);
        const int count = cluster.node(node).gpus;
        const auto from = hit.begin() + first;
        if (std::count(from, from + count, 1) == count) {
            targets.push_back({-1, node, -1});
            continue;
        }
        for (int gpu = first; gpu < first + count; ++gpu)
            if (hit[static_cast<std::size_t>(gpu)] != 0) targets.push_back({gpu, -1, -1});
    }
    return targets;
}

std::vector<int> gpus_of_worker(const Plan& plan, int replica, int stage) {
    std::vector<int> gpus;
    for (int member = 0; member < plan.layout.ranks_per_worker(); ++member)
        gpus.push_back(plan.gpu_of_worker(replica, stage, member));
    return gpus;
}

std::vector<int> gpus_of_stage(const Plan& plan, int stage) {
    std::vector<int> gpus;
    for (int replica = 0; replica < plan.layout.data; ++replica)
        for (const int gpu : gpus_of_worker(plan, replica, stage)) gpus.push_back(gpu);
    return gpus;
}

/// Draws the causes of one `DrawnCause`, strike by strike.
class CauseDrawer {
  public:
    CauseDrawer(const DrawnCause& drawn, const Scenario& scenario, const Plan& plan, RandomStream& stream)
        : drawn_(drawn), scenario_(scenario), cluster_(scenario.cluster), plan_(plan), stream_(stream) {}

    void strike(std::vector<Disturbance>& events) {
        Disturbance event;
        const double share = stream_.uniform(drawn_.start.min, drawn_.start.max);
        // Whole seconds, and before the end: a share of 1 would begin when nothing runs any more.
        const double latest = std::max(0.0, scenario_.run.time->s() - 1.0);
        event.start = Duration::seconds(std::floor(std::min(share * scenario_.run.time->s(), latest)));
        const double severity = three_digits(stream_.log_uniform(drawn_.severity.min, drawn_.severity.max));
        const double seconds =
            drawn_.lasting ? stream_.log_uniform(drawn_.lasting->min.s(), drawn_.lasting->max.s()) : 0.0;
        if (drawn_.lasting) event.duration = Duration::seconds(std::ceil(seconds));
        for (Cause& cause : causes(severity)) {
            event.cause = std::move(cause);
            event.name = default_name(event.cause);
            events.push_back(event);
        }
    }

  private:
    bool is(const char* kind) const { return drawn_.cause == kind; }

    std::vector<Cause> causes(double severity) {
        if (is("gpu_loss")) return {GpuLoss{parts_.draw(stream_, cluster_.gpus())}};
        if (is("node_loss")) return {NodeLoss{parts_.draw(stream_, cluster_.nodes())}};
        if (is("node_arrival")) return {NodeArrival{static_cast<int>(std::clamp(std::round(severity), 1.0, 1000.0))}};
        if (is("sequence_lengths")) return {SequenceLengths{std::min(severity, 2.0)}};
        if (is("jitter")) return {Jitter{std::min(severity, 2.0)}};
        if (is("link_bandwidth") || is("link_delay") || is("link_flap")) return {link_cause(severity)};
        std::vector<Cause> all;
        for (const GpuTarget& target : gpu_targets()) all.push_back(gpu_cause(target, severity));
        return all;
    }

    std::vector<GpuTarget> gpu_targets() {
        switch (drawn_.on) {
            case DrawnTarget::kWorker: {
                const int worker = parts_.draw(stream_, plan_.workers());
                const int pipeline = plan_.layout.pipeline;
                return targets_of(gpus_of_worker(plan_, worker / pipeline, worker % pipeline), cluster_);
            }
            case DrawnTarget::kStage:
                return targets_of(gpus_of_stage(plan_, parts_.draw(stream_, plan_.layout.pipeline)), cluster_);
            case DrawnTarget::kLastStage:
                return targets_of(gpus_of_stage(plan_, plan_.layout.pipeline - 1), cluster_);
            case DrawnTarget::kNode:
                return {{-1, parts_.draw(stream_, cluster_.nodes()), -1}};
            case DrawnTarget::kRack:
                return {{-1, -1, parts_.draw(stream_, cluster_.racks())}};
            case DrawnTarget::kCluster:
                return {{}};
            default:
                break;
        }
        if (drawn_.on == DrawnTarget::kOwn && is("inlet")) return {{-1, -1, parts_.draw(stream_, cluster_.racks())}};
        if (drawn_.on == DrawnTarget::kOwn && is("power_cap"))
            return {{-1, parts_.draw(stream_, cluster_.nodes()), -1}};
        return {{parts_.draw(stream_, cluster_.gpus()), -1, -1}};
    }

    Cause gpu_cause(const GpuTarget& at, double severity) const {
        if (is("airflow")) return Airflow{at, std::min(severity, 100.0)};
        if (is("inlet"))
            return Inlet{at, Celsius{std::min(three_digits(cluster_.facility.inlet.value + severity), 100.0)}};
        if (is("power_cap")) {
            double idle = 0.0, limit = 1e9;  // the cap lies above every idle power, as the language demands
            for (const NodeGroup& group : cluster_.node_groups) {
                idle = std::max(idle, group.node.gpu.idle_power.value);
                limit = std::min(limit, group.node.gpu.power_limit.value);
            }
            return PowerCap{at, Watts{std::max(std::round(limit * severity), idle + 1.0)}};
        }
        if (is("co_tenant")) return CoTenant{at, taken(severity), taken(three_digits(severity / 2.0))};
        if (is("speed_factor")) return SpeedFactor{at, std::clamp(severity, 0.001, 10.0), {}};
        throw std::logic_error("no cause '" + drawn_.cause + "'");
    }

    LinkTarget link_target() {
        const int uplinks = cluster_.racks() > 1 ? cluster_.racks() : 0;
        const int hops = plan_.layout.pipeline - 1;
        LinkTarget target;
        if (drawn_.on == DrawnTarget::kPipelineHop && hops > 0)
            target.pipeline_hop = parts_.draw(stream_, hops);
        else if (drawn_.on == DrawnTarget::kUplink && uplinks > 0)
            target.rack_uplink = parts_.draw(stream_, uplinks);
        else
            target.node_network = parts_.draw(stream_, cluster_.nodes());
        return target;
    }

    Cause link_cause(double severity) {
        const LinkTarget at = link_target();
        if (is("link_bandwidth")) return LinkBandwidth{at, taken(severity)};
        if (is("link_delay"))
            return LinkDelay{at, std::max(Duration::microseconds(1), Duration::seconds(std::min(severity, 3600.0)))};
        const Duration period = Duration::milliseconds(std::round(stream_.log_uniform(1e3, 60e3)));
        return LinkFlap{at, period.scaled(taken(severity)), period};
    }

    const DrawnCause& drawn_;
    const Scenario& scenario_;
    const Cluster& cluster_;
    const Plan& plan_;
    RandomStream& stream_;
    PartDrawer parts_;
};

}  // namespace

std::vector<Disturbance> draw_causes(const ScenarioFamily& family, const Scenario& scenario, const Plan& plan,
                                     RandomStream& stream) {
    std::vector<Disturbance> events;
    for (const DrawnCause& drawn : family.causes) {
        CauseDrawer drawer(drawn, scenario, plan, stream);
        const auto strikes = drawn.count.min + stream.below(drawn.count.max - drawn.count.min + 1);
        for (std::int64_t i = 0; i < strikes; ++i) drawer.strike(events);
    }
    std::stable_sort(events.begin(), events.end(),
                     [](const Disturbance& a, const Disturbance& b) { return a.start < b.start; });
    return events;
}

}  // namespace headway::scenarios
