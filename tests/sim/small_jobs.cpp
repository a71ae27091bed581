#include "tests/sim/small_jobs.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace headway::sim::tests {

using scenarios::Bytes;
using scenarios::Duration;
using scenarios::Work;

scenarios::GpuType plain_gpu() {
    scenarios::GpuType gpu;
    gpu.name = "plain";
    gpu.peak_half = {300e12};
    gpu.memory = Bytes::gib(80);
    gpu.memory_bandwidth = {2e12};
    gpu.sm_count = 100;
    gpu.boost_clock = {1500.0};
    gpu.min_clock = {300.0};
    gpu.clock_step = {15.0};
    gpu.power_limit = {400.0};
    gpu.idle_power = {60.0};
    gpu.thermal.fast_resistance = {0.024};
    gpu.thermal.fast_time = Duration::seconds(0.7);
    gpu.thermal.slow_resistance = {0.049};
    gpu.thermal.slow_time = Duration::seconds(43.0);
    gpu.thermal.hot_slot_factor = 2.0;
    gpu.thermal.max_operating = {85.0};
    gpu.thermal.slowdown = {89.0};
    gpu.thermal.shutdown = {95.0};
    gpu.thermal.clock_loss_mhz_per_kelvin = 2.3;
    return gpu;
}

scenarios::Cluster plain_cluster(int nodes, int gpus, int nodes_per_rack, double oversubscription) {
    scenarios::Cluster cluster;
    cluster.name = "plain";
    scenarios::NodeGroup group;
    group.count = nodes;
    group.node.gpu = plain_gpu();
    group.node.gpus = gpus;
    group.node.nics = gpus;
    group.node.fabric.bandwidth = {300e9};
    group.node.network.bandwidth = {25e9};
    group.node.network.kind = scenarios::FabricKind::kInfiniband;
    group.node.host_memory = Bytes::gib(1024);
    group.node.pcie = {25e9};
    cluster.node_groups.push_back(group);
    cluster.network.nodes_per_rack = nodes_per_rack;
    cluster.network.oversubscription = oversubscription;
    return cluster;
}

scenarios::Plan plain_plan(int tensor, int pipeline, int data, int micro_batches, scenarios::Schedule schedule,
                           int virtual_pipeline) {
    scenarios::Plan plan;
    plan.layout.tensor = tensor;
    plan.layout.pipeline = pipeline;
    plan.layout.data = data;
    plan.layout.schedule = schedule;
    plan.layout.virtual_pipeline = virtual_pipeline;
    plan.gpu_of_rank.resize(static_cast<std::size_t>(plan.layout.world_size()));
    std::iota(plan.gpu_of_rank.begin(), plan.gpu_of_rank.end(), 0);
    plan.layers_of_cell.assign(static_cast<std::size_t>(plan.layout.data * plan.layout.virtual_stages()), 1);
    plan.micro_batches_of_replica.assign(static_cast<std::size_t>(data), micro_batches);
    return plan;
}

scenarios::IterationCosts plain_costs(const scenarios::Plan& plan, const scenarios::Cluster& cluster,
                                      const PlainCosts& times) {
    const auto work = [&](double ms) {
        Work w;
        w.compute = Duration::milliseconds(ms * times.compute_bound);
        w.fixed = Duration::milliseconds(ms * (1.0 - times.compute_bound));
        return w;
    };
    const int v = plan.layout.virtual_pipeline;
    scenarios::VirtualStageCosts stage;
    stage.forward = work(times.forward_ms / v);
    stage.backward = work(times.backward_ms / v);
    stage.backward_input = work(times.backward_ms / v * 0.5);
    stage.backward_weight = work(times.backward_ms / v * 0.5);

    scenarios::IterationCosts costs;
    costs.virtual_stages.assign(
        scenarios::gpu_types_of(cluster).size(),
        std::vector<scenarios::VirtualStageCosts>(static_cast<std::size_t>(plan.layout.virtual_stages()), stage));
    if (!plan.same_layers_everywhere()) {  // then a cell takes `stage` for each of its layers
        costs.class_of_cell = plan.layers_of_cell;
        for (auto& of_type : costs.virtual_stages) {
            of_type.clear();
            for (int layers = 0; layers <= *std::max_element(plan.layers_of_cell.begin(), plan.layers_of_cell.end());
                 ++layers)
                of_type.push_back({stage.forward * layers, stage.backward * layers, stage.backward_input * layers,
                                   stage.backward_weight * layers, Work()});
        }
    }
    const double bandwidth = cluster.node(0).network.bandwidth.value;
    costs.activation.across_nodes = Duration::milliseconds(times.message_ms);
    costs.activation.inside_node = Duration::milliseconds(times.message_ms * 0.1);
    costs.activation.overhead = Duration::milliseconds(times.message_ms * 0.1 * 0.1);
    costs.activation.bytes_per_rank = Bytes(std::llround(times.message_ms * 0.9e-3 * bandwidth));
    const double ranks = plan.layout.data * plan.layout.context;
    scenarios::StageCosts tail;
    for (int chunk = 0; chunk < v; ++chunk) {
        const double share =
            ranks > 1 ? 0.75 * bandwidth * ranks / (ranks - 1.0) / (plan.layout.distributed_optimizer ? 1.0 : 2.0)
                      : 0.0;
        tail.reduce_gradients.push_back(ranks > 1 ? Duration::milliseconds(times.reduce_ms / v) : Duration());
        tail.reduce_last_bucket.push_back(ranks > 1 ? Duration::milliseconds(times.reduce_ms / v * 0.1) : Duration());
        tail.reduce_bytes_per_rank.push_back(Bytes(std::llround(times.reduce_ms / v * 1e-3 * share)));
        const bool gathers = ranks > 1 && plan.layout.distributed_optimizer;
        tail.gather_parameters.push_back(gathers ? Duration::milliseconds(times.gather_ms / v) : Duration());
        tail.gather_first_bucket.push_back(gathers ? Duration::milliseconds(times.gather_ms / v * 0.1) : Duration());
        tail.gather_bytes_per_rank.push_back(
            Bytes(gathers ? std::llround(times.gather_ms / v * 1e-3 * 0.75 * bandwidth * ranks / (ranks - 1.0)) : 0));
    }
    tail.optimizer = work(times.optimizer_ms);
    costs.stages.assign(static_cast<std::size_t>(plan.layout.pipeline), tail);
    return costs;
}

}  // namespace headway::sim::tests
