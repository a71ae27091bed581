#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>

#include "backend/backend_error.h"
#include "backend/host/host_device.h"
#include "tests/backend/device/conformance.h"
#include "tests/backend/transformer/chunk_run.h"

namespace headway::backend {
namespace {

/// Nearest number that bfloat16 has, so that every device begins with the same weights.
double as_bfloat16(double value) {
    const auto bits = std::bit_cast<std::uint32_t>(static_cast<float>(value));
    return std::bit_cast<float>((bits + 0x8000u) & 0xffff0000u);
}

/// A whole step on every device, against the same step in float64 on the host.
class ChunkConformance : public ::testing::TestWithParam<tests::TestDevice> {};

TEST_P(ChunkConformance, LossAndGradientsAreThoseOfFloat64) {
    std::unique_ptr<Device> device;
    try {
        device = GetParam().make();
    } catch (const BackendError& error) {
        GTEST_SKIP() << error.what();
    }
    const DataType type = device->working_type();
    // Of a block, in norm. In bfloat16 some twenty roundings of up to 1/512 follow each other, and weights are strong.
    const double tolerance = type == DataType::kFloat64 ? 1e-12 : type == DataType::kFloat32 ? 1e-5 : 5e-2;
    for (const bool llama : {false, true}) {
        RunSetup setup;
        setup.model = llama ? small_llama() : small_gpt2();
        setup.model.hidden = 32;
        setup.model.head_dim = 8;
        setup.model.sequence_length = 16;
        setup.micro_batches = 2;
        setup.padded_vocab = 16;
        BlockValues weights = strong_weights(setup.model, setup.padded(), 5);
        for (auto& [block, values] : weights) std::transform(values.begin(), values.end(), values.begin(), as_bfloat16);
        const std::vector<Tokens> tokens = random_tokens(setup, 6);
        const auto run_on = [&](Device& on) {
            ChunkRun run(on, setup);
            run.set_weights(weights);
            return run.run(tokens);
        };
        const auto reference_device = make_host_device(DataType::kFloat64);
        const RunResult result = run_on(*device), reference = run_on(*reference_device);
        EXPECT_NEAR(result.loss / reference.loss, 1.0, tolerance);
        for (const auto& [block, expected] : reference.gradients) {
            const std::vector<double>& gradient = result.gradients.at(block);
            ASSERT_EQ(gradient.size(), expected.size());
            double errors = 0.0, squares = 0.0;
            for (std::size_t i = 0; i < expected.size(); ++i) {
                errors += (gradient[i] - expected[i]) * (gradient[i] - expected[i]);
                squares += expected[i] * expected[i];
            }
            EXPECT_LE(std::sqrt(errors / squares), tolerance)
                << "block " << static_cast<int>(block.first) << " of layer " << block.second
                << (llama ? ", Llama" : ", GPT-2");
        }
    }
}

INSTANTIATE_TEST_SUITE_P(Devices, ChunkConformance, ::testing::ValuesIn(tests::test_devices()),
                         [](const auto& device) { return device.param.name; });

}  // namespace
}  // namespace headway::backend
