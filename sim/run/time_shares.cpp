#include "sim/run/time_shares.h"

#include <algorithm>
#include <cmath>

namespace headway::sim {

std::int64_t sum_of(const scenarios::TimeShares& s) {
    return s.compute_ns + s.bubble_ns + s.tensor_ns + s.pipeline_ns + s.data_ns + s.straggling_ns + s.recovery_ns;
}

scenarios::TimeShares healthy_shares(PlanModel& model, const ClusterState& healthy, const IterationTimes& times) {
    const scenarios::Plan& plan = model.plan();
    const scenarios::Layout& layout = plan.layout;
    double compute = 0.0, data = 0.0, idle = 0.0, tensor = 0.0;
    for (const scenarios::WorkerTimes& worker : times.workers) {
        compute += static_cast<double>(worker.compute.ns());
        data += static_cast<double>(worker.data_exposed.ns());
        idle += static_cast<double>(worker.idle.ns());
    }
    const scenarios::IterationCosts& costs = model.costs();
    for (int replica = 0; replica < layout.data; ++replica) {
        for (int stage = 0; stage < layout.pipeline; ++stage) {
            const int type = model.gpu_type(replica, stage);
            for (int chunk = 0; chunk < layout.virtual_pipeline; ++chunk) {
                const auto& work = costs.virtual_stages[static_cast<std::size_t>(type)]
                                                       [static_cast<std::size_t>(chunk * layout.pipeline + stage)];
                tensor += static_cast<double>((work.forward.communication + work.backward.communication).ns()) *
                          plan.micro_batches_of_replica[static_cast<std::size_t>(replica)];
            }
        }
    }
    const double workers = plan.workers();
    compute /= workers;
    data /= workers;
    idle /= workers;
    tensor = std::min(tensor / workers, compute);

    scenarios::StepTimes silent = model.times_of(healthy);
    for (auto* sends : {&silent.send_activation, &silent.send_gradient}) std::fill(sends->begin(), sends->end(), 0);
    const scenarios::Evaluation without = model.evaluate(silent);
    double bubble = 0.0;
    for (const scenarios::WorkerTimes& worker : without.workers) bubble += static_cast<double>(worker.idle.ns());
    const double contention = static_cast<double>(std::max<std::int64_t>(0, times.contention.ns()));
    const double waiting = std::max(0.0, idle - contention);
    bubble = std::min(bubble / workers, waiting);

    scenarios::TimeShares shares;
    shares.tensor_ns = std::llround(tensor);
    shares.bubble_ns = std::llround(bubble);
    shares.pipeline_ns = std::llround(waiting - bubble);
    shares.data_ns = std::llround(data + contention);
    shares.compute_ns = times.duration.ns() - sum_of(shares);
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
