#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "scenarios/language/plan.h"

/// Programs: what one rank does in one iteration, in order. The simulator, the contention-free evaluator and the real
/// backend execute the same programs; this is the only schedule generator.
namespace headway::scenarios {

enum class Op : std::uint8_t {
    kForward,            ///< of `micro_batch` through `chunk`
    kBackward,           ///< input and weight gradient together
    kBackwardInput,      ///< zero-bubble: input gradient only (B)
    kBackwardWeight,     ///< zero-bubble: weight gradient only (W)
    kSendActivation,     ///< of `micro_batch`, output of `chunk`, to the next virtual stage
    kReceiveActivation,  ///< input of `chunk`, from the previous virtual stage
    kSendGradient,       ///< gradient of the input of `chunk`, to the previous virtual stage
    kReceiveGradient,    ///< gradient of the output of `chunk`, from the next virtual stage
    kReduceGradients,    ///< of `chunk` over the replicas (all-reduce, or reduce-scatter with a distributed optimizer)
    kReduceTiedEmbedding,  ///< first and last stage of a replica add up the gradient of the shared embedding
    kOptimizerStep,        ///< begins with the global gradient norm, so it waits for every rank's gradients
    kGatherParameters,     ///< of `chunk`, distributed optimizer: all-gather of updated parameters over the replicas
};

/// "forward", "send_activation", ...: for traces and messages.
const char* name_of(Op op);
constexpr bool is_compute(Op op) {
    return op <= Op::kBackwardWeight;
}
constexpr bool is_message(Op op) {
    return op >= Op::kSendActivation && op <= Op::kReceiveGradient;
}

struct Instruction {
    Op op = Op::kForward;
    std::int16_t chunk = 0;        ///< of this stage, 0..virtual_pipeline-1
    bool batched = false;          ///< a message issued in one batch with the message before it
    std::int32_t micro_batch = 0;  ///< of this replica; 0 where it has no meaning
    bool operator==(const Instruction&) const = default;
};

using Program = std::vector<Instruction>;

/// Program of every rank of `stage` in a replica that trains `micro_batches` micro-batches (ranks of one worker run the
/// same program).
///
/// Messages. Without `overlap_pipeline_comm` GPipe, 1F1B and interleaved 1F1B exchange as Megatron-LM does: a batch of
/// sends and receives blocks until all of them are through (send_forward_recv_backward: one batch with one neighbour;
/// interleaved: one batch with both neighbours, after a forward and the backward that follows it). Zero-bubble posts
/// single messages, which do not block, in an order that is the same at both ends of a link. With
/// `overlap_pipeline_comm` every send is posted when its data is there, and every receive stands right before the
/// operation that needs it. Executed in this way no program deadlocks.
///
/// Gradient reduction and parameter gathering are in the program when the layout has more than one data or context
/// rank. With `overlap_grad_reduce` a chunk's reduction stands right after the last backward of the chunk and runs
/// beside what follows, otherwise all stand at the end, before the tied embedding, with a distributed optimizer after
/// it (Megatron-LM). With `overlap_param_gather` gathering stands at the start, for the parameters of the previous
/// step, and runs beside the first forwards; otherwise it follows the optimizer step.
///
/// Sources: GPipe (Huang et al. 2019); 1F1B (Narayanan et al. 2019); interleaved 1F1B (Narayanan et al. 2021, in the
/// order of Megatron-LM); zero-bubble (Qi et al. 2023): with `zero_bubble_memory` 1 ZB-H1 (weight
/// gradients trail by the stage's number), with 2 the nearly bubble-free variant that holds up to 2p micro-batches.
/// Throws std::invalid_argument when the schedule cannot be built: interleaving needs more than one stage and a number
/// of micro-batches that is a multiple of the stages; the other schedules have one chunk a stage.
Program make_program(const Layout& layout, bool tied_embedding, int stage, int micro_batches);
/// Programs of all stages, which costs about as much as one of them.
std::vector<Program> make_programs(const Layout& layout, bool tied_embedding, int micro_batches);

/// The same without messages, reductions and optimizer: forwards and backwards in the order of the schedule.
Program compute_order(const Layout& layout, int stage, int micro_batches);

/// Forwards, over all chunks, before the schedule starts to alternate forwards and backwards.
int warmup_forwards(const Layout& layout, int stage, int micro_batches);

/// Micro-batches whose activations `stage` holds, per chunk, at the moment when it holds most: from the start of a
/// forward to the end of its backward (zero-bubble: of its weight gradient). `weights` [virtual_pipeline] says how much
/// one micro-batch of each chunk counts (bytes, layers); empty: all the same. The first such moment is taken.
std::vector<int> in_flight_at_peak(const Layout& layout, int stage, int micro_batches,
                                   std::span<const double> weights = {});

}  // namespace headway::scenarios
