#include "sim/run/time_shares.h"

#include <cmath>

namespace headway::sim {

std::int64_t sum_of(const scenarios::TimeShares& s) {
    return s.compute_ns + s.bubble_ns + s.tensor_ns + s.pipeline_ns + s.data_ns + s.straggling_ns + s.recovery_ns;
}

scenarios::TimeShares shares_of_healthy(PlanModel& model, const IterationTimes& times) {
    const scenarios::HealthyShares healthy = model.healthy_shares();
    scenarios::TimeShares shares;
    shares.compute_ns = healthy.compute_ns;
    shares.bubble_ns = healthy.bubble_ns;
    shares.tensor_ns = healthy.tensor_ns;
    shares.pipeline_ns = healthy.pipeline_ns;
    shares.data_ns = healthy.data_ns;
    shares.data_ns += times.duration.ns() - sum_of(shares);
    return shares;
}

scenarios::TimeShares shares_of(const scenarios::TimeShares& healthy, std::int64_t duration_ns) {
    const std::int64_t usual = sum_of(healthy);
    scenarios::TimeShares shares = healthy;
    if (duration_ns >= usual) {
        shares.straggling_ns = duration_ns - usual;
        return shares;
    }
    const double ratio = static_cast<double>(duration_ns) / static_cast<double>(usual);
    for (std::int64_t* part : {&shares.bubble_ns, &shares.tensor_ns, &shares.pipeline_ns, &shares.data_ns})
        *part = std::llround(static_cast<double>(*part) * ratio);
    shares.compute_ns = 0;
    shares.compute_ns = duration_ns - sum_of(shares);
    return shares;
}

}  // namespace headway::sim
