#pragma once

#include <cstdint>
#include <vector>

#include "scenarios/language/plan.h"

/// Programs: what one rank does in one iteration, in order. The simulator, the contention-free evaluator and the real backend
/// execute the same programs; this is the only schedule generator.
namespace headway::scenarios {

enum class Op : std::uint8_t {
  kForward,             ///< of `micro_batch` through `chunk`
  kBackward,            ///< input and weight gradient together
  kBackwardInput,       ///< zero-bubble: input gradient only (B)
  kBackwardWeight,      ///< zero-bubble: weight gradient only (W)
  kSendActivation,      ///< to the next virtual stage
  kReceiveActivation,
  kSendGradient,        ///< to the previous virtual stage
  kReceiveGradient,
  kReduceGradients,     ///< of `chunk` over the replicas (all-reduce, or reduce-scatter with a distributed optimizer)
  kReduceTiedEmbedding, ///< first and last stage add up the gradient of the shared embedding
  kOptimizerStep,       ///< with the global gradient norm
  kGatherParameters,    ///< distributed optimizer: all-gather of updated parameters over the replicas
};

struct Instruction {
  Op op = Op::kForward;
  std::int16_t chunk = 0;        ///< of this stage, 0..virtual_pipeline-1
  std::int32_t micro_batch = 0;  ///< of this replica; 0 where it has no meaning
  bool operator==(const Instruction&) const = default;
};

using Program = std::vector<Instruction>;

/// Program of every rank of `stage` in a replica that trains `micro_batches` micro-batches (ranks of one worker run the same
/// program). Sources: GPipe (Huang et al. 2019); 1F1B (Narayanan et al. 2019); interleaved 1F1B (Narayanan et al. 2021);
/// zero-bubble ZB-H1 (Qi et al. 2023). Throws std::invalid_argument when the schedule cannot be built
/// (interleaving needs micro_batches to be a multiple of the stages).
Program make_program(const Layout& layout, bool tied_embedding, int stage, int micro_batches);

}  // namespace headway::scenarios
