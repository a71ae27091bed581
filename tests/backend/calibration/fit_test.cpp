#include "backend/calibration/fit.h"

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <stdexcept>

#include "backend/calibration/catalogue_entries.h"
#include "scenarios/costs/iteration_costs.h"
#include "scenarios/language/read.h"
#include "tests/paths.h"

namespace headway::backend {
namespace {

using scenarios::Bytes;
using scenarios::Collective;
using scenarios::Duration;
using scenarios::Precision;

scenarios::Catalogue shipped() {
    return {tests::source_directory() / "scenarios"};
}

scenarios::GpuType host_core() {
    return scenarios::read_gpu(shipped(), "host-core");
}

/// Timings as a device with these constants would give them.
KernelTimings timings_of(const scenarios::GpuType& gpu, Duration gap) {
    KernelTimings timings;
    const scenarios::GemmPace pace = scenarios::working_pace(gpu, Precision::kFp32);
    for (const double width : {128.0, 256.0, 768.0})
        for (const double rows : {64.0, 512.0})
            for (const double depth : {32.0, width, 4.0 * width}) {
                const scenarios::GemmShape shape{rows, width, depth};
                timings.gemms.push_back(
                    {shape, Duration::seconds(scenarios::gemm_work(shape, gpu, pace, gap).total())});
            }
    for (const std::int64_t sequence : {512, 2048}) {
        const AttentionShape shape{2, sequence, 8, 8, 64};
        const double scores = 2.0 * 8.0 * static_cast<double>(sequence * sequence);
        const auto time = [&](double flops, double efficiency) {
            return Duration::seconds(flops / (gpu.peak_single->value * efficiency));
        };
        timings.attentions.push_back({shape, time(2.0 * scores * 64.0, gpu.attention_forward_efficiency),
                                      time(5.0 * scores * 64.0, gpu.attention_backward_efficiency)});
    }
    timings.copies.push_back(
        {Bytes(1'000'000'000), Duration::seconds(1e9 / (gpu.memory_bandwidth.value * gpu.memory_efficiency))});
    return timings;
}

TEST(Fit, FindsTheConstantsBehindTimingsOfKernels) {
    scenarios::GpuType truth = host_core();
    truth.gemm_efficiency = 0.71;
    truth.gemm_depth_lost = 37.0;
    truth.attention_forward_efficiency = 0.33;
    truth.attention_backward_efficiency = 0.21;
    truth.memory_efficiency = 0.6;
    const Duration gap = Duration::microseconds(3);
    const scenarios::GpuType found = fit_gpu(host_core(), true, Precision::kFp32, timings_of(truth, gap), gap);
    EXPECT_NEAR(found.gemm_efficiency, 0.71, 0.005);
    EXPECT_NEAR(found.gemm_depth_lost, 37.0, 1.0);
    EXPECT_NEAR(found.attention_forward_efficiency, 0.33, 1e-4);
    EXPECT_NEAR(found.attention_backward_efficiency, 0.21, 1e-4);
    EXPECT_NEAR(found.memory_efficiency, 0.6, 1e-4);
    EXPECT_LT(gemm_error(found, Precision::kFp32, timings_of(truth, gap), gap).worst, 0.01);
}

TEST(Fit, TakesTheFastestGemmForThePeakThatNoDataSheetStates) {
    scenarios::GpuType truth = host_core();
    truth.peak_single->value = 60e9;
    const KernelTimings timings = timings_of(truth, Duration());
    const scenarios::GpuType found = fit_gpu(host_core(), false, Precision::kFp32, timings, Duration());
    double fastest = 0.0;
    for (const GemmTiming& timing : timings.gemms) fastest = std::max(fastest, timing.shape.flops() / timing.time.s());
    EXPECT_DOUBLE_EQ(found.peak_single->value, fastest);
    EXPECT_LT(fastest, 60e9);
    EXPECT_LT(gemm_error(found, Precision::kFp32, timings, Duration()).mean, 0.02);
    EXPECT_THROW(fit_gpu(host_core(), false, Precision::kFp32, {}, Duration()), std::invalid_argument);
}

TEST(Fit, FindsTheConstantsBehindTimingsOfSteps) {
    const scenarios::GpuType gpu = host_core();
    scenarios::SoftwareStack truth = scenarios::read_stack(shipped(), "headway-host");
    truth.kernel_gap = Duration::microseconds(7);
    truth.memory_traffic = 0.4;
    truth.loss_traffic = 21.0;
    truth.optimizer_traffic = 55.0;
    scenarios::NodeGroup group;
    group.node.gpu = gpu;
    group.node.gpus = group.node.nics = 1;
    scenarios::Cluster cluster;
    cluster.node_groups.push_back(group);
    std::vector<StepTiming> timings;
    for (scenarios::Job job : calibration_jobs(false, Precision::kFp32)) {
        job.stack = truth;
        const scenarios::Plan plan = plan_of_one_rank(job);
        const auto costs = scenarios::iteration_costs(job, cluster, plan);
        const auto& stage = costs.of(0, plan.layout, 0, 0);
        timings.push_back({job, stage.forward.total(), stage.backward.total(),
                           (stage.optimizer + costs.stages[0].optimizer).total()});
    }
    const auto found = fit_stack(scenarios::read_stack(shipped(), "headway-host"), gpu, timings);
    EXPECT_LT(step_error(found, gpu, timings).worst, 0.01);
    EXPECT_NEAR(found.memory_traffic, 0.4, 0.02);
    EXPECT_NEAR(found.optimizer_traffic, 55.0, 2.0);
}

TEST(Fit, FindsTheConstantsBehindTimingsOfCollectives) {
    scenarios::Fabric truth = scenarios::read_fabric(shipped(), "host-loopback");
    truth.bandwidth.value = 1.7e9;
    truth.efficiency = 1.0;
    truth.low_latency.hop = truth.low_latency_128.hop = truth.simple.hop = Duration::microseconds(90);
    truth.low_latency.start = truth.low_latency_128.start = truth.simple.start = Duration::microseconds(40);
    std::vector<CollectiveTiming> timings;
    for (const int ranks : {2, 4})
        for (const Collective collective : {Collective::kAllReduce, Collective::kAllGather, Collective::kSendReceive})
            for (const std::int64_t bytes : {4 << 10, 256 << 10, 8 << 20}) {
                scenarios::Node node;
                node.gpus = ranks;
                node.fabric = truth;
                timings.push_back({collective, Bytes(bytes), ranks,
                                   scenarios::collective_time(collective, Bytes(bytes), {1, ranks, 1}, node)});
            }
    const scenarios::Fabric found = fit_fabric(scenarios::read_fabric(shipped(), "host-loopback"), timings);
    EXPECT_NEAR(found.bandwidth.value, 1.7e9, 2e7);
    EXPECT_LT(fabric_error(found, timings).worst, 0.01);
    for (CollectiveTiming& timing : timings)
        if (timing.collective == Collective::kSendReceive) timing.time += Duration::microseconds(250);
    EXPECT_NEAR(fit_fabric(found, timings).bandwidth.value, 1.7e9, 2e7) << "messages are no collectives";
    EXPECT_NEAR(fit_host_message(found, timings).us(), 250.0, 5.0);
}

TEST(Search, FindsTheBottomOfACurvedValley) {
    const auto valley = [](std::span<const double> at) {
        const double x = std::log(at[0]), y = std::log(at[1]);
        return (x - 1.0) * (x - 1.0) + 4.0 * (y - 0.5 * x) * (y - 0.5 * x);
    };
    const std::vector<double> at = smallest_at({{0.01, 100.0, 50.0}, {0.01, 100.0, 0.02}}, valley);
    EXPECT_NEAR(std::log(at[0]), 1.0, 1e-3);
    EXPECT_NEAR(std::log(at[1]), 0.5, 1e-3);
}

TEST(CatalogueEntries, AreReadBackWithWhatWasMeasured) {
    const std::filesystem::path folder = std::filesystem::path(testing::TempDir()) / "calibrated-catalogue";
    std::filesystem::remove_all(folder);
    for (const char* kind : {"gpus", "stacks", "fabrics"}) {
        std::filesystem::create_directories(folder / kind);
        std::filesystem::copy(tests::source_directory() / "scenarios" / kind, folder / kind);
    }
    const EntryOrigin origin{"host-core", "calibrated on a machine called \"one\""};
    scenarios::GpuType gpu = host_core();
    gpu.peak_single->value = 87.6543e9;
    gpu.gemm_efficiency = 0.812345;
    std::ofstream(folder / "gpus" / "mine.yaml") << gpu_entry(gpu, false, Precision::kFp32, origin);
    scenarios::SoftwareStack stack = scenarios::read_stack(shipped(), "headway-host");
    stack.memory_traffic = 0.7;
    std::ofstream(folder / "stacks" / "mine.yaml") << stack_entry(stack, true, {"headway-host", "x"});
    scenarios::Fabric fabric = scenarios::read_fabric(shipped(), "host-loopback");
    fabric.simple.hop = Duration::microseconds(123);
    std::ofstream(folder / "fabrics" / "mine.yaml") << fabric_entry(fabric, {"host-loopback", "x"});
    const scenarios::GpuType read = scenarios::read_gpu({folder}, "mine");
    EXPECT_NEAR(read.peak_single->value, 87.65e9, 1e6);
    EXPECT_NEAR(read.gemm_efficiency, 0.8123, 1e-9);
    EXPECT_EQ(read.memory.count(), gpu.memory.count()) << "from the base";
    EXPECT_DOUBLE_EQ(scenarios::read_stack({folder}, "mine").memory_traffic, 0.7);
    EXPECT_EQ(scenarios::read_fabric({folder}, "mine").simple.hop, Duration::microseconds(123));
    std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace headway::backend
