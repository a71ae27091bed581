#include "scenarios/costs/memory.h"

#include <algorithm>
#include <optional>

#include "scenarios/costs/parameters.h"
#include "scenarios/language/program.h"

namespace headway::scenarios {

namespace {

constexpr double kWeightBytes = 2.0;  ///< fp16, bf16
constexpr double kFp8Copy = 1.0;      ///< fp8 layers keep a cast copy of the weights
constexpr double kAdamState = 12.0;   ///< fp32 master weight and two moments
/// CUDA context and libraries (0.5 GiB), NCCL buffers (0.5 GiB), cuBLAS workspace and fragments (assumed).
const Bytes kReservedBytes = Bytes::gib(1.5);

double tokens_of(const Job& job, const Layout& layout) {
    return static_cast<double>(job.micro_batch) * job.model.sequence_length / layout.context;
}

/// Kept of one layer when nothing is recomputed in full.
double stored_bytes(const Job& job, const Layout& layout) {
    const Model& model = job.model;
    const double tokens = tokens_of(job, layout);
    const double mask = job.stack.dropout ? 1.0 : 0.0;
    const double tensor = layout.tensor;
    const double head = head_dim_of(model);
    const double queries = model.heads * head;
    const double keys_values = 2.0 * model.kv_heads * head;
    // Inputs of both norms and both blocks, dropout masks after the blocks.
    const double outside = tokens * model.hidden * (8.0 + 2.0 * mask) / (layout.sequence_parallel ? tensor : 1.0);
    // Queries, keys, values; input of the projection; inputs of the activation function and of the last matrix.
    const double inside =
        tokens * 2.0 * (queries + keys_values + queries + model.ffn * ((model.gated_mlp ? 2.0 : 1.0) + 1.0)) / tensor;
    if (job.stack.flash_attention) return outside + inside + tokens * 4.0 * model.heads / tensor;  // log-sum-exp
    if (layout.recompute == Recompute::kSelective) return outside + inside;
    // Softmax output; with dropout its mask and its output too.
    const double scores = tokens * model.heads / tensor * model.sequence_length;
    return outside + inside + scores * (2.0 + 3.0 * mask);
}

double layer_bytes(const Job& job, const Layout& layout) {
    if (layout.recompute != Recompute::kFull) return stored_bytes(job, layout);
    return tokens_of(job, layout) * job.model.hidden * 2.0 / (layout.sequence_parallel ? layout.tensor : 1.0);
}

/// Outside the layers: the embedding's dropout mask; inputs of the final norm and the logits, logits in fp32
/// (section 4.3).
double embedding_bytes(const Job& job, const Layout& layout) {
    if (!job.stack.dropout) return 0.0;
    return tokens_of(job, layout) * job.model.hidden / (layout.sequence_parallel ? layout.tensor : 1.0);
}
double head_bytes(const Job& job, const Layout& layout) {
    const double tokens = tokens_of(job, layout);
    return tokens * job.model.hidden * 4.0 / (layout.sequence_parallel ? layout.tensor : 1.0) +
           tokens * 4.0 * static_cast<double>(padded_vocabulary(job, layout)) / layout.tensor;
}

Bytes whole_bytes(double bytes) {
    return Bytes(static_cast<std::int64_t>(bytes + 0.5));
}

int most_micro_batches(const Plan& plan) {
    return *std::max_element(plan.micro_batches_of_replica.begin(), plan.micro_batches_of_replica.end());
}

}  // namespace

Bytes layer_activations(const Job& job, const Layout& layout) {
    return whole_bytes(layer_bytes(job, layout));
}

std::vector<StageMemory> stage_memory(const Job& job, const Plan& plan) {
    const Layout& layout = plan.layout;
    const double shards = layout.distributed_optimizer ? static_cast<double>(layout.data) * layout.context : 1.0;
    const double weight = kWeightBytes + (job.precision == Precision::kFp8 ? kFp8Copy : 0.0);
    std::vector<StageMemory> stages;
    for (int stage = 0; stage < layout.pipeline; ++stage) {
        double parameters = 0.0;
        std::vector<double> kept;  // of one micro-batch, by chunk
        for (int chunk = 0; chunk < layout.virtual_pipeline; ++chunk) {
            const int k = chunk * layout.pipeline + stage;
            const int layers = plan.layers(0, k);
            parameters += static_cast<double>(rank_parameters(job, layout, k, layers));
            kept.push_back(layers * layer_bytes(job, layout) + (k == 0 ? embedding_bytes(job, layout) : 0.0));
        }
        const std::vector<int> in_flight = in_flight_at_peak(layout, stage, most_micro_batches(plan), kept);
        double activations = 0.0;
        for (std::size_t chunk = 0; chunk < kept.size(); ++chunk) activations += in_flight[chunk] * kept[chunk];
        if (stage == layout.pipeline - 1) activations += head_bytes(job, layout);

        StageMemory memory;
        memory.parameters = whole_bytes(parameters * weight);
        memory.gradients = whole_bytes(parameters * job.stack.gradient_bytes);
        memory.optimizer = whole_bytes(parameters * kAdamState / shards);
        memory.activations = whole_bytes(activations);
        memory.reserve = kReservedBytes;
        if (layout.recompute == Recompute::kFull) memory.reserve += whole_bytes(stored_bytes(job, layout));
        stages.push_back(memory);
    }
    return stages;
}

std::vector<MemoryShortage> memory_shortages(const Job& job, const Cluster& cluster, const Plan& plan) {
    std::vector<MemoryShortage> shortages;
    const std::vector<StageMemory> stages = stage_memory(job, plan);
    for (int stage = 0; stage < plan.layout.pipeline; ++stage) {
        const Bytes needed = stages[static_cast<std::size_t>(stage)].total();
        const auto too_small = [&]() -> std::optional<int> {
            for (int replica = 0; replica < plan.layout.data; ++replica)
                for (int member = 0; member < plan.layout.ranks_per_worker(); ++member) {
                    const int gpu = plan.gpu_of_worker(replica, stage, member);
                    if (cluster.gpu_type(gpu).memory < needed) return gpu;
                }
            return std::nullopt;
        }();
        if (too_small) shortages.push_back({stage, *too_small, needed, cluster.gpu_type(*too_small).memory});
    }
    return shortages;
}

}  // namespace headway::scenarios
