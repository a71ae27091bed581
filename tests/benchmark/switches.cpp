#include "tests/benchmark/switches.h"

#include <algorithm>
#include <numeric>

namespace headway::benchmarks {

namespace {

constexpr int kMicroBatches = 96;  ///< a replica, on t8 p16

scenarios::Plan switch_plan(int tensor, int pipeline, int data, int micro_batches) {
    scenarios::Plan plan;
    plan.layout.tensor = tensor;
    plan.layout.pipeline = pipeline;
    plan.layout.data = data;
    plan.layout.distributed_optimizer = true;
    plan.gpu_of_rank.resize(static_cast<std::size_t>(plan.layout.world_size()));
    std::iota(plan.gpu_of_rank.begin(), plan.gpu_of_rank.end(), 0);
    plan.layers_of_cell.assign(static_cast<std::size_t>(data * pipeline), 96 / pipeline);
    plan.micro_batches_of_replica.assign(static_cast<std::size_t>(data), micro_batches);
    return plan;
}

}  // namespace

SwitchCase::SwitchCase(Switch what, int replicas) {
    scenarios::Model& model = job.model;
    model.layers = 96;
    model.hidden = 12288;
    model.heads = model.kv_heads = 96;
    model.head_dim = 128;
    model.ffn = 4 * 12288;
    model.vocab = 51200;
    model.sequence_length = 2048;
    job.global_batch = kMicroBatches * replicas;

    scenarios::Node node;
    node.gpu.memory = scenarios::Bytes::gib(80);
    node.fabric.bandwidth = {300e9};
    node.network.bandwidth = {25e9};
    node.pcie = {25e9};
    cluster.node_groups = {{16 * replicas, node}};

    from = to = switch_plan(8, 16, replicas, kMicroBatches);
    const auto move_a_layer = [&](int replica) {
        --to.layers_of_cell[static_cast<std::size_t>(16 * replica + 3)];
        ++to.layers_of_cell[static_cast<std::size_t>(16 * replica + 4)];
    };
    switch (what) {
        case Switch::kShares:
            --to.micro_batches_of_replica[0];
            ++to.micro_batches_of_replica[1];
            break;
        case Switch::kLayerEverywhere:
            for (int replica = 0; replica < replicas; ++replica) move_a_layer(replica);
            break;
        case Switch::kLayerInOneReplica:
            move_a_layer(1);
            break;
        case Switch::kNodesSwapped:
            std::swap_ranges(to.gpu_of_rank.begin() + 8, to.gpu_of_rank.begin() + 16, to.gpu_of_rank.end() - 8);
            break;
        case Switch::kPipelineHalved:
            to = switch_plan(8, 8, 2 * replicas, kMicroBatches / 2);
            break;
        case Switch::kTensorHalved:
            to = switch_plan(4, 16, 2 * replicas, kMicroBatches / 2);
            break;
    }
}

}  // namespace headway::benchmarks
