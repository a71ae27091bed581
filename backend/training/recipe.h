#pragma once

#include <cstdint>
#include <vector>

#include "scenarios/language/job.h"
#include "scenarios/transfer/ownership.h"

/// How the optimizer trains: what follows from scenarios::Training.
namespace headway::backend {

/// Rate of optimizer step `step`, counted from 0: (step + 1) / warmup of the peak while it warms up, then half a cosine
/// down to the final rate at `decay_iterations` (Loshchilov & Hutter 2017), which stays. No decay: the peak stays.
double learning_rate(const scenarios::Training& training, std::int64_t step);

/// Factor of all gradients so that their norm is at most `clip` (Pascanu et al. 2013); 1 where it is already, or where
/// `clip` is 0.
double clipping_scale(double clip, double norm);

/// Part of a block in block order, all of whose elements are matrices' (decayed) or all norms' and biases'.
struct DecayRun {
    scenarios::Interval elements;
    bool decayed = false;
    bool operator==(const DecayRun&) const = default;
};

/// Elements of a block in such runs, in order.
std::vector<DecayRun> decay_runs(const scenarios::Model& model, scenarios::BlockKind kind,
                                 const scenarios::Interval& elements);

}  // namespace headway::backend
