#pragma once

#include <vector>

#include "scenarios/costs/iteration_costs.h"

/// What measured times of a job say about its GPUs. The times of a worker over what the cost model says of it under the
/// measured plan are scales of its GPUs; under any other plan an operation takes what the cost model says times the
/// scale of its GPU. So the measured plan comes out as measured, and how work grows with layers is the cost model's.
namespace headway::scenarios {

struct MeasuredScales {
    /// [cluster GPUs] each worker as it was measured. GPUs that were not: as healthy.
    std::vector<GpuScale> actual;
    /// [cluster GPUs] each stage at the median of its replicas' workers, GPUs that were not measured at the median of
    /// all: how the job would have gone without its slow workers (the what-if of Lin et al., OSDI 2025).
    std::vector<GpuScale> healthy;
};

/// A kind of message that no worker has a time of is free (scale 0); where only some have, the others are taken to be
/// like their median. Empty without Job::measured. Throws std::invalid_argument where the measured plan fits neither
/// job nor cluster.
MeasuredScales measured_scales(const Job& job, const Cluster& cluster);

}  // namespace headway::scenarios
