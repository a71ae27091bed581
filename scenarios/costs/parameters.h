#pragma once

#include <cstdint>
#include <vector>

#include "scenarios/language/job.h"
#include "scenarios/language/plan.h"

/// Exact counts of parameters and floating-point operations of a transformer.
namespace headway::scenarios {

/// Elements of one transformer layer. Matrices are split over the tensor ranks, as are the biases of the
/// column-parallel layers; norms and the biases of the row-parallel layers are held by each.
struct LayerParameters {
    std::int64_t split = 0;
    std::int64_t replicated = 0;
    std::int64_t total() const { return split + replicated; }
};

/// Width of one head; hidden / heads where the model leaves it open.
int head_dim_of(const Model& model);

LayerParameters layer_parameters(const Model& model);
std::int64_t embedding_parameters(const Model& model);  ///< vocabulary x hidden
std::int64_t position_parameters(const Model& model);   ///< learned positions; 0 for rotary ones
std::int64_t final_norm_parameters(const Model& model);

/// Of the whole model, each once: GPT-3 has 174.6 billion, Llama 3.1 70B 70.6 billion.
std::int64_t model_parameters(const Model& model);

/// Rows of the embedding after padding to a multiple of 128 a tensor rank (Megatron-LM), or as they are.
std::int64_t padded_vocabulary(const Job& job, const Layout& layout);

/// Parameters that one rank of a virtual stage holds: its layers, and the embedding, positions, final norm and logits
/// where they are (a tied embedding is held twice when there is more than one stage). The embedding is padded.
std::int64_t rank_parameters(const Job& job, const Layout& layout, int virtual_stage, int layers);
/// Embedding elements among them that first and last stage add up over (tied embedding, more than one stage), else 0.
std::int64_t tied_parameters(const Job& job, const Layout& layout, int virtual_stage);

/// Operations forward and backward of one iteration (backward is twice forward); attention counts every score, as
/// Narayanan et al. 2021, equation 3, does: 72 B s l h^2 (1 + s / 6h + V / 12 l h) for a plain GPT, here for any shape.
Flops model_flops(const Job& job);
/// With what recomputation adds: one forward of the layers, or of the attention scores.
Flops hardware_flops(const Job& job, Recompute recompute);

}  // namespace headway::scenarios
