#include "scenarios/costs/memory.h"

#include <gtest/gtest.h>

#include "scenarios/costs/parameters.h"
#include "scenarios/language/program.h"
#include "tests/scenarios/costs/shipped_job.h"

namespace headway::scenarios {
namespace {

struct PublishedMemory {
    const char* name;
    int layers, hidden, heads, pipeline, virtual_pipeline, micro_batch;
    double state_gib, activations_gib, both_gib, percent_sequence, percent_selective, percent_full;
};

/// scenarios/measured/korthikanti-2022-layer.yaml (figures 1 and 7 of Korthikanti et al. 2022), tensor 8.
const PublishedMemory kPublished[] = {
    {"22B", 48, 6144, 64, 1, 1, 4, 45.5625, 59.25, 9.5625, 66.84, 49.42, 7.64},
    {"175B", 96, 12288, 96, 8, 3, 1, 45.5625, 66.84375, 12.3515625, 62.04, 56.53, 8.71},
    {"530B", 105, 20480, 128, 35, 3, 1, 31.640625, 114.0234375, 23.076171875, 58.31, 62.04, 9.42},
    {"1T", 128, 25600, 160, 64, 1, 1, 32.958984375, 131.25, 26.5625, 58.31, 62.04, 9.42},
};

/// Activations of the layers of the first stage, at its peak: what the figures count.
double first_stage_gib(const PublishedMemory& row, Recompute recompute, bool sequence_parallel) {
    const int micro_batches = row.pipeline == 1 ? 1 : 4 * row.pipeline;
    const Job job = job_of(gpt(row.layers, row.hidden, row.heads), row.micro_batch, row.micro_batch * micro_batches);
    Layout layout = layout_of(8, row.pipeline, 1, row.virtual_pipeline);
    layout.recompute = recompute;
    layout.sequence_parallel = sequence_parallel;
    const int layers = row.layers / layout.virtual_stages();
    double kept = 0.0;
    for (const int in_flight : in_flight_at_peak(layout, 0, micro_batches)) kept += in_flight * layers;
    // The report of the whole stage holds the same, and the edges.
    const Plan plan = plan_of(layout, job, dgx_a100(row.pipeline));
    const double of_layers = kept * layer_activations(job, layout).in_gib();
    EXPECT_GE(stage_memory(job, plan).front().activations.in_gib(), of_layers);
    return of_layers;
}

TEST(Memory, ActivationsMatchThePublishedFigures) {
    for (const PublishedMemory& row : kPublished) {
        SCOPED_TRACE(row.name);
        const double all = first_stage_gib(row, Recompute::kNone, false);
        EXPECT_NEAR(all / row.activations_gib, 1.0, 0.001);
        EXPECT_NEAR(first_stage_gib(row, Recompute::kSelective, true) / row.both_gib, 1.0, 0.001);
        EXPECT_NEAR(first_stage_gib(row, Recompute::kNone, true) / all * 100.0, row.percent_sequence, 0.2);
        EXPECT_NEAR(first_stage_gib(row, Recompute::kSelective, false) / all * 100.0, row.percent_selective, 0.2);
        EXPECT_NEAR(first_stage_gib(row, Recompute::kFull, false) / all * 100.0, row.percent_full, 0.2);
    }
}

TEST(Memory, SinglePrecisionTakesFourBytesAWeightAndActivation) {
    Job job = job_of(gpt(4, 256, 4), 2, 16);
    job.stack.dropout = false;
    const Plan plan = plan_of(layout_of(1, 1, 8), job, dgx_a100(1));
    const StageMemory half = stage_memory(job, plan).front();
    const std::int64_t layer = layer_activations(job, plan.layout).count();
    job.precision = Precision::kFp32;
    const StageMemory single = stage_memory(job, plan).front();
    EXPECT_EQ(single.parameters.count(), 2 * half.parameters.count());
    EXPECT_EQ(single.optimizer, half.optimizer);
    EXPECT_EQ(single.gradients, half.gradients);
    EXPECT_EQ(layer_activations(job, plan.layout).count(), 2 * layer) << "no masks, no log-sum-exp";
}

TEST(Memory, LayersFollowKorthikantisFormula) {
    const Job job = job_of(gpt(48, 6144, 64), 4, 4);
    const double sbh = 2048.0 * 4 * 6144, t = 8, a = 64, s = 2048, h = 6144;
    Layout layout = layout_of(8, 1, 1);
    const auto bytes = [&] { return static_cast<double>(layer_activations(job, layout).count()); };
    EXPECT_DOUBLE_EQ(bytes(), sbh * (10 + 24 / t + 5 * a * s / (h * t)));
    layout.recompute = Recompute::kSelective;
    EXPECT_DOUBLE_EQ(bytes(), sbh * (10 + 24 / t));
    layout.sequence_parallel = true;
    EXPECT_DOUBLE_EQ(bytes(), sbh * 34 / t);
    layout.sequence_parallel = false;
    layout.recompute = Recompute::kFull;
    EXPECT_DOUBLE_EQ(bytes(), sbh * 2);
}

TEST(Memory, StateIsEighteenBytesAParameter) {
    for (const PublishedMemory& row : kPublished) {
        SCOPED_TRACE(row.name);
        const Job job = job_of(gpt(row.layers, row.hidden, row.heads), 1, row.pipeline);
        const Plan plan = plan_of(layout_of(8, row.pipeline, 1, row.virtual_pipeline), job, dgx_a100(row.pipeline));
        const std::vector<StageMemory> stages = stage_memory(job, plan);
        // The figures count the matrices of the layers; a stage in the middle has nothing else of weight.
        const StageMemory& stage = stages[stages.size() / 2];
        Bytes state = stage.parameters + stage.gradients + stage.optimizer;
        if (row.pipeline == 1) state = state - Bytes(18 * (rank_parameters(job, plan.layout, 0, 0)));
        EXPECT_NEAR(state.in_gib() / row.state_gib, 1.0, 0.001);
    }
}

TEST(Memory, DistributedOptimizerSharesStateOverReplicas) {
    const Job job = job_of(gpt(24, 2048, 16), 1, 64);
    Layout layout = layout_of(1, 1, 8);
    const StageMemory whole = stage_memory(job, plan_of(layout, job, dgx_a100(1))).front();
    layout.distributed_optimizer = true;
    const StageMemory shared = stage_memory(job, plan_of(layout, job, dgx_a100(1))).front();
    EXPECT_EQ(shared.optimizer * 8, whole.optimizer);
    EXPECT_EQ(shared.parameters, whole.parameters);
    EXPECT_EQ(shared.gradients, whole.gradients);
}

TEST(Memory, FirstStageHoldsMostMicroBatchesUnder1F1B) {
    const Job job = job_of(gpt(32, 4096, 32), 1, 64);
    const std::vector<StageMemory> stages = stage_memory(job, plan_of(layout_of(1, 8, 1), job, dgx_a100(1)));
    for (std::size_t k = 1; k + 1 < stages.size(); ++k) EXPECT_LT(stages[k].activations, stages[k - 1].activations);
}

TEST(Memory, ReportsEveryStageThatDoesNotFit) {
    const Job job = job_of(gpt(96, 12288, 96), 1, 64);
    const Cluster cluster = dgx_a100(2);
    const std::vector<MemoryShortage> shortages =
        memory_shortages(job, cluster, plan_of(layout_of(8, 2, 1), job, cluster));
    ASSERT_EQ(shortages.size(), 2u);
    EXPECT_EQ(shortages[0].stage, 0);
    EXPECT_EQ(shortages[0].gpu, 0);
    EXPECT_EQ(shortages[1].gpu, 8);
    EXPECT_GT(shortages[0].needed, shortages[0].available);
    const Job small = job_of(gpt(12, 768, 12, 1024), 1, 8);
    EXPECT_TRUE(memory_shortages(small, cluster, plan_of(layout_of(1, 1, 8), small, cluster)).empty());
}

TEST(Memory, OfAStageIsThatOfItsFullestWorker) {
    const Job job = job_of(gpt(32, 4096, 32), 1, 24);
    Plan plan = plan_of(layout_of(1, 4, 2), job, dgx_a100(1));
    plan.layers_of_cell = {8, 8, 8, 8, 11, 7, 7, 7};
    plan.micro_batches_of_replica = {22, 2};  // replica 1 holds at most two micro-batches anywhere
    const std::vector<StageMemory> workers = worker_memory(job, plan), stages = stage_memory(job, plan);
    ASSERT_EQ(workers.size(), 8u);
    EXPECT_GT(workers[4].parameters, workers[0].parameters);
    EXPECT_GT(workers[0].activations, workers[4].activations);
    for (std::size_t stage = 0; stage < 4; ++stage)
        EXPECT_EQ(stages[stage].total(), std::max(workers[stage].total(), workers[4 + stage].total()));
}

TEST(Memory, IsCheckedWorkerByWorkerOnMixedGpus) {
    Cluster cluster = dgx_a100(1);
    NodeGroup small = cluster.node_groups[0];
    small.node.gpu = read_gpu(shipped_catalogue(), "A100-SXM4-40GB");
    cluster.node_groups.push_back(small);
    const Job job = job_of(gpt(32, 4096, 32), 1, 16);
    Plan plan = plan_of(layout_of(4, 2, 2), job, cluster);
    for (int rank = 0; rank < 16; ++rank)  // replica 1 on the smaller GPUs
        plan.gpu_of_rank[static_cast<std::size_t>(rank)] = rank % 4 + rank / 8 * 4 + (rank / 4 % 2) * 8;
    const auto fits = [&](std::vector<int> layers) {
        plan.layers_of_cell = std::move(layers);
        MemoryTable table(job, plan.layout);
        const bool fit = fits_memory(table, memory_of_gpus(cluster), plan);
        EXPECT_EQ(fit, memory_shortages(job, cluster, plan).empty());
        return fit;
    };
    EXPECT_FALSE(fits({16, 16, 31, 1}));
    const auto shortages = memory_shortages(job, cluster, plan);
    ASSERT_EQ(shortages.size(), 1u);
    EXPECT_EQ(shortages[0].stage, 0);
    EXPECT_EQ(shortages[0].gpu, 8);
    EXPECT_TRUE(fits({31, 1, 16, 16})) << "the full stage stands on large GPUs only";
}

}  // namespace
}  // namespace headway::scenarios
