#include "policies/planning/plan_memory.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "policies/planning/layout_space.h"
#include "scenarios/language/program.h"
#include "tests/policies/planning/planning_tasks.h"

namespace headway::tests {
namespace {

using policies::LayoutPoint;
using policies::PlanMemory;
using scenarios::Schedule;

TEST(PlanMemory, FurtherMicroBatchesAreNotInFlight) {
    for (const Schedule schedule :
         {Schedule::kGPipe, Schedule::kOneForwardOneBackward, Schedule::kInterleaved, Schedule::kZeroBubble})
        for (int pipeline = 1; pipeline <= 9; ++pipeline)
            for (int chunks = 1; chunks <= 4; ++chunks)
                for (const int memory : {1, 2}) {
                    scenarios::Layout layout = scenarios::layout_of(1, pipeline, 1, chunks);
                    layout.schedule = schedule;
                    layout.zero_bubble_memory = memory;
                    if ((schedule == Schedule::kInterleaved) != (chunks > 1)) continue;
                    if (schedule == Schedule::kInterleaved && pipeline == 1) continue;
                    std::vector<double> weights;
                    for (int c = 0; c < chunks; ++c) weights.push_back(1.0 + 0.3 * c);
                    for (int m = pipeline; m <= 12 * pipeline; m += pipeline)
                        for (int stage = 0; stage < pipeline; ++stage) {
                            const int fewer = policies::micro_batches_in_flight(layout, m);
                            EXPECT_LE(fewer, m);
                            EXPECT_EQ(scenarios::in_flight_at_peak(layout, stage, fewer, weights),
                                      scenarios::in_flight_at_peak(layout, stage, m, weights))
                                << scenarios::describe(layout) << " stage " << stage << " m " << m;
                        }
                }
}

TEST(PlanMemory, IsThatOfTheCosts) {
    policies::PlanningTask task = small_planning_task(2);
    task.job.global_batch = 60;
    const std::vector<scenarios::Bytes> memory = scenarios::memory_of_gpus(task.cluster);
    for (const LayoutPoint& point : policies::layout_points(task, false)) {
        const scenarios::Job job = policies::job_of(task, point);
        const policies::GpuGroups groups(task.cluster, policies::usable_gpus(task), point.layout.tensor);
        const scenarios::Plan plan = policies::even_plan(task, point, groups, policies::GpuOrder::kStagesTogether);
        PlanMemory table(job, point.layout, memory);
        const PlanMemory::Fullest fullest = table.fullest(plan);
        const auto workers = scenarios::worker_memory(job, plan);
        const auto most = std::max_element(workers.begin(), workers.end(),
                                           [](const auto& a, const auto& b) { return a.total() < b.total(); });
        EXPECT_EQ(fullest.needed, most->total()) << scenarios::describe(point.layout);
    }
}

TEST(PlanMemory, MostLayersFitAndOneMoreDoesNot) {
    policies::PlanningTask task = small_planning_task(1);
    task.job.model.layers = 64;
    const LayoutPoint point{scenarios::layout_of(1, 4, 2), 1};
    const std::vector<scenarios::Bytes> memory(8, scenarios::Bytes::gib(6.0));
    const policies::GpuGroups groups(task.cluster, policies::usable_gpus(task), 1);
    const scenarios::Plan plan = policies::even_plan(task, point, groups, policies::GpuOrder::kStagesTogether);
    PlanMemory table(task.job, point.layout, memory);
    for (int stage = 0; stage < 4; ++stage) {
        const int most = table.most_layers(plan, 16, 0, stage);
        EXPECT_GT(most, 1);
        scenarios::MemoryTable exact(task.job, point.layout);
        const std::vector<int> fits = {most}, too_many = {most + 1};
        EXPECT_LE(exact.worker(stage, fits, 16).total(), memory[0]);
        EXPECT_GT(exact.worker(stage, too_many, 16).total(), memory[0]);
    }
}

}  // namespace
}  // namespace headway::tests
