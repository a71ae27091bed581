#include "scenarios/costs/iteration_costs.h"

#include <algorithm>
#include <stdexcept>
#include <string>

#include "scenarios/costs/layer.h"
#include "scenarios/costs/parameters.h"
#include "scenarios/costs/placement.h"
#include "scenarios/language/plan_check.h"

namespace headway::scenarios {

namespace {

/// What stays queued on the GPU when the host has issued the last of its layers.
constexpr double kHostTail = 0.15;
constexpr double kGatheredBytes = 2.0;   ///< fp16 or bf16, as gathered and sent
constexpr double kClearGradients = 4.0;  ///< bytes a parameter written to clear its gradient

/// A host that issues work and a GPU that runs it in order: both move on, the GPU never before the host.
class HostAndGpu {
  public:
    void host(double seconds) { host_ += seconds; }
    void gpu(double seconds) { gpu_ = std::max(gpu_ + seconds, host_); }
    void layers(int count, double host_each, double gpu_each) {
        const double issued = host_ + count * host_each;
        gpu_ = std::max(gpu_ + count * gpu_each, std::max(host_ + count * gpu_each, issued + kHostTail * gpu_each));
        if (count == 0) gpu_ = std::max(gpu_, host_);
        host_ = issued;
    }
    double end() const { return std::max(host_, gpu_); }

  private:
    double host_ = 0.0, gpu_ = 0.0;
};

/// GPU work, and what waiting for the host adds to it.
WorkSeconds with_host(WorkSeconds gpu, double end) {
    gpu.fixed += std::max(0.0, end - gpu.total());
    return gpu;
}

VirtualStageCosts virtual_stage_costs(const RankContext& rank, int virtual_stage, int layers, const LayerCosts& layer,
                                      const EdgeCosts& embedding, const EdgeCosts& head) {
    const bool first = virtual_stage == 0;
    const bool last = virtual_stage == rank.layout.virtual_stages() - 1;
    const double host_loss = rank.job.stack.host_loss.s();

    HostAndGpu forward;
    WorkSeconds forward_work = layer.forward * layers;
    if (first) {
        forward_work += embedding.forward;
        forward.gpu(embedding.forward.total());
    }
    forward.layers(layers, layer.host_forward_s, layer.forward.total());
    if (last) {
        forward_work += head.forward;
        forward.host(host_loss);
        forward.gpu(head.forward.total());
    }

    HostAndGpu backward;
    WorkSeconds input = (layer.recompute + layer.backward_input) * layers;
    WorkSeconds weight = layer.backward_weight * layers;
    if (last) {
        input += head.backward_input;
        weight += head.backward_weight;
        backward.host(host_loss);
        backward.gpu(head.backward().total());
    }
    backward.layers(layers, layer.host_backward_s, layer.backward().total());
    if (first) {
        input += embedding.backward_input;
        weight += embedding.backward_weight;
        backward.gpu(embedding.backward().total());
    }

    // Split, the two halves share what the host adds by their GPU time.
    const WorkSeconds whole = with_host(input + weight, backward.end());
    const double added = whole.fixed - (input + weight).fixed;
    const double input_share = input.total() / std::max(1e-12, input.total() + weight.total());
    input.fixed += added * input_share;
    VirtualStageCosts costs;
    costs.forward = with_host(forward_work, forward.end()).rounded();
    costs.backward = whole.rounded();
    costs.backward_input = input.rounded();
    costs.backward_weight = costs.backward;
    costs.backward_weight.compute -= costs.backward_input.compute;
    costs.backward_weight.memory -= costs.backward_input.memory;
    costs.backward_weight.fixed -= costs.backward_input.fixed;
    costs.backward_weight.communication -= costs.backward_input.communication;
    return costs;
}

MessageCosts message_costs(const RankContext& rank, const Placement& placement) {
    const SoftwareStack& stack = rank.job.stack;
    const double whole = rank.tokens() * rank.job.model.hidden * 2.0;
    const bool sliced = rank.layout.sequence_parallel || stack.scatter_gather;
    MessageCosts costs;
    costs.bytes_per_rank = Bytes(static_cast<std::int64_t>(sliced ? whole / rank.layout.tensor : whole));
    costs.overhead = stack.host_message;
    if (stack.scatter_gather && !rank.layout.sequence_parallel) {
        costs.overhead +=
            collective_time(Collective::kAllGather, Bytes(static_cast<std::int64_t>(whole)), rank.tensor, rank.node);
    }
    costs.inside_node = costs.overhead + collective_time(Collective::kSendReceive, costs.bytes_per_rank,
                                                         {.ranks_per_node = 2}, rank.node);
    costs.across_nodes = costs.overhead;
    if (rank.node.nics > 0) {
        costs.across_nodes +=
            collective_time(Collective::kSendReceive, costs.bytes_per_rank, placement.message_across(), rank.node);
    }
    return costs;
}

/// The node as a stack's gradient collectives see it.
Node node_of_group(const Node& node, const GroupShape& shape, const SoftwareStack& stack) {
    Node seen = node;
    if (shape.nodes == 1) return seen;
    double nics = node.nics;
    if (stack.node_nics > 0.0 && shape.ranks_per_node > 1 && node.nics < node.gpus) {
        nics = std::min(nics, stack.node_nics);
        seen.network.efficiency *= nics / node.nics;
    }
    if (shape.groups_per_node > nics) seen.network.efficiency *= stack.shared_nic_efficiency;
    return seen;
}

StageCosts stage_costs(const RankContext& rank, const Plan& plan, const Placement& placement, int stage) {
    const Layout& layout = plan.layout;
    const SoftwareStack& stack = rank.job.stack;
    const GroupShape shape = placement.data(stage);
    const Node node = node_of_group(rank.node, shape, stack);
    StageCosts costs;
    double parameters = 0.0;
    for (int chunk = 0; chunk < layout.virtual_pipeline; ++chunk) {
        const int k = chunk * layout.pipeline + stage;
        const auto count = static_cast<double>(rank_parameters(rank.job, layout, k, plan.layers(0, k)));
        parameters += count;
        const Bytes gradients(static_cast<std::int64_t>(count * stack.gradient_bytes));
        const Bytes weights(static_cast<std::int64_t>(count * kGatheredBytes));
        const auto collective = layout.distributed_optimizer ? Collective::kReduceScatter : Collective::kAllReduce;
        const Duration reduce = collective_time(collective, gradients, shape, node);
        const Duration gather =
            layout.distributed_optimizer ? collective_time(Collective::kAllGather, weights, shape, node) : Duration();
        costs.reduce_gradients.push_back(reduce);
        costs.reduce_last_bucket.push_back(reduce.scaled(stack.exposed_bucket));
        costs.reduce_bytes_per_rank.push_back(gradients);
        costs.gather_parameters.push_back(gather);
        costs.gather_first_bucket.push_back(gather.scaled(stack.exposed_bucket));
        costs.gather_bytes_per_rank.push_back(layout.distributed_optimizer ? weights : Bytes());
        if (const std::int64_t tied = tied_parameters(rank.job, layout, k); tied > 0) {
            costs.tied_bytes_per_rank =
                Bytes(static_cast<std::int64_t>(static_cast<double>(tied) * stack.gradient_bytes));
            costs.reduce_tied_embedding =
                collective_time(Collective::kAllReduce, costs.tied_bytes_per_rank, placement.tied_embedding(),
                                node_of_group(rank.node, placement.tied_embedding(), stack));
        }
    }
    const double owned = layout.distributed_optimizer ? parameters / shape.ranks() : parameters;
    const GpuType& gpu = rank.node.gpu;
    const double bandwidth = gpu.memory_bandwidth.value * gpu.memory_efficiency;
    costs.optimizer.memory =
        Duration::seconds((owned * stack.optimizer_traffic + parameters * kClearGradients) / bandwidth);
    costs.optimizer.fixed = stack.host_step;
    // Collectives beside compute take SMs and memory bandwidth from it.
    if (layout.overlap_grad_reduce) {
        for (const Duration reduce : costs.reduce_gradients)
            costs.optimizer.communication += reduce.scaled(stack.overlap_interference);
    }
    if (layout.overlap_param_gather) {
        for (const Duration gather : costs.gather_parameters)
            costs.optimizer.communication += gather.scaled(stack.overlap_interference);
    }
    return costs;
}

FlopsPerSecond peak_of(const Job& job, const GpuType& gpu) {
    return job.precision == Precision::kFp8 ? gpu.peak_fp8 : gpu.peak_half;
}

bool uses_type(const Plan& plan, const Cluster& cluster, const GpuType& type) {
    return std::any_of(plan.gpu_of_rank.begin(), plan.gpu_of_rank.end(),
                       [&](int gpu) { return cluster.gpu_type(gpu).name == type.name; });
}

const Node& first_node_with(const Cluster& cluster, const GpuType& gpu) {
    const auto found = std::find_if(cluster.node_groups.begin(), cluster.node_groups.end(),
                                    [&](const NodeGroup& group) { return group.node.gpu.name == gpu.name; });
    return found->node;
}

}  // namespace

std::vector<GpuType> gpu_types_of(const Cluster& cluster) {
    std::vector<GpuType> types;
    for (const NodeGroup& group : cluster.node_groups) {
        const auto same = [&](const GpuType& type) { return type.name == group.node.gpu.name; };
        if (std::none_of(types.begin(), types.end(), same)) types.push_back(group.node.gpu);
    }
    return types;
}

int gpu_type_index(const Cluster& cluster, int gpu) {
    const std::vector<GpuType> types = gpu_types_of(cluster);
    const std::string& name = cluster.gpu_type(gpu).name;
    const auto found = std::find_if(types.begin(), types.end(), [&](const GpuType& type) { return type.name == name; });
    return static_cast<int>(found - types.begin());
}

IterationCosts iteration_costs(const Job& job, const Cluster& cluster, const Plan& plan) {
    check_plan(job, cluster, plan);
    const Placement placement(plan, cluster);
    IterationCosts costs;
    for (const GpuType& type : gpu_types_of(cluster)) {
        auto& stages = costs.virtual_stages.emplace_back();
        if (!uses_type(plan, cluster, type)) continue;
        const RankContext rank{job, plan.layout, first_node_with(cluster, type), placement.tensor(),
                               placement.context()};
        const LayerCosts layer = layer_costs(rank);
        const EdgeCosts embedding = embedding_costs(rank);
        const EdgeCosts head = head_costs(rank);
        for (int k = 0; k < plan.layout.virtual_stages(); ++k)
            stages.push_back(virtual_stage_costs(rank, k, plan.layers(0, k), layer, embedding, head));
    }
    for (int stage = 0; stage < plan.layout.pipeline; ++stage) {
        // Of a stage on several kinds of nodes the first replica's counts.
        const Node& node = cluster.node(cluster.node_of(plan.gpu_of_worker(0, stage, 0)));
        const RankContext rank{job, plan.layout, node, placement.tensor(), placement.context()};
        if (stage == 0 && plan.layout.pipeline > 1) costs.activation = message_costs(rank, placement);
        costs.stages.push_back(stage_costs(rank, plan, placement, stage));
    }
    costs.model_flops = model_flops(job);
    costs.hardware_flops = hardware_flops(job, plan.layout.recompute);
    for (const int gpu : plan.gpu_of_rank) costs.peak = costs.peak + peak_of(job, cluster.gpu_type(gpu));
    return costs;
}

}  // namespace headway::scenarios
