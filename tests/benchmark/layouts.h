#pragma once

#include <cstdint>

#include "scenarios/language/plan.h"
#include "scenarios/timing/durations.h"

/// What the benchmarks run on: durations of the right size for the layout named, no cost model involved.
namespace headway::benchmarks {

/// GPT-3 175B on 1,024 GPUs: tensor 8, pipeline 16, data 8, 192 micro-batches a replica.
scenarios::Plan gpt3_on_1024();
/// Tensor 1, pipeline 4, data 4, 16 micro-batches a replica.
scenarios::Plan small_4_by_4();

/// Forward 10 ms, backward 20 ms, messages 0.2 ms; `different`: every worker up to 10 % slower, each by another factor.
scenarios::StepTimes times_of(const scenarios::Plan& plan, bool different);

}  // namespace headway::benchmarks
