#include "sim/run/measurement.h"

#include <algorithm>
#include <cmath>

#include "scenarios/costs/collective.h"
#include "scenarios/costs/placement.h"

namespace headway::sim {

MeasurementAverage::MeasurementAverage(const scenarios::Plan& plan) : plan_(plan) {
    const std::size_t ranks = plan.gpu_of_rank.size();
    compute_ns_.assign(ranks, 0.0);
    exposed_ns_.assign(ranks, 0.0);
    idle_ns_.assign(ranks, 0.0);
}

void MeasurementAverage::add(const IterationTimes& times, const std::vector<double>& pace, int iterations) {
    count_ += iterations;
    const double times_over = iterations;
    const scenarios::Layout& layout = plan_.layout;
    for (int replica = 0; replica < layout.data; ++replica) {
        for (int stage = 0; stage < layout.pipeline; ++stage) {
            const scenarios::WorkerTimes& worker =
                times.workers[static_cast<std::size_t>(plan_.worker(replica, stage))];
            double slowest = 1e9;
            for (int member = 0; member < layout.ranks_per_worker(); ++member)
                slowest =
                    std::min(slowest, pace[static_cast<std::size_t>(plan_.gpu_of_worker(replica, stage, member))]);
            for (int member = 0; member < layout.ranks_per_worker(); ++member) {
                const auto rank = static_cast<std::size_t>(
                    plan_.rank(member % layout.tensor, member / layout.tensor, replica, stage));
                const double own = pace[static_cast<std::size_t>(plan_.gpu_of_rank[rank])];
                const double worked = static_cast<double>(worker.compute.ns()) * slowest / own;
                compute_ns_[rank] += times_over * worked;
                exposed_ns_[rank] +=
                    times_over * (static_cast<double>((worker.compute + worker.data_exposed).ns()) - worked);
                idle_ns_[rank] += times_over * static_cast<double>(worker.idle.ns());
            }
        }
    }
}

std::vector<policies::RankMeasurement> MeasurementAverage::ranks(
    const Fleet& fleet, const Environment& environment, const std::vector<double>& busy,
    const std::vector<std::int64_t>& memory_of_worker) const {
    std::vector<policies::RankMeasurement> result;
    result.reserve(plan_.gpu_of_rank.size());
    const double iterations = std::max(1, count_);
    const auto mean = [&](double sum) { return Duration::nanoseconds(std::llround(sum / iterations)); };
    for (std::size_t rank = 0; rank < plan_.gpu_of_rank.size(); ++rank) {
        policies::RankMeasurement m;
        const int group = static_cast<int>(rank) / plan_.layout.ranks_per_worker();
        m.gpu = plan_.gpu_of_rank[rank];
        const auto gpu = static_cast<std::size_t>(m.gpu);
        m.compute = mean(compute_ns_[rank]);
        m.exposed_communication = mean(exposed_ns_[rank]);
        m.idle = mean(idle_ns_[rank]);
        m.temperature_c = fleet.temperature_c(m.gpu, environment.surroundings[gpu]);
        m.sm_clock_mhz = fleet.clock_mhz(m.gpu, environment.surroundings[gpu]);
        m.power_w = fleet.power_w(m.gpu, environment.surroundings[gpu], busy[gpu]);
        m.throttle_reasons = fleet.throttle_reasons(m.gpu, environment.surroundings[gpu]);
        m.memory_used_bytes = memory_of_worker[static_cast<std::size_t>(
            plan_.worker(group % plan_.layout.data, group / plan_.layout.data))];
        result.push_back(m);
    }
    return result;
}

std::vector<policies::GroupMeasurement> MeasurementAverage::groups(const PlanModel& model, const ClusterState& state,
                                                                   const std::vector<double>& tensor_bus) {
    using Kind = policies::GroupMeasurement::Kind;
    std::vector<policies::GroupMeasurement> result;
    const scenarios::StepTimes times = model.times_of(state);
    const scenarios::Layout& layout = model.plan().layout;
    const int v = layout.virtual_pipeline;
    for (std::size_t worker = 0; worker < tensor_bus.size(); ++worker)
        result.push_back({Kind::kTensor, static_cast<int>(worker),
                          tensor_bus[worker] * model.worker_fabric(state, static_cast<int>(worker))});
    const double message = static_cast<double>(model.costs().activation.bytes_per_rank.count());
    for (int worker = 0; layout.pipeline > 1 && worker < model.plan().workers(); ++worker) {
        const auto cell = static_cast<std::size_t>(worker * v);
        const std::int64_t ns =
            times.send_activation.empty()
                ? 0
                : times.send_activation[cell] + (times.delay_activation.empty() ? 0 : times.delay_activation[cell]);
        if (ns > 0) result.push_back({Kind::kPipeline, worker, message / (static_cast<double>(ns) * 1e-9)});
    }
    const double ranks = static_cast<double>(layout.data) * layout.context;
    for (int stage = 0; ranks > 1 && stage < layout.pipeline; ++stage) {
        double bytes = 0.0;
        std::int64_t ns = 0;
        for (int chunk = 0; chunk < v; ++chunk) {
            const scenarios::StageCosts& costs = model.costs().stages[static_cast<std::size_t>(stage)];
            if (costs.reduce_bytes_per_rank.empty() || times.reduce_gradients.empty()) continue;
            bytes += static_cast<double>(costs.reduce_bytes_per_rank[static_cast<std::size_t>(chunk)].count());
            ns += times.reduce_gradients[static_cast<std::size_t>(stage * v + chunk)];
        }
        // Bus bandwidth as nccl-tests counts it.
        const double passes = layout.distributed_optimizer ? 1.0 : 2.0;
        if (ns > 0)
            result.push_back(
                {Kind::kData, stage, bytes * passes * (ranks - 1.0) / ranks / (static_cast<double>(ns) * 1e-9)});
    }
    return result;
}

std::vector<double> healthy_tensor_bus(const scenarios::Job& job, const scenarios::Cluster& cluster,
                                       const scenarios::Plan& plan) {
    const scenarios::Layout& layout = plan.layout;
    if (layout.tensor < 2) return {};
    const scenarios::GroupShape shape = scenarios::Placement(plan, cluster).tensor();
    const double values =
        static_cast<double>(job.model.sequence_length) / layout.context * job.micro_batch * job.model.hidden;
    const scenarios::Bytes message(
        std::llround(values * static_cast<double>(scenarios::bytes_of_element(job.precision))));
    const double bus_bytes = static_cast<double>(message.count()) * 2.0 * (layout.tensor - 1.0) / layout.tensor;
    std::vector<double> result;
    for (int worker = 0; worker < plan.workers(); ++worker) {
        const int gpu = plan.gpu_of_worker(worker / layout.pipeline, worker % layout.pipeline, 0);
        const Duration time = scenarios::collective_time(scenarios::Collective::kAllReduce, message, shape,
                                                         cluster.node(cluster.node_of(gpu)));
        result.push_back(bus_bytes / time.s());
    }
    return result;
}

}  // namespace headway::sim
