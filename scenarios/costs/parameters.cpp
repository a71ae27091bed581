#include "scenarios/costs/parameters.h"

namespace headway::scenarios {

namespace {

constexpr std::int64_t kVocabularyMultiple = 128;

std::int64_t query_width(const Model& model) {
    return static_cast<std::int64_t>(model.heads) * head_dim_of(model);
}
std::int64_t key_value_width(const Model& model) {
    return 2ll * model.kv_heads * head_dim_of(model);
}
int norm_vectors(const Model& model) {
    return model.norm == Norm::kLayer ? 2 : 1;  // scale and shift, or scale alone
}

/// Of one layer, forward, for one token: matrices, and attention scores and their product with the values.
double layer_matrix_flops(const Model& model) {
    const double hidden = model.hidden;
    const double mlp = (model.gated_mlp ? 3.0 : 2.0) * hidden * model.ffn;
    const double attention = hidden * static_cast<double>(2 * query_width(model) + key_value_width(model));
    return 2.0 * (mlp + attention);
}
double layer_score_flops(const Model& model) {
    return 4.0 * static_cast<double>(query_width(model)) * model.sequence_length;
}

bool last_virtual_stage(const Layout& layout, int virtual_stage) {
    return virtual_stage == layout.virtual_stages() - 1;
}

}  // namespace

int head_dim_of(const Model& model) {
    return model.head_dim > 0 ? model.head_dim : model.hidden / model.heads;
}

LayerParameters layer_parameters(const Model& model) {
    const std::int64_t hidden = model.hidden;
    const std::int64_t mlp_inputs = model.gated_mlp ? 2 : 1;
    LayerParameters p;
    p.split = hidden * (2 * query_width(model) + key_value_width(model)) + hidden * model.ffn * (mlp_inputs + 1);
    p.replicated = 2 * norm_vectors(model) * hidden;
    if (model.biases) {
        p.split += query_width(model) + key_value_width(model) + mlp_inputs * model.ffn;
        p.replicated += 2 * hidden;
    }
    return p;
}

std::int64_t embedding_parameters(const Model& model) {
    return static_cast<std::int64_t>(model.vocab) * model.hidden;
}

std::int64_t position_parameters(const Model& model) {
    return model.positions == Positions::kLearned ? static_cast<std::int64_t>(model.sequence_length) * model.hidden : 0;
}

std::int64_t final_norm_parameters(const Model& model) {
    return static_cast<std::int64_t>(norm_vectors(model)) * model.hidden;
}

std::int64_t model_parameters(const Model& model) {
    return layer_parameters(model).total() * model.layers +
           embedding_parameters(model) * (model.tied_embedding ? 1 : 2) + position_parameters(model) +
           final_norm_parameters(model);
}

std::int64_t padded_vocabulary(const Job& job, const Layout& layout) {
    if (layout.tensor == 1 && !job.stack.pads_vocabulary) return job.model.vocab;
    const std::int64_t multiple = kVocabularyMultiple * layout.tensor;
    return (job.model.vocab + multiple - 1) / multiple * multiple;
}

std::int64_t tied_parameters(const Job& job, const Layout& layout, int virtual_stage) {
    if (!job.model.tied_embedding || layout.pipeline == 1) return 0;
    if (virtual_stage != 0 && !last_virtual_stage(layout, virtual_stage)) return 0;
    return padded_vocabulary(job, layout) / layout.tensor * job.model.hidden;
}

std::int64_t rank_parameters(const Job& job, const Layout& layout, int virtual_stage, int layers) {
    const LayerParameters layer = layer_parameters(job.model);
    const std::int64_t embedding = padded_vocabulary(job, layout) / layout.tensor * job.model.hidden;
    std::int64_t count = layers * ((layer.split + layout.tensor - 1) / layout.tensor + layer.replicated);
    if (virtual_stage == 0) count += embedding + position_parameters(job.model);
    if (last_virtual_stage(layout, virtual_stage)) {
        count += final_norm_parameters(job.model);
        const bool copy_is_here_already = job.model.tied_embedding && layout.pipeline == 1;
        if (!copy_is_here_already) count += embedding;
    }
    return count;
}

Flops model_flops(const Job& job) {
    const Model& model = job.model;
    const double tokens = static_cast<double>(job.tokens_per_iteration());
    const double layer = layer_matrix_flops(model) + layer_score_flops(model);
    const double logits = 2.0 * static_cast<double>(embedding_parameters(model));
    return {3.0 * tokens * (model.layers * layer + logits)};
}

Flops hardware_flops(const Job& job, Recompute recompute) {
    const Model& model = job.model;
    double again = 0.0;
    if (recompute == Recompute::kFull) again = layer_matrix_flops(model) + layer_score_flops(model);
    if (recompute == Recompute::kSelective) again = layer_score_flops(model);
    return model_flops(job) + Flops{static_cast<double>(job.tokens_per_iteration()) * model.layers * again};
}

}  // namespace headway::scenarios
