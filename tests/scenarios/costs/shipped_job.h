#pragma once

#include <string>

#include "scenarios/language/job.h"
#include "scenarios/language/read.h"
#include "scenarios/language/strategy.h"
#include "tests/paths.h"

/// Jobs on shipped catalogue entries, for tests of costs.
namespace headway::scenarios {

inline Catalogue shipped_catalogue() {
    return {tests::source_directory() / "scenarios"};
}

inline Model gpt(int layers, int hidden, int heads, int sequence = 2048, int vocab = 51200) {
    Model model;
    model.layers = layers;
    model.hidden = hidden;
    model.heads = heads;
    model.kv_heads = heads;
    model.head_dim = hidden / heads;
    model.ffn = 4 * hidden;
    model.vocab = vocab;
    model.sequence_length = sequence;
    return model;
}

/// `nodes` DGX A100: 8 GPUs and 8 NICs a node.
inline Cluster dgx_a100(int nodes) {
    const Catalogue catalogue = shipped_catalogue();
    Node node;
    node.gpu = read_gpu(catalogue, "A100-SXM4-80GB");
    node.fabric = read_fabric(catalogue, "nvlink3");
    node.network = read_fabric(catalogue, "infiniband-hdr");
    node.pcie = {25e9};
    Cluster cluster;
    cluster.node_groups = {{nodes, node}};
    return cluster;
}

inline Job job_of(const Model& model, int micro_batch, int global_batch,
                  const std::string& stack = "megatron-lm-2022") {
    Job job;
    job.model = model;
    job.precision = Precision::kFp16;
    job.micro_batch = micro_batch;
    job.global_batch = global_batch;
    job.stack = read_stack(shipped_catalogue(), stack);
    return job;
}

inline Layout layout_of(int tensor, int pipeline, int data, int virtual_pipeline = 1) {
    Layout layout;
    layout.tensor = tensor;
    layout.pipeline = pipeline;
    layout.data = data;
    layout.virtual_pipeline = virtual_pipeline;
    layout.schedule = virtual_pipeline > 1 ? Schedule::kInterleaved : Schedule::kOneForwardOneBackward;
    return layout;
}

/// Ranks on GPUs in order, layers as even as possible. The cluster may have more GPUs than the layout needs.
inline Plan plan_of(const Layout& layout, const Job& job, const Cluster& cluster) {
    Strategy strategy;
    strategy.layout = layout;
    strategy.idle_gpus = cluster.gpus() - layout.world_size();
    return initial_plan(strategy, job, cluster);
}

}  // namespace headway::scenarios
