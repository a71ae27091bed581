#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>
#include <string>
#include <vector>

#include "backend/backend_error.h"
#include "tests/backend/local_ranks.h"

namespace headway::backend {
namespace {

std::vector<int> everybody(int size) {
    std::vector<int> members(static_cast<std::size_t>(size));
    std::iota(members.begin(), members.end(), 0);
    return members;
}

TEST(LocalRanks, TellTheTestWhatFailedInThem) {
    const auto outcomes = rank_outcomes(3, [](LocalRank& local) -> std::string {
        if (local.rank == 1) throw std::runtime_error("one failed");
        EXPECT_NE(local.rank, 2);
        return "rank " + std::to_string(local.rank);
    });
    ASSERT_EQ(outcomes.size(), 3u);
    EXPECT_TRUE(outcomes[0].finished());
    EXPECT_EQ(outcomes[0].result, "rank 0");
    EXPECT_EQ(outcomes[1].error, "one failed");
    ASSERT_EQ(outcomes[2].failures.size(), 1u);
    EXPECT_THAT(outcomes[2].failures[0], ::testing::HasSubstr("local.rank"));
}

TEST(HostCommunicator, AddsUpOverAGroup) {
    run_ranks(4, [](LocalRank& local) {
        const auto groups = local.communicators.make({{"all", everybody(local.size)}});
        for (const std::int64_t count : {1, 1000, 100'000, 1'000'003}) {
            std::vector<float> values(static_cast<std::size_t>(count), static_cast<float>(local.rank + 1));
            const Tensor tensor{values.data(), DataType::kFloat32, 1, count, count};
            groups[0]->all_reduce(tensor, ReduceOperation::kSum)->wait();
            for (const float value : values) ASSERT_EQ(value, 10.0f);
        }
    });
}

}  // namespace
}  // namespace headway::backend
