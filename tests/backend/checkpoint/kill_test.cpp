#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <random>
#include <thread>

#include "backend/checkpoint/checkpoint.h"
#include "backend/checkpoint/checkpoint_folder.h"
#include "backend/host/host_device.h"
#include "tests/backend/checkpoint/saved_state.h"
#include "tests/backend/local_ranks.h"
#include "tests/paths.h"
#include "tests/scenarios/transfer/small_plans.h"

namespace headway::backend {
namespace {

/// About 2 MB of state, so that there is time to die in while it is written.
scenarios::Job job_of_some_size() {
    scenarios::Job job = scenarios::transfer_test::tiny_job(true, 4);
    job.model.hidden = 64;
    job.model.head_dim = 16;
    job.model.ffn = 128;
    return job;
}

/// Saves step after step, until it is killed.
void save_for_ever(LocalRank& local, const std::filesystem::path& folder, const scenarios::Job& job,
                   const scenarios::Plan& plan) {
    const auto device = make_host_device();
    PlanState state(job, plan, local.rank, *device);
    CheckpointStore store(folder, local.control);
    const std::optional<CheckpointInfo> newest = store.newest();
    for (int step = newest ? static_cast<int>(newest->step) + 1 : 1;; ++step) {
        state.fill(step);
        store.save(job, plan, {step, 1, ""}, *device, state.slices());
    }
}

/// The whole job, or one process of it, is killed at random moments, again and again, in one folder; what is newest
/// then loads and is whole, under another plan, and the job goes on from it.
TEST(KilledJob, LeavesAWholeCheckpoint) {
    const ScratchFolder folder;
    const scenarios::Job job = job_of_some_size();
    scenarios::Layout layout;
    layout.pipeline = 2;
    const scenarios::Plan pipeline = scenarios::transfer_test::even_plan(job, layout);
    const scenarios::Plan one = scenarios::transfer_test::even_plan(job, {});
    std::mt19937_64 random(5);
    std::int64_t last = 0;
    for (int kill = 0; kill < (tests::long_tests() ? 300 : 25); ++kill) {
        LocalRanksOptions options;
        options.meanwhile = [&](const std::vector<int>& processes) {
            // Every other one is let live until it has saved; the others die at once, or nearly.
            const auto saved = [&] {
                const auto names = complete_checkpoints(folder.path());
                return !names.empty() && names.back().step > last;
            };
            while (kill % 2 == 0 && !saved()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
            std::this_thread::sleep_for(std::chrono::microseconds(random() % 60'000));
            for (const int process : processes)
                if (kill % 3 == 0 || process == processes[static_cast<std::size_t>(kill % 3 - 1)])
                    ::kill(process, SIGKILL);
        };
        const auto outcomes = rank_outcomes(
            2,
            [&](LocalRank& local) -> std::string {
                save_for_ever(local, folder.path(), job, pipeline);
                return "";
            },
            options);
        for (const RankOutcome& outcome : outcomes)
            EXPECT_TRUE(outcome.signal == SIGKILL || !outcome.error.empty()) << "who lives hears of it";
        run_ranks(1, [&](LocalRank& local) {
            const auto device = make_host_device();
            PlanState state(job, one, 0, *device);
            CheckpointStore store(folder.path(), local.control);
            const std::optional<CheckpointInfo> newest = store.newest();
            ASSERT_TRUE(newest.has_value());
            EXPECT_GE(newest->step, last);
            store.load(job, *newest, *device, state.slices());
            EXPECT_EQ(state.difference(static_cast<int>(newest->step)), "") << "after kill " << kill;
        });
        ASSERT_FALSE(::testing::Test::HasFailure());
        last = complete_checkpoints(folder.path()).back().step;
    }
    EXPECT_GE(last, 13) << "it went on in between";
}

}  // namespace
}  // namespace headway::backend
