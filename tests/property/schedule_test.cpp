#include <algorithm>
#include <random>

#include <gtest/gtest.h>

#include "scenarios/language/program.h"
#include "scenarios/timing/evaluator.h"
#include "tests/paths.h"
#include "tests/property/random_plans.h"

/// What holds for every schedule, layout and set of durations.
namespace headway::scenarios::timing_test {
namespace {

std::uint64_t schedule_seeds(std::uint64_t brief) {
    return tests::long_tests() ? brief * 50 : brief;
}

std::vector<std::vector<std::int64_t>*> durations_of(StepTimes& times) {
    return {&times.forward,           &times.backward,           &times.backward_input,        &times.backward_weight,
            &times.send_activation,   &times.send_gradient,      &times.delay_activation,      &times.delay_gradient,
            &times.reduce_gradients,  &times.reduce_last_bucket, &times.reduce_tied_embedding, &times.optimizer,
            &times.gather_parameters, &times.gather_first_bucket};
}

std::int64_t iteration_of(const RandomPlan& random) {
    return Evaluator(random.plan, random.tied_embedding).iteration_time(random.times).ns();
}

TEST(ScheduleProperty, NothingGetsFasterWhenAnOperationTakesLonger) {
    for (std::uint64_t seed = 1; seed <= schedule_seeds(300); ++seed) {
        RandomPlan random = random_plan(seed);
        Evaluator evaluator(random.plan, random.tied_embedding);
        std::int64_t before = evaluator.iteration_time(random.times).ns();
        std::mt19937_64 choose(seed);
        for (auto* values : durations_of(random.times)) {
            if (values->empty()) continue;
            (*values)[choose() % values->size()] += 1 + static_cast<std::int64_t>(choose() % 500);
            const std::int64_t after = evaluator.iteration_time(random.times).ns();
            ASSERT_GE(after, before) << "seed " << seed << ": " << describe(random);
            before = after;
        }
    }
}

TEST(ScheduleProperty, TakesKTimesAsLongWhenEverythingDoes) {
    for (std::uint64_t seed = 1; seed <= schedule_seeds(300); ++seed) {
        RandomPlan random = random_plan(seed);
        random.times.micro_batch_factor.clear();  // these round
        const std::int64_t once = iteration_of(random);
        for (auto* values : durations_of(random.times))
            for (std::int64_t& ns : *values) ns *= 7;
        ASSERT_EQ(iteration_of(random), 7 * once) << "seed " << seed << ": " << describe(random);
    }
}

TEST(ScheduleProperty, IsNeverFasterThanTheBusiestWorkerNorSlowerThanAllWorkOneAfterTheOther) {
    for (std::uint64_t seed = 1; seed <= schedule_seeds(300); ++seed) {
        const RandomPlan random = random_plan(seed);
        Evaluator evaluator(random.plan, random.tied_embedding);
        const Evaluation evaluation = evaluator.evaluate(random.times);
        Duration busiest;
        for (const WorkerTimes& worker : evaluation.workers) busiest = std::max(busiest, worker.compute);
        ASSERT_GE(evaluation.iteration, busiest) << describe(random);
        std::int64_t serial = 0;
        for (const TimelineEntry& entry : evaluator.timeline(random.times)) serial += entry.end_ns - entry.start_ns;
        ASSERT_LE(evaluation.iteration.ns(), serial) << "seed " << seed << ": " << describe(random);
    }
}

TEST(ScheduleProperty, ReplicasMayChangePlaces) {
    // Renaming replicas changes nothing: what joins them takes the maximum.
    for (std::uint64_t seed = 1; seed <= schedule_seeds(300); ++seed) {
        const RandomPlan random = random_plan(seed);
        RandomPlan turned = random;
        const auto replicas = static_cast<std::size_t>(random.plan.layout.data);
        auto& counts = turned.plan.micro_batches_of_replica;
        std::size_t first_count = static_cast<std::size_t>(counts.front());
        std::rotate(counts.begin(), counts.begin() + 1, counts.end());
        for (auto* values : durations_of(turned.times)) {
            const bool of_replicas = values == &turned.times.forward || values == &turned.times.backward ||
                                     values == &turned.times.backward_input ||
                                     values == &turned.times.backward_weight ||
                                     values == &turned.times.send_activation || values == &turned.times.send_gradient ||
                                     values == &turned.times.delay_activation ||
                                     values == &turned.times.delay_gradient || values == &turned.times.optimizer;
            if (!of_replicas || values->empty()) continue;
            std::rotate(values->begin(), values->begin() + static_cast<std::ptrdiff_t>(values->size() / replicas),
                        values->end());
        }
        auto& factors = turned.times.micro_batch_factor;
        if (!factors.empty())
            std::rotate(factors.begin(), factors.begin() + static_cast<std::ptrdiff_t>(first_count), factors.end());
        ASSERT_EQ(iteration_of(turned), iteration_of(random)) << "seed " << seed << ": " << describe(random);
    }
}

TEST(ScheduleProperty, OverlappingGradientsAndParametersNeverCosts) {
    for (std::uint64_t seed = 1; seed <= schedule_seeds(300); ++seed) {
        RandomPlan random = random_plan(seed);
        random.plan.layout.distributed_optimizer = false;  // with it the tied embedding changes places
        random.plan.layout.overlap_grad_reduce = false;
        const std::int64_t serial = iteration_of(random);
        random.plan.layout.overlap_grad_reduce = true;
        ASSERT_LE(iteration_of(random), serial) << "seed " << seed << ": " << describe(random);
    }
}

TEST(ScheduleProperty, EveryMessageOfTheTimelineFollowsItsProducerAndPrecedesItsConsumer) {
    for (std::uint64_t seed = 1; seed <= schedule_seeds(100); ++seed) {
        const RandomPlan random = random_plan(seed);
        const Layout& layout = random.plan.layout;
        // [worker][chunk][micro-batch] of forwards: a forward starts after the one of the virtual stage before it has
        // ended.
        std::vector<TimelineEntry> forwards;
        const std::vector<TimelineEntry> timeline =
            Evaluator(random.plan, random.tied_embedding).timeline(random.times);
        for (const TimelineEntry& entry : timeline)
            if (static_cast<Op>(entry.op) == Op::kForward) forwards.push_back(entry);
        const auto place = [&](const TimelineEntry& entry) {
            return std::tuple(entry.worker / layout.pipeline, entry.micro_batch,
                              entry.chunk * layout.pipeline + entry.worker % layout.pipeline);
        };
        std::sort(forwards.begin(), forwards.end(),
                  [&](const TimelineEntry& a, const TimelineEntry& b) { return place(a) < place(b); });
        for (std::size_t i = 1; i < forwards.size(); ++i) {
            if (std::get<2>(place(forwards[i])) == 0) continue;
            ASSERT_GE(forwards[i].start_ns, forwards[i - 1].end_ns) << "seed " << seed << ": " << describe(random);
        }
    }
}

}  // namespace
}  // namespace headway::scenarios::timing_test
