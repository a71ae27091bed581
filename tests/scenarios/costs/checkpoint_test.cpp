#include "scenarios/costs/checkpoint.h"

#include <gtest/gtest.h>

#include "scenarios/costs/parameters.h"
#include "tests/scenarios/costs/shipped_job.h"

namespace headway::scenarios {
namespace {

Cluster with_storage(int nodes, double read, double write) {
    Cluster cluster = dgx_a100(nodes);
    cluster.facility.storage_read = {read};
    cluster.facility.storage_write = {write};
    return cluster;
}

TEST(Checkpoint, StateIsFourteenBytesAParameter) {
    const Job job = job_of(gpt(24, 2048, 16), 1, 8);
    const Cluster cluster = with_storage(1, 100e9, 50e9);
    const CheckpointCosts costs = checkpoint_costs(job, cluster, plan_of(layout_of(1, 1, 8), job, cluster));
    EXPECT_EQ(costs.state.count(), 14 * model_parameters(job.model));
}

TEST(Checkpoint, SlowStorageSetsTheTimeOfASave) {
    const Job job = job_of(gpt(96, 12288, 96), 1, 64);
    const Cluster cluster = with_storage(8, 10e9, 1e9);
    const CheckpointCosts costs = checkpoint_costs(job, cluster, plan_of(layout_of(8, 8, 1), job, cluster));
    EXPECT_NEAR(costs.save.s() / (static_cast<double>(costs.state.count()) / 1e9), 1.0, 0.01);  // second embedding
    EXPECT_EQ(costs.restart, costs.load + job.checkpoint.restart);
}

TEST(Checkpoint, FastStorageLeavesNicsOrPcieAsTheLimit) {
    const Job job = job_of(gpt(96, 12288, 96), 1, 64);
    const Cluster cluster = with_storage(8, 1e15, 1e15);
    const Plan plan = plan_of(layout_of(8, 8, 1), job, cluster);
    const double rank_bytes = static_cast<double>(checkpoint_costs(job, cluster, plan).state.count()) / 64;
    EXPECT_GT(checkpoint_costs(job, cluster, plan).save.s(), rank_bytes / 25e9);
}

TEST(Checkpoint, EveryReplicaReadsWhatItHolds) {
    const Job job = job_of(gpt(24, 2048, 16), 1, 64);
    const Cluster cluster = with_storage(4, 1e9, 1e9);
    Layout layout = layout_of(8, 1, 1);
    const Duration one = checkpoint_costs(job, cluster, plan_of(layout, job, cluster)).load;
    layout.data = 4;
    const Duration four = checkpoint_costs(job, cluster, plan_of(layout, job, cluster)).load;
    EXPECT_NEAR(four / one, 4.0, 0.01);
    layout.distributed_optimizer = true;
    const Duration shared = checkpoint_costs(job, cluster, plan_of(layout, job, cluster)).load;
    EXPECT_NEAR(shared / one, (4.0 * 2 + 12) / 14, 0.01);
}

TEST(Checkpoint, AsynchronousSavesWaitForHostMemoryOnly) {
    Job job = job_of(gpt(96, 12288, 96), 1, 64);
    const Cluster cluster = with_storage(8, 10e9, 1e9);
    const Plan plan = plan_of(layout_of(8, 8, 1), job, cluster);
    const Duration waiting = checkpoint_costs(job, cluster, plan).save;
    job.checkpoint.asynchronous = true;
    EXPECT_LT(checkpoint_costs(job, cluster, plan).save * 10, waiting);
}

TEST(Checkpoint, WaitsForTheFullestRankOfAnyReplica) {
    const Job job = job_of(gpt(32, 4096, 32), 1, 16);
    const Cluster cluster = dgx_a100(1);
    Job waiting = job;
    waiting.checkpoint.asynchronous = true;  // then the fullest rank's copy to host memory counts
    Plan plan = plan_of(layout_of(1, 4, 2), job, cluster);
    const CheckpointCosts even = checkpoint_costs(waiting, cluster, plan);
    plan.layers_of_cell = {8, 8, 8, 8, 2, 14, 8, 8};
    const CheckpointCosts second = checkpoint_costs(waiting, cluster, plan);
    EXPECT_EQ(second.save, even.save) << "the first replica writes";
    EXPECT_EQ(second.state, even.state);
    plan.layers_of_cell = {2, 14, 8, 8, 8, 8, 8, 8};
    EXPECT_GT(checkpoint_costs(waiting, cluster, plan).save, even.save);
}

}  // namespace
}  // namespace headway::scenarios
