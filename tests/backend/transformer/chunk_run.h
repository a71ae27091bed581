#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "backend/communicator/communicator.h"
#include "backend/device/device.h"
#include "backend/transformer/chunk.h"
#include "scenarios/language/job.h"
#include "scenarios/language/plan.h"

/// Small models, and one rank's run of them through a chain of chunks.
namespace headway::backend {

/// Two layers, 4 heads, 13 tokens of vocabulary, 6 tokens a sequence.
scenarios::Model small_gpt2();
/// The same with rotary positions, RMS norm, SwiGLU, 2 key/value heads, without biases, untied.
scenarios::Model small_llama();

/// Values of blocks, whole and in block order.
using BlockValues = std::map<std::pair<scenarios::BlockKind, int>, std::vector<double>>;

/// Weights large enough to reach every term of every gradient; padding rows are 0.
BlockValues strong_weights(const scenarios::Model& model, std::int64_t padded_vocab, std::uint64_t seed);

struct RunSetup {
    scenarios::Model model;
    scenarios::Layout layout;
    std::vector<int> layers_of_chunk;  ///< empty: all in one
    int micro_batch = 2;
    int micro_batches = 1;  ///< all forwards, then all backwards
    bool split_backward = false;
    std::int64_t padded_vocab = 0;  ///< 0: the vocabulary
    std::int64_t padded() const { return padded_vocab > 0 ? padded_vocab : model.vocab; }
};

/// Tokens of one micro-batch, and their targets.
struct Tokens {
    std::vector<std::int32_t> inputs;
    std::vector<std::int32_t> targets;
};
std::vector<Tokens> random_tokens(const RunSetup& setup, std::uint64_t seed);

struct RunResult {
    double loss = 0.0;      ///< summed over tokens
    BlockValues gradients;  ///< of this rank's parts, in block order; of the mean loss of all tokens
    std::string bytes() const;
    static RunResult from_bytes(const std::string& bytes);
};

class ChunkRun {
  public:
    ChunkRun(Device& device, const RunSetup& setup, int tensor_rank = 0, Communicator* tensor = nullptr);

    void set_weights(const BlockValues& whole);
    /// Loss and gradients, which are zero before.
    RunResult run(const std::vector<Tokens>& tokens);
    Chunk& chunk(std::size_t number) { return *chunks_[number]; }
    std::size_t chunks() const { return chunks_.size(); }

  private:
    BlockValues take_gradients();

    Device& device_;
    RunSetup setup_;
    int tensor_rank_;
    std::vector<std::unique_ptr<Chunk>> chunks_;
};

}  // namespace headway::backend
