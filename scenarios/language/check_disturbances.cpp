#include <algorithm>
#include <limits>

#include "scenarios/language/checks.h"
#include "scenarios/language/value_text.h"

namespace headway::scenarios {
namespace {

std::string number_range(int count) {
    return count == 1 ? "only 0" : "0 to " + std::to_string(count - 1);
}

/// Checks the parts of the cluster that one cause names.
class TargetCheck {
  public:
    TargetCheck(const Scenario& scenario, const KeyPlaces& places, std::string path)
        : scenario_(scenario), places_(places), path_(std::move(path)) {}

    template <class C>
    void operator()(const C& cause) const {
        if constexpr (requires { cause.at; }) check(cause.at);
        if constexpr (std::is_same_v<C, GpuLoss>) gpu("gpu", cause.gpu);
        if constexpr (std::is_same_v<C, NodeLoss>) node("node", cause.node);
        if constexpr (std::is_same_v<C, LinkFlap>) {
            if (cause.down >= cause.period) {
                throw places_.error(path_ + ".down", format_value(cause.down) + " is not allowed (below period, " +
                                                         format_value(cause.period) + ")");
            }
        }
        if constexpr (std::is_same_v<C, SpeedFactor>) {
            for (std::size_t i = 0; i < cause.series.size(); ++i) {
                const bool right =
                    i == 0 ? cause.series[i].time == Duration{} : cause.series[i].time > cause.series[i - 1].time;
                if (!right) {
                    throw places_.error(path_ + ".series." + std::to_string(i) + ".time",
                                        format_value(cause.series[i].time) + " is not allowed (" +
                                            (i == 0 ? "the first time is 0 s" : "later than the one before") + ")");
                }
            }
        }
        if constexpr (std::is_same_v<C, LinkDelay>) {
            // A delay of each hop inside a node would have to enter every tensor collective, and no measurement says
            // how.
            if (cause.at.node_fabric >= 0)
                throw places_.error(
                    path_ + ".node_fabric",
                    "delays inside a node are not modelled (rack_uplink, node_network, nic, pipeline_hop; "
                    "link_bandwidth slows a node's fabric)");
        }
        if constexpr (std::is_same_v<C, PowerCap>) check_cap(cause);
        if constexpr (std::is_same_v<C, CoTenant>) {
            if (cause.compute_share == 0.0 && cause.memory_share == 0.0)
                throw places_.error(path_, "takes nothing (give compute_share or memory_share)");
        }
    }

  private:
    void part(const char* key, int value, int count, const char* what) const {
        if (value < count) return;
        const std::string parts = std::to_string(count) + " " + what + (count == 1 ? "" : "s");
        throw places_.error(path_ + "." + key, std::to_string(value) + " is not allowed (" +
                                                   (count < 1 ? "there is none" : number_range(count)) +
                                                   ": there are " + parts + ")");
    }
    void gpu(const char* key, int value) const { part(key, value, scenario_.cluster.gpus(), "GPU"); }
    void node(const char* key, int value) const { part(key, value, scenario_.cluster.nodes(), "node"); }

    void one_of(std::initializer_list<int> values, const char* names, bool needed) const {
        const auto given = std::count_if(values.begin(), values.end(), [](int value) { return value >= 0; });
        if (given > 1) throw places_.error(path_, "more than one target is given (one of " + std::string(names) + ")");
        if (given == 0 && needed) throw places_.error(path_, "no target is given (one of " + std::string(names) + ")");
    }

    void check(const GpuTarget& at) const {
        one_of({at.gpu, at.node, at.rack}, "gpu, node, rack", false);
        gpu("gpu", at.gpu);
        node("node", at.node);
        part("rack", at.rack, scenario_.cluster.racks(), "rack");
    }

    void check(const LinkTarget& at) const {
        one_of({at.rack_uplink, at.node_network, at.nic, at.node_fabric, at.pipeline_hop},
               "rack_uplink, node_network, nic, node_fabric, pipeline_hop", true);
        const int racks = scenario_.cluster.racks();
        if (at.rack_uplink >= 0) part("rack_uplink", at.rack_uplink, racks > 1 ? racks : 0, "rack uplink");
        node("node_network", at.node_network);
        gpu("nic", at.nic);
        node("node_fabric", at.node_fabric);
        if (at.pipeline_hop >= 0 && scenario_.strategy.wildcards.pipeline)
            throw places_.error(path_ + ".pipeline_hop",
                                "not allowed with strategy.pipeline: auto (the number of "
                                "stages is not known)");
        if (at.pipeline_hop >= 0)
            part("pipeline_hop", at.pipeline_hop, scenario_.strategy.layout.pipeline - 1, "pipeline hop");
    }

    void check_cap(const PowerCap& cap) const {
        for (const NodeGroup& group : scenario_.cluster.node_groups) {
            if (cap.limit <= group.node.gpu.idle_power) {
                throw places_.error(path_ + ".limit",
                                    format_value(cap.limit) + " is not allowed (above the idle power of " +
                                        group.node.gpu.name + ", " + format_value(group.node.gpu.idle_power) + ")");
            }
        }
    }

    const Scenario& scenario_;
    const KeyPlaces& places_;
    std::string path_;
};

/// From when to when a part is gone, and which GPUs.
struct LossWindow {
    std::size_t index;
    Duration from;
    Duration to;
    int first_gpu;
    int end_gpu;
};

LossWindow loss_window(const Scenario& scenario, std::size_t index) {
    const Disturbance& disturbance = scenario.disturbances[index];
    const Facility& facility = scenario.cluster.facility;
    LossWindow window{index, disturbance.start, disturbance.start, 0, 0};
    Duration repair;
    if (const auto* loss = std::get_if<GpuLoss>(&disturbance.cause)) {
        repair = facility.gpu_repair;
        window.first_gpu = loss->gpu;
        window.end_gpu = loss->gpu + 1;
    } else {
        const int node = std::get<NodeLoss>(disturbance.cause).node;
        repair = facility.node_repair;
        window.first_gpu = scenario.cluster.first_gpu(node);
        window.end_gpu = window.first_gpu + scenario.cluster.node(node).gpus;
    }
    if (disturbance.duration)
        repair = *disturbance.duration;
    else if (facility.spare_nodes > 0)
        repair = std::min(repair, facility.spare_start);  // a spare takes its place
    window.to += repair;
    return window;
}

}  // namespace

void check_disturbances(const Scenario& scenario, const KeyPlaces& places) {
    std::vector<LossWindow> losses;
    for (std::size_t i = 0; i < scenario.disturbances.size(); ++i) {
        const Disturbance& disturbance = scenario.disturbances[i];
        const std::string path = "disturbances." + std::to_string(i);
        if (scenario.run.time && disturbance.start >= *scenario.run.time) {
            throw places.error(path + ".start", format_value(disturbance.start) +
                                                    " is not allowed (before the end of the run, " +
                                                    format_value(*scenario.run.time) + ")");
        }
        std::visit(TargetCheck(scenario, places, path + "." + kind_of(disturbance.cause)), disturbance.cause);
        if (is_loss(disturbance.cause)) losses.push_back(loss_window(scenario, i));
    }
    std::stable_sort(losses.begin(), losses.end(),
                     [](const LossWindow& a, const LossWindow& b) { return a.from < b.from; });
    for (std::size_t later = 0; later < losses.size(); ++later) {
        for (std::size_t earlier = 0; earlier < later; ++earlier) {
            const LossWindow& a = losses[earlier];
            const LossWindow& b = losses[later];
            if (b.from >= a.to || b.first_gpu >= a.end_gpu || a.first_gpu >= b.end_gpu) continue;
            throw places.error("disturbances." + std::to_string(b.index) + ".start",
                               format_value(b.from) + " is not allowed (" + scenario.disturbances[a.index].name +
                                   " of disturbances." + std::to_string(a.index) + " has the same part gone until " +
                                   format_value(a.to) + ")");
        }
    }
}

}  // namespace headway::scenarios
