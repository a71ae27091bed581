#pragma once

#include <span>

#include "scenarios/language/plan.h"
#include "scenarios/language/units.h"
#include "scenarios/timing/durations.h"

namespace headway::policies {

/// Less than or equal to what the evaluator says for the same `times` (without factors of single micro-batches, which
/// are not looked at), at a thousandth of its cost: nothing is compiled. What a stage computes, its messages where they
/// hold it up, the way of the first micro-batch to it and of the last one back from it, gradients, optimizer and
/// parameters after that. Exact for equal stages without messages (GPipe and 1F1B: (m + p - 1) (f + b); interleaved:
/// (m + (p - 1) / v) (f + b), Narayanan et al. 2021, section 2.2). `micro_batches` [data].
scenarios::Duration iteration_lower_bound(const scenarios::Layout& layout, bool tied_embedding,
                                          std::span<const int> micro_batches, const scenarios::StepTimes& times);

}  // namespace headway::policies
