#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "scenarios/language/random.h"
#include "tests/backend/training/training_case.h"
#include "tests/paths.h"

/// Whatever legal plan a seed draws, it trains as one process does.
namespace headway::tests {
namespace {

using scenarios::Job;
using scenarios::Layout;
using scenarios::Plan;
using scenarios::RandomStream;
using scenarios::Recompute;
using scenarios::Schedule;

constexpr int kMostRanks = 8;

int drawn(RandomStream& random, int from, int to) {
    return from + static_cast<int>(random.below(to - from + 1));
}
bool tossed(RandomStream& random) {
    return random.below(2) == 1;
}

Job random_job(RandomStream& random) {
    Job job = tossed(random) ? gpt2_in_small() : llama_in_small();
    job.model.layers = drawn(random, 1, 5);
    job.model.tied_embedding = tossed(random);
    job.micro_batch = drawn(random, 1, 2);
    job.global_batch = 12 * job.micro_batch;
    job.training->clip_gradient_norm = tossed(random) ? 0.5 : 0.0;
    job.training->weight_decay = tossed(random) ? 0.1 : 0.0;
    return job;
}

Layout random_layout(RandomStream& random) {
    Layout layout;
    do {
        layout = {};
        layout.tensor = drawn(random, 1, 2);
        layout.pipeline = drawn(random, 1, 4);
        layout.data = drawn(random, 1, 4);
    } while (layout.world_size() > kMostRanks);
    layout.sequence_parallel = layout.tensor > 1 && tossed(random);
    layout.recompute = static_cast<Recompute>(drawn(random, 0, 2));
    layout.schedule = static_cast<Schedule>(drawn(random, 0, 3));
    if (layout.schedule == Schedule::kInterleaved && layout.pipeline == 1) layout.schedule = Schedule::kGPipe;
    if (layout.schedule == Schedule::kInterleaved) layout.virtual_pipeline = drawn(random, 2, 3);
    if (layout.schedule == Schedule::kZeroBubble) layout.zero_bubble_memory = drawn(random, 1, 2);
    layout.distributed_optimizer = tossed(random);
    layout.overlap_grad_reduce = tossed(random);
    layout.overlap_param_gather = layout.distributed_optimizer && tossed(random);
    layout.overlap_pipeline_comm = tossed(random);
    layout.overlap_tensor_comm = tossed(random);
    return layout;
}

/// `total` in `parts`, each a multiple of `unit` and at least `least`.
std::vector<int> random_shares(RandomStream& random, int total, int parts, int unit, int least) {
    std::vector<int> shares(static_cast<std::size_t>(parts), least);
    for (int left = total - parts * least; left > 0; left -= unit)
        shares[static_cast<std::size_t>(random.below(parts))] += unit;
    return shares;
}

struct RandomRun {
    Job job;
    Plan plan;
    int processes = 0;
};

RandomRun random_run(std::uint64_t seed) {
    RandomStream random(seed, "plans to train");
    RandomRun run;
    run.job = random_job(random);
    Layout layout = random_layout(random);
    // Interleaving takes micro-batches in multiples of the stages.
    const int unit = layout.schedule == Schedule::kInterleaved ? layout.pipeline : 1;
    run.job.global_batch = std::max(layout.data, 3) * unit * run.job.micro_batch * drawn(random, 1, 2);
    run.plan.layout = layout;
    const int micro_batches = run.job.global_batch / run.job.micro_batch;
    run.plan.micro_batches_of_replica = random_shares(random, micro_batches, layout.data, unit, unit);
    const bool apart = tossed(random);
    std::vector<int> split;
    for (int replica = 0; replica < layout.data; ++replica) {
        if (split.empty() || apart) split = random_shares(random, run.job.model.layers, layout.virtual_stages(), 1, 0);
        run.plan.layers_of_cell.insert(run.plan.layers_of_cell.end(), split.begin(), split.end());
    }
    run.processes = layout.world_size() + drawn(random, 0, 2);
    std::vector<int> gpus(static_cast<std::size_t>(run.processes));
    for (std::size_t i = 0; i < gpus.size(); ++i) gpus[i] = static_cast<int>(i);
    for (std::size_t i = gpus.size(); i-- > 1;)
        std::swap(gpus[i], gpus[static_cast<std::size_t>(random.below(static_cast<int>(i) + 1))]);
    gpus.resize(static_cast<std::size_t>(layout.world_size()));
    run.plan.gpu_of_rank = gpus;
    return run;
}

TEST(RandomPlans, TrainAsOneProcessDoes) {
    const std::uint64_t seeds = long_tests() ? 1000 : 100;
    for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
        const RandomRun run = random_run(seed);
        SCOPED_TRACE("seed " + std::to_string(seed) + ": " + run.job.model.name + ", " +
                     scenarios::describe(run.plan.layout));
        const TrainingOutcome one = train({.job = run.job, .plan = even_plan(run.job, Layout()), .steps = 4});
        const TrainingOutcome many = train({.job = run.job, .plan = run.plan, .processes = run.processes, .steps = 4});
        EXPECT_LE(largest_difference(many.losses, one.losses), 1e-12);
        EXPECT_LE(largest_difference(many.gradient_norms, one.gradient_norms), 1e-11);
        EXPECT_LE(largest_difference(many.state, one.state), 1e-10);
        if (HasFailure()) return;
    }
}

TEST(RandomPlans, CoverWhatPlansCanDiffer) {
    int apart = 0, interleaved = 0, tensor = 0, sharded = 0, idle = 0, empty_stages = 0;
    for (std::uint64_t seed = 1; seed <= 40; ++seed) {
        const RandomRun run = random_run(seed);
        apart += !run.plan.same_layers_everywhere();
        interleaved += run.plan.layout.virtual_pipeline > 1;
        tensor += run.plan.layout.tensor > 1;
        sharded += run.plan.layout.distributed_optimizer && run.plan.layout.data > 1;
        idle += run.processes > run.plan.layout.world_size();
        empty_stages += std::count(run.plan.layers_of_cell.begin(), run.plan.layers_of_cell.end(), 0) > 0;
    }
    for (const int covered : {apart, interleaved, tensor, sharded, idle, empty_stages}) EXPECT_GE(covered, 4);
}

}  // namespace
}  // namespace headway::tests
