#include "backend/calibration/fit.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <utility>

#include "scenarios/costs/iteration_costs.h"

namespace headway::backend {

namespace {

using scenarios::Duration;

/// Predicted and measured times, in seconds.
using Pairs = std::vector<std::pair<double, double>>;

/// Of predicted over measured. Far ones count like near ones: a timing that something else on the machine spoiled does
/// not bend the fit.
double absolute_logarithms(const Pairs& pairs) {
    double sum = 0.0;
    for (const auto& [predicted, measured] : pairs) sum += std::abs(std::log(predicted / measured));
    return sum;
}

FitError error_of(const Pairs& pairs) {
    FitError error;
    for (const auto& [predicted, measured] : pairs) {
        const double off = std::abs(predicted / measured - 1.0);
        error.mean += off;
        error.worst = std::max(error.worst, off);
        ++error.count;
    }
    if (error.count > 0) error.mean /= error.count;
    return error;
}

Pairs gemm_pairs(const scenarios::GpuType& gpu, scenarios::Precision precision, const KernelTimings& timings,
                 Duration gap) {
    const scenarios::GemmPace pace = scenarios::working_pace(gpu, precision);
    Pairs pairs;
    for (const GemmTiming& timing : timings.gemms)
        pairs.emplace_back(scenarios::gemm_work(timing.shape, gpu, pace, gap).total(), timing.time.s());
    return pairs;
}

/// Geometric mean of the share of the peak that attention reached.
template <class Flops, class Time>
double attention_share(const KernelTimings& timings, double peak, const Flops& flops, const Time& time) {
    double sum = 0.0;
    for (const AttentionTiming& timing : timings.attentions)
        sum += std::log(flops(timing.shape) / (peak * time(timing).s()));
    return std::min(1.0, std::exp(sum / static_cast<double>(timings.attentions.size())));
}

double scores_of(const AttentionShape& shape) {
    return static_cast<double>(shape.batch) * static_cast<double>(shape.heads) * static_cast<double>(shape.sequence) *
           static_cast<double>(shape.sequence);
}

scenarios::Cluster one_gpu(const scenarios::GpuType& gpu) {
    scenarios::NodeGroup group;
    group.node.gpu = gpu;
    group.node.gpus = 1;
    group.node.nics = 1;
    scenarios::Cluster cluster;
    cluster.node_groups.push_back(group);
    return cluster;
}

Pairs step_pairs(const scenarios::SoftwareStack& stack, const scenarios::Cluster& cluster,
                 const std::vector<StepTiming>& timings) {
    Pairs pairs;
    for (const StepTiming& timing : timings) {
        scenarios::Job job = timing.job;
        job.stack = stack;
        const scenarios::Plan plan = plan_of_one_rank(job);
        const scenarios::IterationCosts costs = scenarios::iteration_costs(job, cluster, plan);
        const scenarios::VirtualStageCosts& stage = costs.of(0, plan.layout, 0, 0);
        pairs.emplace_back(stage.forward.total().s(), timing.forward.s());
        pairs.emplace_back(stage.backward.total().s(), timing.backward.s());
        pairs.emplace_back((stage.optimizer + costs.stages[0].optimizer).total().s(), timing.optimizer.s());
    }
    return pairs;
}

Pairs fabric_pairs(const scenarios::Fabric& fabric, const std::vector<CollectiveTiming>& timings) {
    scenarios::Node node;
    node.fabric = fabric;
    Pairs pairs;
    for (const CollectiveTiming& timing : timings) {
        if (timing.collective == scenarios::Collective::kSendReceive) continue;
        node.gpus = timing.ranks;
        const scenarios::GroupShape shape{1, timing.ranks, 1};
        pairs.emplace_back(scenarios::collective_time(timing.collective, timing.message, shape, node).s(),
                           timing.time.s());
    }
    return pairs;
}

scenarios::Fabric with_constants(scenarios::Fabric fabric, std::span<const double> at) {
    fabric.bandwidth.value = at[0];
    fabric.efficiency = 1.0;
    scenarios::FabricProtocol protocol;
    protocol.start = Duration::seconds(at[1]);
    protocol.hop = Duration::seconds(at[2]);
    fabric.low_latency = fabric.low_latency_128 = fabric.simple = protocol;
    return fabric;
}

scenarios::SoftwareStack with_constants(scenarios::SoftwareStack stack, std::span<const double> at) {
    stack.kernel_gap = Duration::seconds(at[0]);
    stack.memory_traffic = at[1];
    stack.loss_traffic = at[2];
    stack.optimizer_traffic = at[3];
    stack.host_step = Duration::seconds(at[4]);
    return stack;
}

}  // namespace

scenarios::GpuType fit_gpu(const scenarios::GpuType& base, bool peak_known, scenarios::Precision precision,
                           const KernelTimings& timings, Duration kernel_gap) {
    if (timings.gemms.empty() || timings.attentions.empty() || timings.copies.empty())
        throw std::invalid_argument("a fit needs timings of GEMMs, attention and copies");
    scenarios::GpuType gpu = base;
    double copied = 0.0, multiplied = 0.0;
    for (const CopyTiming& timing : timings.copies)
        copied = std::max(copied, static_cast<double>(timing.moved.count()) / timing.time.s());
    for (const GemmTiming& timing : timings.gemms)
        multiplied = std::max(multiplied, timing.shape.flops() / timing.time.s());
    if (!peak_known) {
        gpu.memory_bandwidth.value = copied;
        (precision == scenarios::Precision::kFp32 ? gpu.peak_single.emplace() : gpu.peak_half).value = multiplied;
    }
    gpu.memory_efficiency = std::min(1.0, copied / gpu.memory_bandwidth.value);

    const auto with = [&](std::span<const double> at) {
        scenarios::GpuType trial = gpu;
        trial.gemm_efficiency = at[0];
        trial.gemm_depth_lost = at[1];
        return trial;
    };
    const std::vector<double> at =
        smallest_at({{0.01, 1.0, 0.8}, {0.01, 2000.0, 16.0}}, [&](std::span<const double> trial) {
            return absolute_logarithms(gemm_pairs(with(trial), precision, timings, kernel_gap));
        });
    gpu = with(at);

    const double peak = scenarios::working_peak(gpu, precision).value;
    gpu.attention_forward_efficiency = attention_share(
        timings, peak,
        [](const AttentionShape& shape) { return 2.0 * scores_of(shape) * static_cast<double>(shape.head_dim); },
        [](const AttentionTiming& timing) { return timing.forward; });
    gpu.attention_backward_efficiency = attention_share(
        timings, peak,
        [](const AttentionShape& shape) { return 5.0 * scores_of(shape) * static_cast<double>(shape.head_dim); },
        [](const AttentionTiming& timing) { return timing.backward; });
    return gpu;
}

scenarios::SoftwareStack fit_stack(const scenarios::SoftwareStack& base, const scenarios::GpuType& gpu,
                                   const std::vector<StepTiming>& timings) {
    if (timings.empty()) throw std::invalid_argument("a fit needs timings of steps");
    const scenarios::Cluster cluster = one_gpu(gpu);
    const std::vector<double> at = smallest_at(
        {{1e-8, 1e-3, 1e-6}, {1e-3, 100.0, 1.0}, {1e-2, 1000.0, 8.0}, {1.0, 1000.0, 36.0}, {1e-7, 1e-2, 1e-5}},
        [&](std::span<const double> trial) {
            return absolute_logarithms(step_pairs(with_constants(base, trial), cluster, timings));
        });
    return with_constants(base, at);
}

scenarios::Fabric fit_fabric(const scenarios::Fabric& base, const std::vector<CollectiveTiming>& timings) {
    if (timings.empty()) throw std::invalid_argument("a fit needs timings of collectives");
    const std::vector<double> at =
        smallest_at({{1e6, 1e13, 1e9}, {1e-7, 1e-2, 1e-5}, {1e-7, 1e-2, 1e-5}}, [&](std::span<const double> trial) {
            return absolute_logarithms(fabric_pairs(with_constants(base, trial), timings));
        });
    return with_constants(base, at);
}

Duration fit_host_message(const scenarios::Fabric& fabric, const std::vector<CollectiveTiming>& timings) {
    scenarios::Node node;
    node.fabric = fabric;
    std::vector<double> added;
    for (const CollectiveTiming& timing : timings) {
        if (timing.collective != scenarios::Collective::kSendReceive) continue;
        node.gpus = timing.ranks;
        added.push_back(timing.time.s() -
                        scenarios::collective_time(timing.collective, timing.message, {1, timing.ranks, 1}, node).s());
    }
    if (added.empty()) throw std::invalid_argument("a fit needs timings of messages");
    std::nth_element(added.begin(), added.begin() + static_cast<std::ptrdiff_t>(added.size() / 2), added.end());
    return Duration::seconds(std::max(0.0, added[added.size() / 2]));
}

FitError gemm_error(const scenarios::GpuType& gpu, scenarios::Precision precision, const KernelTimings& timings,
                    Duration kernel_gap) {
    return error_of(gemm_pairs(gpu, precision, timings, kernel_gap));
}
FitError step_error(const scenarios::SoftwareStack& stack, const scenarios::GpuType& gpu,
                    const std::vector<StepTiming>& timings) {
    return error_of(step_pairs(stack, one_gpu(gpu), timings));
}
FitError fabric_error(const scenarios::Fabric& fabric, const std::vector<CollectiveTiming>& timings) {
    return error_of(fabric_pairs(fabric, timings));
}

}  // namespace headway::backend
