#pragma once

#include <functional>
#include <span>
#include <vector>

#include "backend/calibration/timings.h"
#include "scenarios/language/hardware.h"
#include "scenarios/language/stack.h"

/// From timings to the constants of the cost model (scenarios/costs). Every fit minimises the sum of the absolute
/// logarithms of predicted over measured time.
namespace headway::backend {

/// How far predictions with the fitted constants are from the timings: |predicted / measured - 1|.
struct FitError {
    double mean = 0.0;
    double worst = 0.0;
    int count = 0;
};

/// `peak_known`: the base states the device's peaks (a data sheet); otherwise the fastest GEMM is the peak, and the
/// fastest copy the memory bandwidth. Fits gemm_efficiency, gemm_depth_lost, the attention efficiencies and
/// memory_efficiency. Throws std::invalid_argument for no timings.
scenarios::GpuType fit_gpu(const scenarios::GpuType& base, bool peak_known, scenarios::Precision precision,
                           const KernelTimings& timings, scenarios::Duration kernel_gap);

/// Fits kernel_gap, memory_traffic, loss_traffic, optimizer_traffic and host_step.
scenarios::SoftwareStack fit_stack(const scenarios::SoftwareStack& base, const scenarios::GpuType& gpu,
                                   const std::vector<StepTiming>& timings);

/// Fits bandwidth (with efficiency 1), start and hop, the same for all protocols, to the collectives among the timings.
scenarios::Fabric fit_fabric(const scenarios::Fabric& base, const std::vector<CollectiveTiming>& timings);

/// What a message takes longer than `fabric` says: the median over the timings of exchanges.
scenarios::Duration fit_host_message(const scenarios::Fabric& fabric, const std::vector<CollectiveTiming>& timings);

FitError gemm_error(const scenarios::GpuType& gpu, scenarios::Precision precision, const KernelTimings& timings,
                    scenarios::Duration kernel_gap);
FitError step_error(const scenarios::SoftwareStack& stack, const scenarios::GpuType& gpu,
                    const std::vector<StepTiming>& timings);
FitError fabric_error(const scenarios::Fabric& fabric, const std::vector<CollectiveTiming>& timings);

/// Values within [low, high] (positive), the smallest of a function of them by searching each in turn on a logarithmic
/// scale. Deterministic; a local minimum.
struct SearchedValue {
    double low = 1.0;
    double high = 1.0;
    double start = 1.0;
};
std::vector<double> smallest_at(const std::vector<SearchedValue>& values,
                                const std::function<double(std::span<const double>)>& function);

}  // namespace headway::backend
