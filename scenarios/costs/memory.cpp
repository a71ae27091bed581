#include "scenarios/costs/memory.h"

#include <algorithm>

#include "scenarios/costs/parameters.h"
#include "scenarios/language/program.h"

namespace headway::scenarios {

namespace {

constexpr double kFp8Copy = 1.0;     ///< fp8 layers keep a cast copy of the weights
constexpr double kAdamState = 12.0;  ///< fp32 master weight and two moments
/// CUDA context and libraries (0.5 GiB), NCCL buffers (0.5 GiB), cuBLAS workspace and fragments (assumed).
const Bytes kReservedBytes = Bytes::gib(1.5);

double element_bytes(const Job& job) {
    return static_cast<double>(bytes_of_element(job.precision));
}

double tokens_of(const Job& job, const Layout& layout) {
    return static_cast<double>(job.micro_batch) * job.model.sequence_length / layout.context;
}

/// Kept of one layer when nothing is recomputed in full.
double stored_bytes(const Job& job, const Layout& layout) {
    const Model& model = job.model;
    const double tokens = tokens_of(job, layout);
    const double mask = job.stack.dropout ? 1.0 : 0.0;
    const double element = element_bytes(job);
    const double tensor = layout.tensor;
    const double head = head_dim_of(model);
    const double queries = model.heads * head;
    const double keys_values = 2.0 * model.kv_heads * head;
    // Inputs of both norms and both blocks, dropout masks after the blocks.
    const double outside =
        tokens * model.hidden * (4.0 * element + 2.0 * mask) / (layout.sequence_parallel ? tensor : 1.0);
    // Queries, keys, values; input of the projection; inputs of the activation function and of the last matrix.
    const double inside = tokens * element *
                          (queries + keys_values + queries + model.ffn * ((model.gated_mlp ? 2.0 : 1.0) + 1.0)) /
                          tensor;
    if (job.stack.flash_attention) return outside + inside + tokens * 4.0 * model.heads / tensor;  // log-sum-exp
    if (layout.recompute == Recompute::kSelective) return outside + inside;
    // Softmax output; with dropout its mask and its output too.
    const double scores = tokens * model.heads / tensor * model.sequence_length;
    return outside + inside + scores * (element + (1.0 + element) * mask);
}

double layer_bytes(const Job& job, const Layout& layout) {
    if (layout.recompute != Recompute::kFull) return stored_bytes(job, layout);
    return tokens_of(job, layout) * job.model.hidden * element_bytes(job) /
           (layout.sequence_parallel ? layout.tensor : 1.0);
}

/// Outside the layers: the embedding's dropout mask; inputs of the final norm and the logits, logits in fp32
/// (section 4.3).
double embedding_bytes(const Job& job, const Layout& layout) {
    if (!job.stack.dropout) return 0.0;
    return tokens_of(job, layout) * job.model.hidden / (layout.sequence_parallel ? layout.tensor : 1.0);
}
double head_bytes(const Job& job, const Layout& layout) {
    const double tokens = tokens_of(job, layout);
    return tokens * job.model.hidden * 2.0 * element_bytes(job) / (layout.sequence_parallel ? layout.tensor : 1.0) +
           tokens * 4.0 * static_cast<double>(padded_vocabulary(job, layout)) / layout.tensor;
}

Bytes whole_bytes(double bytes) {
    return Bytes(static_cast<std::int64_t>(bytes + 0.5));
}

}  // namespace

Bytes layer_activations(const Job& job, const Layout& layout) {
    return whole_bytes(layer_bytes(job, layout));
}

MemoryTable::MemoryTable(const Job& job, const Layout& layout)
    : job_(job),
      layout_(layout),
      shards_(layout.distributed_optimizer ? static_cast<double>(layout.data) * layout.context : 1.0),
      weight_(element_bytes(job) + (job.precision == Precision::kFp8 ? kFp8Copy : 0.0)),
      layer_bytes_(layer_bytes(job, layout)),
      embedding_bytes_(embedding_bytes(job, layout)),
      head_bytes_(head_bytes(job, layout)),
      reserve_(kReservedBytes),
      held_(static_cast<std::size_t>(layout.pipeline)) {
    if (layout.recompute == Recompute::kFull) reserve_ += whole_bytes(stored_bytes(job, layout));
}

std::span<const int> MemoryTable::in_flight(int stage, int micro_batches, std::span<const double> kept) {
    if (kept.size() > 1) {
        std::vector<double> key{static_cast<double>(stage), static_cast<double>(micro_batches)};
        key.insert(key.end(), kept.begin(), kept.end());
        auto found = held_by_chunk_.find(key);
        if (found == held_by_chunk_.end())
            found = held_by_chunk_.emplace(key, in_flight_at_peak(layout_, stage, micro_batches, kept)).first;
        return found->second;
    }
    auto& of_stage = held_[static_cast<std::size_t>(stage)];
    const auto at = static_cast<std::size_t>(micro_batches);
    if (of_stage.size() <= at) of_stage.resize(at + 1, -1);
    if (of_stage[at] < 0) of_stage[at] = in_flight_at_peak(layout_, stage, micro_batches).front();
    return {&of_stage[at], 1};
}

StageMemory MemoryTable::worker(int stage, std::span<const int> layers, int micro_batches) {
    double parameters = 0.0;
    kept_.clear();  // of one micro-batch, by chunk
    for (std::size_t chunk = 0; chunk < layers.size(); ++chunk) {
        const int k = static_cast<int>(chunk) * layout_.pipeline + stage;
        parameters += static_cast<double>(rank_parameters(job_, layout_, k, layers[chunk]));
        kept_.push_back(layers[chunk] * layer_bytes_ + (k == 0 ? embedding_bytes_ : 0.0));
    }
    const std::span<const int> held = in_flight(stage, micro_batches, kept_);
    double activations = 0.0;
    for (std::size_t chunk = 0; chunk < kept_.size(); ++chunk) activations += held[chunk] * kept_[chunk];
    if (stage == layout_.pipeline - 1) activations += head_bytes_;

    StageMemory memory;
    memory.parameters = whole_bytes(parameters * weight_);
    memory.gradients = whole_bytes(parameters * job_.stack.gradient_bytes);
    memory.optimizer = whole_bytes(parameters * kAdamState / shards_);
    memory.activations = whole_bytes(activations);
    memory.reserve = reserve_;
    return memory;
}

StageMemory MemoryTable::worker(const Plan& plan, int replica, int stage) {
    layers_.clear();
    for (int chunk = 0; chunk < layout_.virtual_pipeline; ++chunk)
        layers_.push_back(plan.layers(replica, chunk * layout_.pipeline + stage));
    return worker(stage, layers_, plan.micro_batches_of_replica[static_cast<std::size_t>(replica)]);
}

std::vector<StageMemory> worker_memory(const Job& job, const Plan& plan) {
    MemoryTable table(job, plan.layout);
    std::vector<StageMemory> workers;
    for (int replica = 0; replica < plan.layout.data; ++replica)
        for (int stage = 0; stage < plan.layout.pipeline; ++stage)
            workers.push_back(table.worker(plan, replica, stage));
    return workers;
}

std::vector<StageMemory> stage_memory(const Job& job, const Plan& plan) {
    const std::vector<StageMemory> workers = worker_memory(job, plan);
    const auto pipeline = static_cast<std::size_t>(plan.layout.pipeline);
    std::vector<StageMemory> stages(pipeline);
    for (std::size_t worker = 0; worker < workers.size(); ++worker) {
        StageMemory& fullest = stages[worker % pipeline];
        if (workers[worker].total() > fullest.total()) fullest = workers[worker];
    }
    return stages;
}

std::vector<MemoryShortage> memory_shortages(const Job& job, const Cluster& cluster, const Plan& plan) {
    MemoryTable table(job, plan.layout);
    const std::vector<Bytes> memory = memory_of_gpus(cluster);
    std::vector<MemoryShortage> shortages;
    const auto first_too_small = [&](int stage) {
        for (int replica = 0; replica < plan.layout.data; ++replica) {
            const Bytes needed = table.worker(plan, replica, stage).total();
            for (int member = 0; member < plan.layout.ranks_per_worker(); ++member) {
                const int gpu = plan.gpu_of_worker(replica, stage, member);
                const Bytes available = memory.at(static_cast<std::size_t>(gpu));
                if (available >= needed) continue;
                shortages.push_back({stage, gpu, needed, available});
                return;
            }
        }
    };
    for (int stage = 0; stage < plan.layout.pipeline; ++stage) first_too_small(stage);
    return shortages;
}

std::vector<Bytes> memory_of_gpus(const Cluster& cluster) {
    std::vector<Bytes> memory;
    for (const NodeGroup& group : cluster.node_groups)
        memory.insert(memory.end(), static_cast<std::size_t>(group.count * group.node.gpus), group.node.gpu.memory);
    return memory;
}

bool fits_memory(MemoryTable& table, std::span<const Bytes> memory_of_gpu, const Plan& plan) {
    const auto ranks = static_cast<std::size_t>(plan.layout.ranks_per_worker());
    for (int stage = 0; stage < plan.layout.pipeline; ++stage)
        for (int replica = 0; replica < plan.layout.data; ++replica) {
            const Bytes needed = table.worker(plan, replica, stage).total();
            // A worker's ranks stand side by side.
            const auto first = static_cast<std::size_t>(plan.rank(0, 0, replica, stage));
            for (std::size_t rank = first; rank < first + ranks; ++rank)
                if (memory_of_gpu[static_cast<std::size_t>(plan.gpu_of_rank[rank])] < needed) return false;
        }
    return true;
}

}  // namespace headway::scenarios
