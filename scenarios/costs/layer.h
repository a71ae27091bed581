#pragma once

#include "scenarios/costs/collective.h"
#include "scenarios/costs/work_seconds.h"
#include "scenarios/language/cluster.h"
#include "scenarios/language/job.h"
#include "scenarios/language/plan.h"

/// One transformer layer, the embedding and the head of one micro-batch on one rank, kernel by kernel.
namespace headway::scenarios {

/// What a rank computes on, and with whom.
struct RankContext {
    const Job& job;
    const Layout& layout;
    const Node& node;    ///< its GPU, fabric and NICs
    GroupShape tensor;   ///< its tensor group
    GroupShape context;  ///< its context group

    double tokens() const { return static_cast<double>(job.micro_batch) * job.model.sequence_length / layout.context; }
    /// Tokens of the norms and residuals, which sequence parallelism splits over the tensor group.
    double tokens_outside_blocks() const { return layout.sequence_parallel ? tokens() / layout.tensor : tokens(); }
};

/// GPU time by what limits it, and the time the host needs to issue it.
struct LayerCosts {
    WorkSeconds forward;
    WorkSeconds recompute;  ///< before the backward: the forward again, its attention, or nothing
    WorkSeconds backward_input;
    WorkSeconds backward_weight;
    double host_forward_s = 0.0;
    double host_backward_s = 0.0;  ///< with recomputation
    WorkSeconds backward() const { return recompute + backward_input + backward_weight; }
};

/// GEMMs of queries/keys/values, projection and MLP (Megatron's split: Shoeybi et al. 2019), attention core, and
/// streaming kernels. These move, in bytes a token and element of the width they work on, 2 bytes an element:
///   norm 4 forward, 10 backward; bias + dropout + residual 6 (7 with dropout), 6 (11); GELU 4, 6 (gated 6, 10.2);
///   head layout 4 each way for the widths of qkv and twice the queries; bias gradients 2;
///   softmax 4, 6 a score (22, 12 where the fused kernel cannot run: batch x heads of a rank no multiple of 4, or more
///   than 2,048 keys, as in Megatron-LM's fused_softmax.py), attention dropout 5, 5.
/// Tensor parallelism: an all-reduce per block and direction, or all-gather and reduce-scatter with sequence
/// parallelism (Korthikanti et al. 2022); all-gathers carry fp8 where the layers do. Context parallelism: keys and
/// values go round a ring.
LayerCosts layer_costs(const RankContext& rank);

struct EdgeCosts {
    WorkSeconds forward;
    WorkSeconds backward_input;
    WorkSeconds backward_weight;
    WorkSeconds backward() const { return backward_input + backward_weight; }
};

EdgeCosts embedding_costs(const RankContext& rank);
/// Final norm, logits, cross entropy.
EdgeCosts head_costs(const RankContext& rank);

}  // namespace headway::scenarios
