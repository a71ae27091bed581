#include <gtest/gtest.h>

#include "backend/transformer/owned_tensor.h"
#include "tests/backend/transformer/checking_device.h"
#include "tests/backend/transformer/chunk_run.h"

namespace headway::backend {
namespace {

using scenarios::Recompute;

/// Every call of a step, in every way to run one, with the types of a device in bfloat16: gradients in float32.
TEST(ChunkCalls, FitADeviceThatTrainsInBfloat16) {
    for (const bool llama : {false, true}) {
        for (const int tensor : {1, 2}) {
            for (const bool sliced : {false, true}) {
                for (const Recompute recompute : {Recompute::kNone, Recompute::kSelective, Recompute::kFull}) {
                    for (const bool in_halves : {false, true}) {
                        RunSetup setup;
                        setup.model = llama ? small_llama() : small_gpt2();
                        setup.layout.tensor = tensor;
                        setup.layout.sequence_parallel = sliced;
                        setup.layout.recompute = recompute;
                        setup.layers_of_chunk = {1, 1};
                        setup.micro_batches = 2;
                        setup.padded_vocab = 32;
                        setup.split_backward = in_halves;
                        const auto communicator = make_checking_communicator(tensor - 1, tensor);
                        CheckingDevice device;
                        ChunkRun run(device, setup, tensor - 1, tensor > 1 ? communicator.get() : nullptr);
                        run.set_weights(strong_weights(setup.model, setup.padded(), 1));
                        EXPECT_NO_THROW(run.run(random_tokens(setup, 1)));
                        EXPECT_GT(device.calls().at("gemm"), 0);
                    }
                }
            }
        }
    }
}

std::map<std::string, int> calls_of_step(const RunSetup& setup) {
    CheckingDevice device;
    ChunkShape shape;
    shape.model = setup.model;
    shape.layout = setup.layout;
    shape.layers = 1;
    Chunk chunk(device, shape, nullptr);
    const OwnedTensor flow(device, DataType::kBfloat16, shape.tokens(), shape.model.hidden);
    const std::map<std::string, int> before = device.calls();
    chunk.forward(0, flow.tensor, {}, 1.0, flow.tensor);
    chunk.backward(0, flow.tensor, flow.tensor);
    std::map<std::string, int> calls = device.calls();
    for (const auto& [operation, count] : before) calls[operation] -= count;
    std::erase_if(calls, [](const auto& entry) { return entry.second == 0; });
    return calls;
}

/// The passes over memory that a layer costs besides its products. One of copying is of the chunk's input.
TEST(ChunkCalls, AreNoMoreThanALayerNeeds) {
    RunSetup setup;
    setup.model = small_gpt2();
    const std::map<std::string, int> gpt2 = {{"copy", 1},
                                             {"layer_norm", 2},
                                             {"gemm", 12},
                                             {"add_bias", 4},
                                             {"attention", 1},
                                             {"add", 2},
                                             {"gelu", 1},
                                             {"gelu_gradient", 1},
                                             {"bias_gradient", 4},
                                             {"attention_gradient", 1},
                                             {"layer_norm_gradient", 2}};
    EXPECT_EQ(calls_of_step(setup), gpt2);
    setup.model = small_llama();
    const std::map<std::string, int> llama = {{"copy", 1},
                                              {"rms_norm", 2},
                                              {"gemm", 12},
                                              {"rotary", 2},
                                              {"attention", 1},
                                              {"add", 2},
                                              {"swiglu", 1},
                                              {"swiglu_gradient", 1},
                                              {"attention_gradient", 1},
                                              {"rms_norm_gradient", 2}};
    EXPECT_EQ(calls_of_step(setup), llama);
}

/// Full recomputation repeats the forward of a layer but for what no gradient needs: its last matrix.
TEST(ChunkCalls, OfRecomputationAreThoseOfTheForward) {
    RunSetup setup;
    setup.model = small_gpt2();
    setup.layout.recompute = Recompute::kFull;
    const std::map<std::string, int> full = calls_of_step(setup);
    EXPECT_EQ(full.at("gemm"), 12 + 3);
    EXPECT_EQ(full.at("attention"), 2);
    EXPECT_EQ(full.at("layer_norm"), 4);
    setup.layout.recompute = Recompute::kSelective;
    const std::map<std::string, int> selective = calls_of_step(setup);
    EXPECT_EQ(selective.at("gemm"), 12);
    EXPECT_EQ(selective.at("attention"), 2);
}

TEST(ChunkCalls, TakeNoNewMemoryAfterTheFirstStep) {
    for (const bool in_halves : {false, true}) {
        RunSetup setup;
        setup.model = small_gpt2();
        setup.layers_of_chunk = {1, 1};
        setup.micro_batches = 3;
        setup.split_backward = in_halves;
        CheckingDevice device;
        ChunkRun run(device, setup);
        const std::vector<Tokens> tokens = random_tokens(setup, 1);
        run.run(tokens);
        const int after_first = device.fresh_allocations();
        run.run(tokens);
        run.run(tokens);
        EXPECT_EQ(device.fresh_allocations(), after_first);
    }
}

}  // namespace
}  // namespace headway::backend
