#pragma once

#include <optional>
#include <vector>

#include "backend/communicator/communicator.h"
#include "backend/device/device.h"
#include "scenarios/costs/collective.h"
#include "scenarios/costs/kernel.h"
#include "scenarios/language/job.h"
#include "scenarios/language/plan.h"
#include "scenarios/language/units.h"

/// What `headway calibrate` measures: kernels, training steps of small models, and collectives. Each time is the lower
/// quartile of several rounds.
namespace headway::backend {

struct GemmTiming {
    scenarios::GemmShape shape;
    scenarios::Duration time;
};
struct AttentionTiming {
    AttentionShape shape;
    scenarios::Duration forward;
    scenarios::Duration backward;
};
/// A copy within the device's memory, too large for caches.
struct CopyTiming {
    scenarios::Bytes moved;  ///< read and written
    scenarios::Duration time;
};
struct KernelTimings {
    std::vector<GemmTiming> gemms;
    std::vector<AttentionTiming> attentions;
    std::vector<CopyTiming> copies;
};

/// One rank that trains a whole model.
struct StepTiming {
    scenarios::Job job;
    scenarios::Duration forward;   ///< of one micro-batch
    scenarios::Duration backward;  ///< the same
    scenarios::Duration optimizer;
};

/// nccl-tests' counting: `message` is the buffer of a rank (reduce-scatter: its input, all-gather: its output).
struct CollectiveTiming {
    scenarios::Collective collective = scenarios::Collective::kAllReduce;
    scenarios::Bytes message;
    int ranks = 2;
    scenarios::Duration time;
};

/// Shapes as small transformers and large ones have them. `large`: for devices that need them to be busy.
KernelTimings time_kernels(Device& device, bool large);
/// Process 0 trains `job` alone for a few steps; the others, who call it too, get nothing.
std::optional<StepTiming> time_step(Device& device, CommunicatorMaker& communicators, const scenarios::Job& job,
                                    int process);
/// Jobs that tell the constants of a stack apart: widths, lengths, vocabularies and depths vary.
std::vector<scenarios::Job> calibration_jobs(bool large, scenarios::Precision precision);
/// Process 0 trains everything alone.
scenarios::Plan plan_of_one_rank(const scenarios::Job& job);
/// Every process calls it; groups of 2, 4, ... processes up to all of them. Times are the slowest member's; the same on
/// every process.
std::vector<CollectiveTiming> time_collectives(Device& device, CommunicatorMaker& communicators, Control& control);

}  // namespace headway::backend
