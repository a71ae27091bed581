#include "backend/transformer/block_order.h"

#include <gtest/gtest.h>

#include <stdexcept>
#include <vector>

#include "backend/host/host_device.h"
#include "backend/transformer/chunk.h"
#include "backend/transformer/owned_tensor.h"
#include "scenarios/costs/parameters.h"
#include "tests/backend/transformer/chunk_run.h"

namespace headway::backend {
namespace {

using scenarios::BlockKind;
using scenarios::Model;

/// Element by element, where each weight of rank `rank` of `degree` stands: its number in the whole block, in block
/// order, listed in kernel order. Written out from the definitions of both orders, head by head and column by column.
std::vector<double> written_out_map(const Model& model, int rank, int degree) {
    const int units = scenarios::split_units(model), mine = units / degree, head = scenarios::head_dim_of(model);
    const int hidden = model.hidden;
    const int queries = model.heads / units * head, keys = model.kv_heads / units * head, inner = model.ffn / units;
    // Sizes of a unit's tensors in the order in which it holds them: query, key, value, projection, (gate), up, down.
    struct Part {
        int rows, bias;
    };
    const int bias = model.biases ? 1 : 0;
    std::vector<Part> parts = {{queries, bias}, {keys, bias}, {keys, bias}, {queries, 0}};
    if (model.gated_mlp) parts.push_back({inner, bias});
    parts.push_back({inner, bias});
    parts.push_back({inner, 0});
    const auto first_of = [&](std::size_t part) {
        int first = 0;
        for (std::size_t i = 0; i < part; ++i) first += parts[i].rows * (hidden + parts[i].bias);
        return first;
    };
    const int unit_elements = first_of(parts.size());

    std::vector<double> map;
    const auto add_weights = [&](std::size_t part) {
        for (int unit = rank * mine; unit < (rank + 1) * mine; ++unit)
            for (int row = 0; row < parts[part].rows; ++row)
                for (int column = 0; column < hidden; ++column)
                    map.push_back(unit * unit_elements + first_of(part) + row * hidden + column);
    };
    const auto add_biases = [&](std::size_t part) {
        for (int unit = rank * mine; unit < (rank + 1) * mine; ++unit)
            for (int row = 0; row < parts[part].bias * parts[part].rows; ++row)
                map.push_back(unit * unit_elements + first_of(part) + parts[part].rows * hidden + row);
    };
    for (const std::size_t part : {0, 1, 2}) add_weights(part);
    for (const std::size_t part : {0, 1, 2}) add_biases(part);
    add_weights(3);
    const std::size_t down = parts.size() - 1;
    for (std::size_t part = 4; part < down; ++part) add_weights(part);
    for (std::size_t part = 4; part < down; ++part) add_biases(part);
    add_weights(down);
    return map;
}

std::vector<Model> models() {
    Model wide = small_llama();
    wide.head_dim = 6;
    wide.biases = true;
    return {small_gpt2(), small_llama(), wide};
}

TEST(BlockOrder, BecomesKernelOrderElementByElement) {
    const auto device = make_host_device(DataType::kFloat64);
    for (const Model& model : models()) {
        const std::int64_t whole = scenarios::layer_parameters(model).split;
        for (int degree = 1; degree <= scenarios::split_units(model); degree *= 2) {
            for (int rank = 0; rank < degree; ++rank) {
                const std::int64_t count = whole / degree;
                std::vector<double> numbers(static_cast<std::size_t>(count)), result(numbers.size());
                for (std::int64_t i = 0; i < count; ++i)
                    numbers[static_cast<std::size_t>(i)] = static_cast<double>(rank * count + i);
                const OwnedTensor block(*device, DataType::kFloat64, 1, count);
                const OwnedTensor kernel(*device, DataType::kFloat64, 1, count);
                device->from_host(numbers.data(), block.tensor);
                block_to_kernel_order(*device, model, degree, BlockKind::kLayerSplit, block.tensor, kernel.tensor);
                device->to_host(kernel.tensor, result.data());
                EXPECT_EQ(result, written_out_map(model, rank, degree));

                device->operations().fill(block.tensor, -1.0);
                kernel_to_block_order(*device, model, degree, BlockKind::kLayerSplit, kernel.tensor, block.tensor);
                device->to_host(block.tensor, result.data());
                EXPECT_EQ(result, numbers);
            }
        }
    }
}

TEST(BlockOrder, ConvertsTypesOnTheWay) {
    const auto device = make_host_device();
    const Model model = small_llama();
    const std::int64_t count = scenarios::layer_parameters(model).split;
    const OwnedTensor kernel(*device, DataType::kFloat32, 1, count), block(*device, DataType::kFloat64, 1, count);
    device->operations().fill(kernel.tensor, 0.1);
    kernel_to_block_order(*device, model, 1, BlockKind::kLayerSplit, kernel.tensor, block.tensor);
    EXPECT_EQ(static_cast<const double*>(block.tensor.data)[count - 1], static_cast<double>(0.1f));
    EXPECT_THROW(kernel_to_block_order(*device, model, 2, BlockKind::kLayerSplit, kernel.tensor, block.tensor),
                 std::invalid_argument);
}

TEST(BlockOrder, LeavesOtherBlocksAsTheyAre) {
    const auto device = make_host_device(DataType::kFloat64);
    const std::vector<double> numbers = {1, 2, 3, 4};
    const OwnedTensor from(*device, DataType::kFloat64, 1, 4), to(*device, DataType::kFloat64, 1, 4);
    device->from_host(numbers.data(), from.tensor);
    kernel_to_block_order(*device, small_gpt2(), 1, BlockKind::kFinalNorm, from.tensor, to.tensor);
    std::vector<double> result(4);
    device->to_host(to.tensor, result.data());
    EXPECT_EQ(result, numbers);
}

/// The tensors of a block fill its period without gaps, and whole periods fill the block.
TEST(BlockOrder, NamesEveryElement) {
    for (const Model& model : models()) {
        scenarios::Job job;
        job.model = model;
        for (const scenarios::Block& block : scenarios::blocks_of(model)) {
            const BlockTensors tensors = block_tensors(model, block.kind);
            std::int64_t next = 0;
            for (const BlockTensor& tensor : tensors.tensors) {
                EXPECT_EQ(tensor.first, next);
                next += tensor.elements;
            }
            EXPECT_EQ(next, tensors.period);
            EXPECT_EQ(scenarios::block_elements(job, {}, block.kind) % tensors.period, 0);
        }
    }
}

}  // namespace
}  // namespace headway::backend
