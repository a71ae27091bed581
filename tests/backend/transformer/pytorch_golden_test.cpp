#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <functional>
#include <sstream>
#include <stdexcept>

#include "backend/host/host_device.h"
#include "backend/transformer/owned_tensor.h"
#include "backend/transformer/tensor_group.h"
#include "backend/transformer/vocabulary.h"
#include "tests/backend/transformer/chunk_run.h"
#include "tests/paths.h"

/// The same weights in Hugging Face's models under PyTorch: pytorch_golden.py says how the figures were made.
namespace headway::backend {
namespace {

using scenarios::BlockKind;
using scenarios::Model;

/// Tensors of one model by Hugging Face's names, elements in their order.
using NamedTensors = std::map<std::string, std::vector<double>>;

NamedTensors golden_tensors(const std::string& model) {
    const auto file = tests::source_directory() / "tests/backend/transformer/pytorch_golden.txt";
    std::ifstream in(file);
    NamedTensors tensors;
    for (std::string line; std::getline(in, line);) {
        std::istringstream words(line);
        std::string of, name;
        std::size_t count = 0;
        words >> of >> name >> count;
        if (of != model) continue;
        std::vector<double>& values = tensors[name];
        for (double value = 0.0; words >> value;) values.push_back(value);
        if (values.size() != count) throw std::runtime_error(file.string() + " is cut");
    }
    if (tensors.empty()) throw std::runtime_error("no figures of " + model + " in " + file.string());
    return tensors;
}

/// `fraction` of pytorch_golden.py.
double fraction(std::uint32_t stream, std::size_t index) {
    std::uint32_t x = (stream + 1) * 2654435761u + static_cast<std::uint32_t>(index) * 2246822519u;
    x ^= x >> 15;
    x *= 3266489917u;
    x ^= x >> 13;
    return x / 4294967296.0;
}

NamedTensors golden_weights(const NamedTensors& gradients) {
    NamedTensors weights;
    std::uint32_t stream = 0;
    for (const auto& [name, gradient] : gradients) {  // in the order of the names
        if (name == "loss" || name == "logits") continue;
        const bool norm = name.find("ln_") != std::string::npos || name.find("norm") != std::string::npos;
        std::vector<double>& values = weights[name];
        for (std::size_t i = 0; i < gradient.size(); ++i)
            values.push_back((norm ? 1.0 : 0.0) + fraction(stream, i) - 0.5);
        ++stream;
    }
    return weights;
}

RunSetup golden_setup(const std::string& name) {
    RunSetup setup;
    Model& model = setup.model;
    model = name == "gpt2" ? small_gpt2() : small_llama();
    model.hidden = 8;
    model.heads = name == "gpt2" ? 2 : 4;
    model.kv_heads = 2;
    model.head_dim = model.hidden / model.heads;
    model.ffn = name == "gpt2" ? 16 : 12;
    model.vocab = 11;
    model.sequence_length = 5;
    model.rotary_base = 50.0;
    return setup;
}

/// Hugging Face's tensors in block order. Written out, for what it says of block order is a claim of this test.
BlockValues block_values_of(const std::string& name, const NamedTensors& tensors) {
    const int hidden = 8, units = 2, queries = 4, keys = name == "gpt2" ? 4 : 2, inner = name == "gpt2" ? 8 : 6;
    BlockValues blocks;
    const auto append = [&](BlockKind kind, int layer, const std::string& tensor) {
        const std::vector<double>& values = tensors.at(tensor);
        std::vector<double>& block = blocks[{kind, layer}];
        block.insert(block.end(), values.begin(), values.end());
    };
    for (int layer = 0; layer < 2; ++layer) {
        std::vector<double>& split = blocks[{BlockKind::kLayerSplit, layer}];
        // Inner columns [first, first + count) of a matrix: rows of hidden elements. `stored_by_inner`: so it lies.
        const auto matrix = [&](const std::string& tensor, int first, int count, int width, bool stored_by_inner) {
            for (int i = first; i < first + count; ++i)
                for (int h = 0; h < hidden; ++h)
                    split.push_back(
                        tensors.at(tensor)[static_cast<std::size_t>(stored_by_inner ? i * hidden + h : h * width + i)]);
        };
        const auto bias = [&](const std::string& tensor, int first, int count) {
            for (int i = first; i < first + count; ++i)
                split.push_back(tensors.at(tensor)[static_cast<std::size_t>(i)]);
        };
        if (name == "gpt2") {
            const std::string at = "transformer.h." + std::to_string(layer) + ".";
            for (int unit = 0; unit < units; ++unit) {
                for (int part = 0; part < 3; ++part) {  // queries, keys, values side by side in one matrix
                    matrix(at + "attn.c_attn.weight", part * 8 + unit * queries, queries, 24, false);
                    bias(at + "attn.c_attn.bias", part * 8 + unit * queries, queries);
                }
                matrix(at + "attn.c_proj.weight", unit * queries, queries, 8, true);
                matrix(at + "mlp.c_fc.weight", unit * inner, inner, 16, false);
                bias(at + "mlp.c_fc.bias", unit * inner, inner);
                matrix(at + "mlp.c_proj.weight", unit * inner, inner, 16, true);
            }
            for (const char* tensor :
                 {"ln_1.weight", "ln_1.bias", "attn.c_proj.bias", "ln_2.weight", "ln_2.bias", "mlp.c_proj.bias"})
                append(BlockKind::kLayerReplicated, layer, at + tensor);
        } else {
            const std::string at = "model.layers." + std::to_string(layer) + ".";
            for (int unit = 0; unit < units; ++unit) {
                matrix(at + "self_attn.q_proj.weight", unit * queries, queries, 8, true);
                matrix(at + "self_attn.k_proj.weight", unit * keys, keys, 4, true);
                matrix(at + "self_attn.v_proj.weight", unit * keys, keys, 4, true);
                matrix(at + "self_attn.o_proj.weight", unit * queries, queries, 8, false);
                matrix(at + "mlp.gate_proj.weight", unit * inner, inner, 12, true);
                matrix(at + "mlp.up_proj.weight", unit * inner, inner, 12, true);
                matrix(at + "mlp.down_proj.weight", unit * inner, inner, 12, false);
            }
            for (const char* tensor : {"input_layernorm.weight", "post_attention_layernorm.weight"})
                append(BlockKind::kLayerReplicated, layer, at + tensor);
        }
    }
    if (name == "gpt2") {
        append(BlockKind::kEmbedding, -1, "transformer.wte.weight");
        append(BlockKind::kPositions, -1, "transformer.wpe.weight");
        append(BlockKind::kFinalNorm, -1, "transformer.ln_f.weight");
        append(BlockKind::kFinalNorm, -1, "transformer.ln_f.bias");
    } else {
        append(BlockKind::kEmbedding, -1, "model.embed_tokens.weight");
        append(BlockKind::kFinalNorm, -1, "model.norm.weight");
        append(BlockKind::kHead, -1, "lm_head.weight");
    }
    return blocks;
}

Tokens golden_tokens(const RunSetup& setup) {
    Tokens tokens;
    for (std::size_t i = 0; i < 10; ++i) {
        tokens.inputs.push_back(static_cast<std::int32_t>(fraction(100, i) * setup.model.vocab));
        tokens.targets.push_back(static_cast<std::int32_t>(fraction(101, i) * setup.model.vocab));
    }
    return tokens;
}

double relative_error(const std::vector<double>& values, const std::vector<double>& expected) {
    if (values.size() != expected.size()) throw std::logic_error("tensors of different sizes");
    double largest = 0.0, error = 0.0;
    for (std::size_t i = 0; i < values.size(); ++i) {
        largest = std::max(largest, std::abs(expected[i]));
        error = std::max(error, std::abs(values[i] - expected[i]));
    }
    return error / largest;
}

struct Golden {
    const char* model;
    DataType type;
    double tolerance;
    friend void PrintTo(const Golden& golden, std::ostream* out) { *out << golden.model; }
};

class PyTorchGolden : public ::testing::TestWithParam<Golden> {};

TEST_P(PyTorchGolden, LossAndGradientsAreEqual) {
    const std::string name = GetParam().model;
    const NamedTensors golden = golden_tensors(name);
    const auto device = make_host_device(GetParam().type);
    const RunSetup setup = golden_setup(name);
    ChunkRun run(*device, setup);
    run.set_weights(block_values_of(name, golden_weights(golden)));
    const RunResult result = run.run({golden_tokens(setup)});
    EXPECT_LT(relative_error({result.loss / 10.0}, golden.at("loss")), GetParam().tolerance);
    const BlockValues expected = block_values_of(name, golden);
    EXPECT_EQ(result.gradients.size(), expected.size());
    for (const auto& [block, gradient] : result.gradients)
        EXPECT_LT(relative_error(gradient, expected.at(block)), GetParam().tolerance)
            << "block " << static_cast<int>(block.first) << " of layer " << block.second;
}

/// All layers in a chunk without a head, then the head alone, for a chunk keeps its logits to itself.
TEST_P(PyTorchGolden, LogitsAreEqual) {
    const std::string name = GetParam().model;
    const NamedTensors golden = golden_tensors(name);
    const auto device = make_host_device(GetParam().type);
    RunSetup setup = golden_setup(name);
    setup.layers_of_chunk = {2, 0};
    ChunkRun run(*device, setup);
    run.set_weights(block_values_of(name, golden_weights(golden)));

    const std::vector<std::int32_t> inputs = golden_tokens(setup).inputs;
    const OwnedTensor tokens(*device, DataType::kInt32, 1, 10);
    device->from_host(inputs.data(), tokens.tensor);
    const OwnedTensor flow(*device, GetParam().type, 10, 8);
    run.chunk(0).forward(0, tokens.tensor, {}, 1.0, flow.tensor);

    const Chunk& last = run.chunk(1);
    const auto block = [&](BlockKind kind) {
        return *std::find_if(last.blocks().begin(), last.blocks().end(),
                             [&](const BlockWeights& held) { return held.block.kind == kind; });
    };
    const BlockWeights norm = block(BlockKind::kFinalNorm);
    const BlockWeights table = block(setup.model.tied_embedding ? BlockKind::kEmbedding : BlockKind::kHead);
    TensorGroup group(*device, nullptr, setup.layout, 0);
    const VocabularyHead head(*device, group, last.shape(), norm.weights, norm.gradients, table.weights.shaped(11, 8),
                              table.gradients.shaped(11, 8));
    HeadState state;
    head.logits(flow.tensor, state);
    const OwnedTensor logits(*device, DataType::kFloat64, 10, 11);
    device->operations().copy(state.logits.tensor, logits.tensor);
    std::vector<double> values(110);
    device->to_host(logits.tensor, values.data());
    EXPECT_LT(relative_error(values, golden.at("logits")), GetParam().tolerance);
}

INSTANTIATE_TEST_SUITE_P(
    Models, PyTorchGolden,
    ::testing::Values(Golden{"gpt2", DataType::kFloat64,
                             1e-10},  // Hugging Face keeps RMS norm and rotary angles in float32, whatever the model.
                      Golden{"llama", DataType::kFloat64, 1e-6}, Golden{"gpt2", DataType::kFloat32, 1e-5},
                      Golden{"llama", DataType::kFloat32, 1e-5}),
    [](const auto& golden) {
        return std::string(golden.param.model) + (golden.param.type == DataType::kFloat64 ? "InFloat64" : "InFloat32");
    });

}  // namespace
}  // namespace headway::backend
