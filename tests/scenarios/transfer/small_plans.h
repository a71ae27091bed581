#pragma once

#include <algorithm>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "scenarios/language/cluster.h"
#include "scenarios/language/job.h"
#include "scenarios/language/plan.h"

/// Tiny jobs whose every element can be looked at, and all plans for a few GPUs.
namespace headway::scenarios::transfer_test {

/// 4 heads of width 1; about 150 parameters a layer, a vocabulary of 10 rows before padding.
inline Job tiny_job(bool tied_embedding, int layers = 5) {
    Job job;
    Model& model = job.model;
    model.layers = layers;
    model.hidden = 4;
    model.heads = model.kv_heads = 4;
    model.head_dim = 1;
    model.ffn = 8;
    model.vocab = 10;
    model.sequence_length = 4;
    model.tied_embedding = tied_embedding;
    job.global_batch = 16;
    job.stack.pads_vocabulary = false;
    job.stack.gradient_bytes = 4.0;
    return job;
}

/// `nodes` of `gpus`, two nodes a rack; 100 GB/s inside a node, a NIC of 10 GB/s a GPU, uplinks of half their sum.
inline Cluster tiny_cluster(int nodes, int gpus) {
    Node node;
    node.gpus = gpus;
    node.nics = gpus;
    node.gpu.memory = Bytes::gib(80);
    node.fabric.bandwidth = {100e9};
    node.network.bandwidth = {10e9};
    node.pcie = {20e9};
    Cluster cluster;
    cluster.node_groups = {{nodes, node}};
    cluster.network.nodes_per_rack = 2;
    cluster.network.oversubscription = 2.0;
    return cluster;
}

/// Layers as evenly as they go, GPUs in order, 16 micro-batches.
inline Plan even_plan(const Job& job, const Layout& layout) {
    Plan plan;
    plan.layout = layout;
    plan.gpu_of_rank.resize(static_cast<std::size_t>(layout.world_size()));
    std::iota(plan.gpu_of_rank.begin(), plan.gpu_of_rank.end(), 0);
    const int stages = layout.virtual_stages();
    std::vector<int> split;
    for (int k = 0; k < stages; ++k)
        split.push_back(job.model.layers / stages + (k < job.model.layers % stages ? 1 : 0));
    plan.layers_of_cell = same_layers(split, layout.data);
    const int micro_batches = job.global_batch / job.micro_batch;
    for (int replica = 0; replica < layout.data; ++replica)
        plan.micro_batches_of_replica.push_back(micro_batches / layout.data +
                                                (replica < micro_batches % layout.data ? 1 : 0));
    return plan;
}

/// Every layout of at most `gpus` GPUs whose tensor degree divides 4.
inline std::vector<Layout> all_layouts(int gpus) {
    std::vector<Layout> layouts;
    for (const int tensor : {1, 2, 4})
        for (int pipeline = 1; tensor * pipeline <= gpus; ++pipeline)
            for (int data = 1; tensor * pipeline * data <= gpus; ++data)
                for (int context = 1; tensor * pipeline * data * context <= gpus; ++context) {
                    Layout layout;
                    layout.tensor = tensor;
                    layout.pipeline = pipeline;
                    layout.data = data;
                    layout.context = context;
                    layouts.push_back(layout);
                }
    return layouts;
}

/// The same plan with GPUs drawn anew, layers of each replica split at random where `apart`, and two chunks a stage
/// now and then.
inline Plan shaken(const Job& job, Layout layout, int gpus, bool apart, std::mt19937_64& random) {
    const auto pick = [&](int most) { return static_cast<int>(random() % static_cast<std::uint64_t>(most + 1)); };
    const int micro_batches = job.global_batch / job.micro_batch;
    if (layout.pipeline > 1 && micro_batches % (layout.data * layout.pipeline) == 0 && pick(1) == 0) {
        layout.virtual_pipeline = 2;
        layout.schedule = Schedule::kInterleaved;
    }
    layout.distributed_optimizer = pick(1) == 1;
    Plan plan = even_plan(job, layout);
    std::vector<int> all(static_cast<std::size_t>(gpus));
    std::iota(all.begin(), all.end(), 0);
    if (pick(1) == 1) std::shuffle(all.begin(), all.end(), random);
    std::copy_n(all.begin(), plan.gpu_of_rank.size(), plan.gpu_of_rank.begin());
    if (apart)
        for (int replica = 0; replica < layout.data; ++replica) {
            const int stages = layout.virtual_stages();
            int* cells = &plan.layers_of_cell[static_cast<std::size_t>(replica * stages)];
            for (int move = pick(6); move > 0; --move) {
                const int giver = pick(stages - 1), taker = pick(stages - 1);
                if (cells[giver] == 0) continue;
                --cells[giver];
                ++cells[taker];
            }
        }
    return plan;
}

inline std::string text_of(const Plan& plan) {
    std::string text = describe(plan.layout) + ", GPUs";
    for (const int gpu : plan.gpu_of_rank) text += " " + std::to_string(gpu);
    text += ", layers";
    for (const int layers : plan.layers_of_cell) text += " " + std::to_string(layers);
    return text;
}

}  // namespace headway::scenarios::transfer_test
