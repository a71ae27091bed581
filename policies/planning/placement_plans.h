#pragma once

#include "policies/planning/proposal.h"

namespace headway::policies {

/// Other places for slow GPUs, as few moves as that takes: slow GPUs of a node in one worker, slow workers in one
/// replica (which then gets fewer layers there and fewer micro-batches), idle GPUs in the place of slow ones, and a
/// slow worker where its stage has least to do. Tensor groups stay within their nodes. Offered where that is faster
/// than everything offered before. `layout` is the first candidate's, under the proposal's conditions.
void offer_placements(Proposal& proposal, LayoutPredictor& layout);

/// Fewer GPUs (without the slowest replica, where that is faster than everything offered before) and more (further
/// replicas on GPUs that the plan leaves idle).
void offer_other_sizes(Proposal& proposal, LayoutPredictor& layout);

}  // namespace headway::policies
