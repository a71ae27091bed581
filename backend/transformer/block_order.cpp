#include "backend/transformer/block_order.h"

#include <stdexcept>

#include "backend/transformer/chunk.h"
#include "scenarios/costs/parameters.h"

namespace headway::backend {

namespace {

using scenarios::BlockKind;
using scenarios::Model;

/// Inner widths of the branches on one rank of `tensor_degree`.
struct InnerWidths {
    std::int64_t queries, keys, ffn;
    InnerWidths(const Model& model, std::int64_t tensor_degree)
        : queries(std::int64_t{model.heads} * scenarios::head_dim_of(model) / tensor_degree),
          keys(std::int64_t{model.kv_heads} * scenarios::head_dim_of(model) / tensor_degree),
          ffn(model.ffn / tensor_degree) {}
};

BlockTensors tensors_of_unit(const Model& model) {
    BlockTensors unit;
    for (const scenarios::SplitTensor& tensor : scenarios::split_tensors(model)) {
        const std::int64_t elements = tensor.rows_of_unit * tensor.row;
        unit.tensors.push_back({tensor.name, unit.period, elements, tensor.row > 1});
        unit.period += elements;
    }
    return unit;
}

BlockTensors vectors_of(const Model& model, std::initializer_list<const char*> names) {
    BlockTensors block;
    for (const char* name : names) {
        if (name == nullptr) continue;
        block.tensors.push_back({name, block.period, model.hidden, false});
        block.period += model.hidden;
    }
    return block;
}

/// Where a tensor of a unit begins in kernel order: in the order of scenarios::split_tensors.
std::vector<std::int64_t> kernel_starts(const Model& model, int tensor_degree) {
    const InnerWidths inner(model, tensor_degree);
    const std::int64_t hidden = model.hidden, inputs = inner.queries + 2 * inner.keys;
    const std::int64_t mlp_inputs = (model.gated_mlp ? 2 : 1) * inner.ffn, bias = model.biases ? 1 : 0;
    const std::int64_t projection = inputs * (hidden + bias), mlp = projection + inner.queries * hidden;
    std::vector<std::int64_t> starts;
    // `row`: of the branch's inputs, whose weights stand at `weights`, followed by all their biases.
    const auto add_input = [&](std::int64_t weights, std::int64_t rows, std::int64_t row) {
        starts.push_back(weights + row * hidden);
        if (model.biases) starts.push_back(weights + rows * hidden + row);
    };
    add_input(0, inputs, 0);
    add_input(0, inputs, inner.queries);
    add_input(0, inputs, inner.queries + inner.keys);
    starts.push_back(projection);
    add_input(mlp, mlp_inputs, 0);
    if (model.gated_mlp) add_input(mlp, mlp_inputs, inner.ffn);
    starts.push_back(mlp + mlp_inputs * (hidden + bias));
    return starts;
}

/// body(tensor in kernel order, the same in block order): each [units of the rank x elements of a unit].
template <typename Body>
void over_split_tensors(const Model& model, int tensor_degree, const Tensor& kernel, const Tensor& block, Body body) {
    const BlockTensors unit = tensors_of_unit(model);
    const std::vector<std::int64_t> starts = kernel_starts(model, tensor_degree);
    const std::int64_t units = scenarios::split_units(model) / tensor_degree;
    if (kernel.count() != units * unit.period || block.count() != kernel.count())
        throw std::invalid_argument("the tensors are not a rank's part of the split block of a layer");
    for (std::size_t i = 0; i < unit.tensors.size(); ++i) {
        const BlockTensor& tensor = unit.tensors[i];
        const Tensor in_kernel = kernel.elements(starts[i], units * tensor.elements).shaped(units, tensor.elements);
        Tensor in_block = block.elements(tensor.first, tensor.elements);
        in_block.rows = units;
        in_block.stride = unit.period;
        body(in_kernel, in_block);
    }
}

}  // namespace

BlockTensors block_tensors(const Model& model, BlockKind kind) {
    const char* const none = nullptr;
    const bool shifts = model.norm == scenarios::Norm::kLayer;
    switch (kind) {
        case BlockKind::kEmbedding:
            return {model.hidden, {{"embedding", 0, model.hidden, true}}};
        case BlockKind::kPositions:
            return {model.hidden, {{"positions", 0, model.hidden, true}}};
        case BlockKind::kHead:
            return {model.hidden, {{"head", 0, model.hidden, true}}};
        case BlockKind::kLayerSplit:
            return tensors_of_unit(model);
        case BlockKind::kLayerReplicated:
            return vectors_of(model, {"attention norm weight", shifts ? "attention norm bias" : none,
                                      model.biases ? "projection bias" : none, "mlp norm weight",
                                      shifts ? "mlp norm bias" : none, model.biases ? "mlp output bias" : none});
        case BlockKind::kFinalNorm:
            return vectors_of(model, {"final norm weight", shifts ? "final norm bias" : none});
    }
    throw std::invalid_argument("not a block");
}

BranchTensors branch_tensors(const Model& model, int tensor_degree, BranchKind branch, const Tensor& split,
                             const Tensor& replicated) {
    const InnerWidths inner(model, tensor_degree);
    const std::int64_t hidden = model.hidden;
    const bool attention = branch == BranchKind::kAttention;
    const std::int64_t attention_inputs = inner.queries + 2 * inner.keys;
    const std::int64_t inputs = attention ? attention_inputs : (model.gated_mlp ? 2 : 1) * inner.ffn;
    std::int64_t next = attention ? 0 : attention_inputs * (hidden + (model.biases ? 1 : 0)) + inner.queries * hidden;
    const auto matrix = [&](std::int64_t rows, std::int64_t columns) {
        const Tensor tensor = split.elements(next, rows * columns).shaped(rows, columns);
        next += rows * columns;
        return tensor;
    };
    const Tensor absent{nullptr, split.type, 1, 0, 0};
    BranchTensors tensors;
    tensors.input_weight = matrix(inputs, hidden);
    tensors.input_bias = model.biases ? matrix(1, inputs) : absent;
    tensors.output_weight = matrix(attention ? inner.queries : inner.ffn, hidden);

    std::int64_t vectors = attention ? 0 : replicated.count() / 2;
    const auto vector = [&](bool present) {
        if (!present) return absent;
        const Tensor tensor = replicated.elements(vectors, hidden);
        vectors += hidden;
        return tensor;
    };
    tensors.norm_weight = vector(true);
    tensors.norm_bias = vector(model.norm == scenarios::Norm::kLayer);
    tensors.output_bias = vector(model.biases);
    return tensors;
}

void kernel_to_block_order(Device& device, const Model& model, int tensor_degree, BlockKind kind, const Tensor& kernel,
                           const Tensor& block) {
    Operations& operations = device.operations();
    if (kind != BlockKind::kLayerSplit) return operations.copy(kernel, block);
    over_split_tensors(model, tensor_degree, kernel, block,
                       [&](const Tensor& in_kernel, const Tensor& in_block) { operations.copy(in_kernel, in_block); });
}

void block_to_kernel_order(Device& device, const Model& model, int tensor_degree, BlockKind kind, const Tensor& block,
                           const Tensor& kernel) {
    Operations& operations = device.operations();
    if (kind != BlockKind::kLayerSplit) return operations.copy(block, kernel);
    over_split_tensors(model, tensor_degree, kernel, block,
                       [&](const Tensor& in_kernel, const Tensor& in_block) { operations.copy(in_block, in_kernel); });
}

}  // namespace headway::backend
