#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "scenarios/language/job.h"
#include "scenarios/transfer/ownership.h"

/// How Hugging Face's transformers name and lay out the weights of GPT-2 (modeling_gpt2.py: Conv1D weights are
/// [in, out], query, key and value side by side) and Llama (modeling_llama.py: Linear weights are [out, in]; rotary
/// embedding pairs halves, as here). Transformers are at https://github.com/huggingface/transformers.
namespace headway::backend {

enum class HuggingFaceFamily : std::uint8_t { kGpt2, kLlama };

/// Throws ConfigError for a model of neither family.
HuggingFaceFamily hugging_face_family(const scenarios::Model& model);

/// A tensor of a block in a tensor of the family. A block in block order is its period again and again
/// (backend/transformer/block_order.h); the elements `first` to `first + rows * columns` of every period are here:
/// element (r, c) of period p is element base + (p * rows + r) * row_stride + c * column_stride of `name`.
struct PlacedTensor {
    std::int64_t first = 0;
    std::int64_t rows = 1;  ///< of a period
    std::int64_t columns = 1;
    std::string name;  ///< "h.3.attn.c_attn.weight", "model.layers.3.self_attn.q_proj.weight"
    std::vector<std::int64_t> shape;
    std::int64_t base = 0;
    std::int64_t row_stride = 1;
    std::int64_t column_stride = 1;
};

struct PlacedBlock {
    std::int64_t period = 1;
    std::vector<PlacedTensor> tensors;
};

PlacedBlock placed_block(const scenarios::Model& model, const scenarios::Block& block);

/// A rectangle of a tensor.
struct PlacedPart {
    const PlacedTensor* tensor = nullptr;
    std::int64_t row = 0;  ///< counted over all periods
    std::int64_t rows = 0;
    std::int64_t column = 0;
    std::int64_t columns = 0;
    std::int64_t offset =
        0;  ///< of its first element from the interval's beginning; its rows stand one after the other
};
/// Elements `interval` of a block as rectangles of its tensors, in order.
std::vector<PlacedPart> placed_parts(const PlacedBlock& block, const scenarios::Interval& interval);

/// config.json, from which transformers build the model. `type`: "float32", ...
std::string hugging_face_config(const scenarios::Model& model, const std::string& type);
/// Complains, as ConfigError naming `file`, about what a config.json says otherwise than the model: heads, epsilon,
/// rotary base and scaling, activation. What it does not say is not asked for.
void check_hugging_face_config(const scenarios::Model& model, const std::string& text, const std::string& file);

}  // namespace headway::backend
