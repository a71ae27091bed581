#include "policies/planning/layer_split.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <random>

#include <gtest/gtest.h>

namespace headway::policies {
namespace {

double pipeline_time(const std::vector<int>& split, int micro_batches, const StageTime& time) {
    double most = 0.0, sum = 0.0;
    for (std::size_t s = 0; s < split.size(); ++s) {
        const double stage = time(static_cast<int>(s), split[s]);
        most = std::max(most, stage);
        sum += stage;
    }
    return (micro_batches - 1) * most + sum;
}

void try_all(std::vector<int>& split, int stages, int left, int micro_batches, const SplitLimits& limits,
             const StageTime& time, double& best) {
    if (static_cast<int>(split.size()) == stages) {
        if (left == 0) best = std::min(best, pipeline_time(split, micro_batches, time));
        return;
    }
    const int most = limits.most.empty() ? left : std::min(left, limits.most[split.size()]);
    for (int n = limits.least; n <= most; ++n) {
        split.push_back(n);
        try_all(split, stages, left - n, micro_batches, limits, time, best);
        split.pop_back();
    }
}

TEST(LayerSplit, IsTheBestOfAllForRandomMonotoneTimes) {
    std::mt19937_64 random(11);
    const auto pick = [&](int low, int high) { return std::uniform_int_distribution<int>(low, high)(random); };
    int impossible = 0;
    for (int trial = 0; trial < 600; ++trial) {
        const int stages = pick(1, 4), micro_batches = pick(1, 12);
        SplitLimits limits{pick(1, 12), pick(0, 2), {}};
        if (pick(0, 1) == 0)
            for (int s = 0; s < stages; ++s) limits.most.push_back(pick(1, limits.layers));
        std::vector<std::vector<double>> times(static_cast<std::size_t>(stages));
        for (auto& of_stage : times) {
            const int edge = pick(0, 4), each = pick(1, 6);
            for (int n = 0; n <= limits.layers; ++n) of_stage.push_back(edge + each * n);
            if (pick(0, 1) == 0)  // not even convex
                for (std::size_t n = 1; n < of_stage.size(); ++n) of_stage[n] = of_stage[n - 1] + pick(0, 6);
        }
        const StageTime time = [&](int s, int n) {
            return times[static_cast<std::size_t>(s)][static_cast<std::size_t>(n)];
        };
        double best = std::numeric_limits<double>::infinity();
        std::vector<int> scratch;
        try_all(scratch, stages, limits.layers, micro_batches, limits, time, best);
        const auto split = split_layers(stages, micro_batches, limits, time);
        ASSERT_EQ(split.has_value(), best < std::numeric_limits<double>::infinity()) << "trial " << trial;
        if (!split) {
            ++impossible;
            continue;
        }
        EXPECT_EQ(pipeline_time(*split, micro_batches, time), best) << "trial " << trial;
        EXPECT_EQ(std::accumulate(split->begin(), split->end(), 0), limits.layers);
        for (std::size_t s = 0; s < split->size(); ++s) {
            EXPECT_GE((*split)[s], limits.least);
            EXPECT_LE((*split)[s], limits.most.empty() ? limits.layers : limits.most[s]);
        }
    }
    EXPECT_GT(impossible, 10);
}

TEST(LayerSplit, TakesLayersFromASlowStageAndFromTheOneWithLogits) {
    // Stage 0 is 2.5 times slower, stage 3 works on logits as long as on two layers. No split has a slowest stage below
    // 25, and of those with 25 this one leaves least to the slow stage.
    const auto split = split_layers(4, 64, {80, 1, {}}, [](int stage, int layers) {
        return stage == 0 ? 2.5 * layers : stage == 3 ? layers + 2.0 : 1.0 * layers;
    });
    EXPECT_EQ(split, (std::vector<int>{7, 25, 25, 23}));
}

TEST(LayerSplit, KeepsToMemory) {
    const auto split = split_layers(3, 8, {12, 1, {2, 12, 4}}, [](int, int layers) { return 1.0 * layers; });
    EXPECT_EQ(split, (std::vector<int>{2, 6, 4}));
    EXPECT_FALSE(split_layers(3, 8, {12, 1, {2, 3, 4}}, [](int, int layers) { return 1.0 * layers; }));
}

}  // namespace
}  // namespace headway::policies
