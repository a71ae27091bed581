#include "backend/checkpoint/hugging_face_names.h"

#include <algorithm>
#include <map>

#include "backend/transformer/block_order.h"
#include "scenarios/costs/parameters.h"
#include "scenarios/language/config_error.h"

namespace headway::backend {
namespace {

using scenarios::Model;

/// Where one tensor of a block is, without the sizes that the block knows.
struct NamedPlace {
    std::string name;
    std::vector<std::int64_t> shape;
    std::int64_t base = 0;
    std::int64_t row_stride = 1;
    std::int64_t column_stride = 1;
};
using NamedPlaces = std::map<std::string, NamedPlace>;  ///< by the block's own names of its tensors

/// [rows, columns] as the block has it, or transposed.
NamedPlace straight(std::string name, std::int64_t rows, std::int64_t columns) {
    return {std::move(name), {rows, columns}, 0, columns, 1};
}
NamedPlace transposed(std::string name, std::int64_t rows, std::int64_t columns) {
    return {std::move(name), {columns, rows}, 0, 1, rows};
}
NamedPlace vector_of(std::string name, std::int64_t elements) {
    return {std::move(name), {elements}, 0, 1, 1};
}

NamedPlaces gpt2_places(const Model& model, const std::string& layer) {
    const std::int64_t hidden = model.hidden, inputs = 3 * hidden;
    NamedPlaces places = {
        {"embedding", straight("wte.weight", model.vocab, hidden)},
        {"positions", straight("wpe.weight", model.sequence_length, hidden)},
        {"final norm weight", vector_of("ln_f.weight", hidden)},
        {"final norm bias", vector_of("ln_f.bias", hidden)},
        {"projection weight", straight(layer + "attn.c_proj.weight", hidden, hidden)},
        {"mlp input weight", transposed(layer + "mlp.c_fc.weight", model.ffn, hidden)},
        {"mlp input bias", vector_of(layer + "mlp.c_fc.bias", model.ffn)},
        {"mlp output weight", straight(layer + "mlp.c_proj.weight", model.ffn, hidden)},
        {"attention norm weight", vector_of(layer + "ln_1.weight", hidden)},
        {"attention norm bias", vector_of(layer + "ln_1.bias", hidden)},
        {"projection bias", vector_of(layer + "attn.c_proj.bias", hidden)},
        {"mlp norm weight", vector_of(layer + "ln_2.weight", hidden)},
        {"mlp norm bias", vector_of(layer + "ln_2.bias", hidden)},
        {"mlp output bias", vector_of(layer + "mlp.c_proj.bias", hidden)},
    };
    std::int64_t base = 0;
    for (const char* const input : {"query", "key", "value"}) {
        places[input + std::string(" weight")] = {layer + "attn.c_attn.weight", {hidden, inputs}, base, 1, inputs};
        places[input + std::string(" bias")] = {layer + "attn.c_attn.bias", {inputs}, base, 1, 1};
        base += hidden;
    }
    return places;
}

NamedPlaces llama_places(const Model& model, const std::string& layer) {
    const std::int64_t hidden = model.hidden, head = scenarios::head_dim_of(model);
    const std::int64_t queries = model.heads * head, keys = model.kv_heads * head;
    return {
        {"embedding", straight("model.embed_tokens.weight", model.vocab, hidden)},
        {"head", straight("lm_head.weight", model.vocab, hidden)},
        {"final norm weight", vector_of("model.norm.weight", hidden)},
        {"query weight", straight(layer + "self_attn.q_proj.weight", queries, hidden)},
        {"key weight", straight(layer + "self_attn.k_proj.weight", keys, hidden)},
        {"value weight", straight(layer + "self_attn.v_proj.weight", keys, hidden)},
        {"projection weight", transposed(layer + "self_attn.o_proj.weight", queries, hidden)},
        {"gate weight", straight(layer + "mlp.gate_proj.weight", model.ffn, hidden)},
        {"mlp input weight", straight(layer + "mlp.up_proj.weight", model.ffn, hidden)},
        {"mlp output weight", transposed(layer + "mlp.down_proj.weight", model.ffn, hidden)},
        {"attention norm weight", vector_of(layer + "input_layernorm.weight", hidden)},
        {"mlp norm weight", vector_of(layer + "post_attention_layernorm.weight", hidden)},
    };
}

}  // namespace

HuggingFaceFamily hugging_face_family(const Model& model) {
    const bool square = std::int64_t{model.heads} * scenarios::head_dim_of(model) == model.hidden;
    if (model.positions == scenarios::Positions::kLearned && model.norm == scenarios::Norm::kLayer && model.biases &&
        !model.gated_mlp && model.tied_embedding && model.kv_heads == model.heads && square)
        return HuggingFaceFamily::kGpt2;
    if (model.positions == scenarios::Positions::kRotary && model.norm == scenarios::Norm::kRms && !model.biases &&
        model.gated_mlp)
        return HuggingFaceFamily::kLlama;
    throw scenarios::ConfigError(
        "Hugging Face weights: model '" + model.name +
        "' is neither a GPT-2 (learned positions, layer norm, biases, GELU, tied embedding, as many key/value heads as "
        "heads) nor a Llama (rotary positions, RMS norm, no biases, gated MLP)");
}

PlacedBlock placed_block(const Model& model, const scenarios::Block& block) {
    const std::string layer = std::to_string(block.layer) + ".";
    const NamedPlaces places = hugging_face_family(model) == HuggingFaceFamily::kGpt2
                                   ? gpt2_places(model, "h." + layer)
                                   : llama_places(model, "model.layers." + layer);
    const BlockTensors tensors = block_tensors(model, block.kind);
    PlacedBlock placed;
    placed.period = tensors.period;
    for (const BlockTensor& tensor : tensors.tensors) {
        const NamedPlace& place = places.at(tensor.name);
        const std::int64_t columns = tensor.matrix ? model.hidden : 1;
        placed.tensors.push_back({tensor.first, tensor.elements / columns, columns, place.name, place.shape, place.base,
                                  place.row_stride, place.column_stride});
    }
    return placed;
}

std::vector<PlacedPart> placed_parts(const PlacedBlock& block, const scenarios::Interval& interval) {
    std::vector<PlacedPart> parts;
    for (std::int64_t period = interval.begin / block.period; period * block.period < interval.end; ++period) {
        for (const PlacedTensor& tensor : block.tensors) {
            const std::int64_t start = period * block.period + tensor.first;
            // Elements of the tensor in this period that are wanted, as rows begun, whole rows, a row not ended.
            std::int64_t next = std::max(interval.begin - start, std::int64_t{0});
            const std::int64_t end = std::min(interval.end - start, tensor.rows * tensor.columns);
            while (next < end) {
                const std::int64_t column = next % tensor.columns;
                PlacedPart part{
                    &tensor, period * tensor.rows + next / tensor.columns, 1, column, 0, start + next - interval.begin};
                if (column == 0 && end - next >= tensor.columns) {
                    part.rows = (end - next) / tensor.columns;
                    part.columns = tensor.columns;
                } else {
                    part.columns = std::min(tensor.columns - column, end - next);
                }
                next += part.rows * part.columns;
                parts.push_back(part);
            }
        }
    }
    return parts;
}

}  // namespace headway::backend
