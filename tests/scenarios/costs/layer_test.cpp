#include "scenarios/costs/layer.h"

#include <gtest/gtest.h>

#include "scenarios/costs/placement.h"
#include "tests/scenarios/costs/shipped_job.h"

namespace headway::scenarios {
namespace {

/// One layer in its place; owns what a RankContext points at.
class OneLayer {
  public:
    OneLayer(Job job, Layout layout, int nodes = 1)
        : job_(std::move(job)), layout_(layout), cluster_(dgx_a100(nodes)) {}
    RankContext rank() {
        plan_ = plan_of(layout_, job_, cluster_);
        const Placement placement(plan_, cluster_);
        return {job_, layout_, cluster_.node(0), placement.tensor(), placement.context()};
    }
    LayerCosts costs() { return layer_costs(rank()); }
    Layout& layout() { return layout_; }
    Job& job() { return job_; }
    GpuType& gpu() { return cluster_.node_groups[0].node.gpu; }

  private:
    Job job_;
    Layout layout_;
    Cluster cluster_;
    Plan plan_;
};

OneLayer layer_22b() {
    return {job_of(gpt(48, 6144, 64), 4, 4), layout_of(8, 1, 1)};
}

TEST(Layer, TimesOf22BStayWithin5PercentOfThePublishedOnes) {
    // scenarios/measured/korthikanti-2022-layer.yaml (Korthikanti et al. 2022, table 4), milliseconds.
    struct Case {
        const char* name;
        Recompute recompute;
        bool sequence_parallel;
        double forward, backward;
    };
    const Case cases[] = {{"none", Recompute::kNone, false, 7.7, 11.9},
                          {"none, sequence parallel", Recompute::kNone, true, 7.2, 11.8},
                          {"full", Recompute::kFull, false, 7.7, 19.5},
                          {"selective", Recompute::kSelective, false, 7.7, 13.2},
                          {"selective, sequence parallel", Recompute::kSelective, true, 7.2, 13.1}};
    OneLayer layer = layer_22b();
    for (const Case& row : cases) {
        SCOPED_TRACE(row.name);
        layer.layout().recompute = row.recompute;
        layer.layout().sequence_parallel = row.sequence_parallel;
        const LayerCosts costs = layer.costs();
        EXPECT_NEAR(1e3 * costs.forward.total() / row.forward, 1.0, 0.05);
        EXPECT_NEAR(1e3 * costs.backward().total() / row.backward, 1.0, 0.05);
    }
}

TEST(Layer, ComputesItsFlopsAtLessThanPeak) {
    const LayerCosts costs = layer_22b().costs();
    const double flops = 8192.0 * (24.0 * 6144 * 6144 + 4.0 * 2048 * 6144) / 8;
    EXPECT_GT(costs.forward.compute, flops / 312e12);
    EXPECT_LT(costs.forward.compute, 2.0 * flops / 312e12);
    EXPECT_GT((costs.backward_input + costs.backward_weight).compute, 2.0 * flops / 312e12);
}

TEST(Layer, FullRecomputationRepeatsTheForward) {
    OneLayer layer = layer_22b();
    const LayerCosts plain = layer.costs();
    layer.layout().recompute = Recompute::kFull;
    const LayerCosts recomputing = layer.costs();
    EXPECT_EQ(plain.recompute.total(), 0.0);
    EXPECT_DOUBLE_EQ(recomputing.recompute.total(), plain.forward.total());
    EXPECT_GT(recomputing.host_backward_s, plain.host_backward_s);
}

TEST(Layer, SequenceParallelismSplitsOnlyTheStreamingPart) {
    OneLayer layer = layer_22b();
    const LayerCosts plain = layer.costs();
    layer.layout().sequence_parallel = true;
    const LayerCosts split = layer.costs();
    EXPECT_DOUBLE_EQ(split.forward.compute, plain.forward.compute);
    EXPECT_LT(split.forward.memory, plain.forward.memory);
}

TEST(Layer, OneTensorRankCommunicatesNothing) {
    OneLayer layer(job_of(gpt(24, 2048, 16), 4, 4), layout_of(1, 1, 1));
    EXPECT_EQ(layer.costs().forward.communication, 0.0);
    EXPECT_EQ(layer.costs().backward().communication, 0.0);
    layer.layout().tensor = 2;
    EXPECT_GT(layer.costs().forward.communication, 0.0);
}

TEST(Layer, TensorGroupsOverTwoNodesCommunicateSlower) {
    OneLayer inside(job_of(gpt(24, 4096, 32), 4, 4), layout_of(8, 1, 1));
    OneLayer across(job_of(gpt(24, 4096, 32), 4, 4), layout_of(16, 1, 1), 2);
    EXPECT_GT(across.costs().forward.communication, 1.2 * inside.costs().forward.communication);
}

TEST(Layer, AskedForOverlapHidesTheSharesOfTheStack) {
    OneLayer layer(job_of(gpt(24, 8192, 64), 1, 1, "nemo-2025"), layout_of(8, 1, 1));
    const double exposed = layer.costs().forward.communication;
    layer.layout().overlap_tensor_comm = true;
    EXPECT_NEAR(layer.costs().forward.communication / exposed, 1.0 - layer.job().stack.tensor_overlap, 1e-9);
}

TEST(Layer, SlowerClockStretchesOnlyTheComputePart) {
    const Work work = layer_22b().costs().forward.rounded();
    const Duration slow = work.at({.compute = 0.8});
    EXPECT_EQ((slow - work.total()).ns(), work.compute.scaled(1.25).ns() - work.compute.ns());
}

TEST(Layer, UnfusedSoftmaxCostsMemoryAndHostTime) {
    // Two heads a rank: batch x heads is no multiple of 4.
    OneLayer layer(job_of(gpt(24, 1024, 16, 1024), 1, 8, "megatron-deepspeed-2023"), layout_of(8, 1, 1));
    const LayerCosts unfused = layer.costs();
    layer.job().micro_batch = 2;
    const LayerCosts fused = layer.costs();
    EXPECT_GT(unfused.host_forward_s, fused.host_forward_s);
    EXPECT_GT(unfused.forward.memory, 0.5 * fused.forward.memory);
}

TEST(Layer, ContextRanksShareTokensAndPassKeysAndValues) {
    OneLayer layer(job_of(read_model(shipped_catalogue(), "llama3.1-8b"), 1, 8, "pytorch"), layout_of(1, 1, 1));
    const LayerCosts whole = layer.costs();
    layer.layout().context = 4;
    const LayerCosts part = layer.costs();
    EXPECT_NEAR(part.forward.compute / whole.forward.compute, 0.25, 0.05);
    EXPECT_GT(part.backward().communication, 0.0);
}

TEST(Head, OfUnalignedVocabularyIsSlower) {
    OneLayer odd(job_of(gpt(24, 2048, 16, 1024, 50257), 4, 4, "megatron-deepspeed-2023"), layout_of(1, 1, 1));
    OneLayer even(job_of(gpt(24, 2048, 16, 1024, 50264), 4, 4, "megatron-deepspeed-2023"), layout_of(1, 1, 1));
    EXPECT_GT(head_costs(odd.rank()).forward.total(), 1.2 * head_costs(even.rank()).forward.total());
}

}  // namespace
}  // namespace headway::scenarios
