#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <string>

#include "backend/host/host_device.h"
#include "tests/backend/transformer/chunk_run.h"

namespace headway::backend {
namespace {

using scenarios::Model;
using scenarios::Norm;
using scenarios::Positions;

struct Family {
    std::string name;
    std::function<Model()> model;
    friend void PrintTo(const Family& family, std::ostream* out) { *out << family.name; }
};

Model changed(Model model, const std::function<void(Model&)>& change) {
    change(model);
    return model;
}

class ChunkGradients : public ::testing::TestWithParam<Family> {};

/// Gradient of the whole model by central differences, at every seventh weight of every block.
TEST_P(ChunkGradients, AreFiniteDifferencesOfTheLoss) {
    const auto device = make_host_device(DataType::kFloat64);
    RunSetup setup;
    setup.model = GetParam().model();
    setup.micro_batches = 2;
    BlockValues weights = strong_weights(setup.model, setup.padded(), 1);
    const std::vector<Tokens> tokens = random_tokens(setup, 2);
    const double all_tokens = 2.0 * setup.micro_batch * setup.model.sequence_length;
    ChunkRun chunk(*device, setup);
    chunk.set_weights(weights);
    const RunResult result = chunk.run(tokens);

    double largest = 0.0, largest_error = 0.0;
    for (auto& [block, values] : weights) {
        const std::vector<double>& gradient = result.gradients.at(block);
        double largest_of_block = 0.0;
        for (std::size_t i = 0; i < values.size(); i += 7) {
            const double step = 1e-5, before = values[i];
            const auto loss_at = [&](double value) {
                values[i] = value;
                chunk.set_weights(weights);
                return chunk.run(tokens).loss / all_tokens;
            };
            const double slope = (loss_at(before + step) - loss_at(before - step)) / (2.0 * step);
            values[i] = before;
            largest_error = std::max(largest_error, std::abs(slope - gradient[i]));
            largest_of_block = std::max(largest_of_block, std::abs(gradient[i]));
        }
        EXPECT_GT(largest_of_block, 1e-4) << "block " << static_cast<int>(block.first);
        largest = std::max(largest, largest_of_block);
    }
    EXPECT_LT(largest_error / largest, 1e-8);
}

INSTANTIATE_TEST_SUITE_P(
    Families, ChunkGradients,
    ::testing::Values(
        Family{"Gpt2", small_gpt2}, Family{"Llama", small_llama},
        Family{"Gpt2Untied", [] { return changed(small_gpt2(), [](Model& m) { m.tied_embedding = false; }); }},
        Family{"LlamaTiedWithBiases",
               [] { return changed(small_llama(), [](Model& m) { m.tied_embedding = m.biases = true; }); }},
        Family{"RotaryLayerNormOneKeyHead",
               [] {
                   return changed(small_gpt2(), [](Model& m) {
                       m.positions = Positions::kRotary;
                       m.kv_heads = 1;
                       m.biases = false;
                   });
               }},
        Family{"LearnedRmsNormWideHeads",
               [] {
                   return changed(small_llama(), [](Model& m) {
                       m.positions = Positions::kLearned;
                       m.head_dim = 6;
                   });
               }}),
    [](const auto& family) { return family.param.name; });

}  // namespace
}  // namespace headway::backend
