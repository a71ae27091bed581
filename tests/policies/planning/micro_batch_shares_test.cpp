#include "policies/planning/micro_batch_shares.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <random>

#include <gtest/gtest.h>

namespace headway::policies {
namespace {

double slowest(const std::vector<int>& shares, const ReplicaTime& time) {
    double most = 0.0;
    for (std::size_t r = 0; r < shares.size(); ++r) most = std::max(most, time(static_cast<int>(r), shares[r]));
    return most;
}

/// Least time of the slowest replica over all shares; infinite where there are none.
double by_trying_all(int replica, int replicas, int left, const ShareLimits& limits, const ReplicaTime& time) {
    if (replica == replicas) return left == 0 ? 0.0 : std::numeric_limits<double>::infinity();
    double best = std::numeric_limits<double>::infinity();
    for (int share = limits.multiple; share <= left; share += limits.multiple) {
        if (!limits.most.empty() && share > limits.most[static_cast<std::size_t>(replica)]) break;
        best = std::min(
            best, std::max(time(replica, share), by_trying_all(replica + 1, replicas, left - share, limits, time)));
    }
    return best;
}

TEST(MicroBatchShares, AreTheBestOfAllForRandomMonotoneTimes) {
    std::mt19937_64 random(3);
    const auto pick = [&](int low, int high) { return std::uniform_int_distribution<int>(low, high)(random); };
    int impossible = 0;
    for (int trial = 0; trial < 400; ++trial) {
        const int replicas = pick(1, 4);
        ShareLimits limits;
        limits.multiple = pick(1, 3);
        limits.total = pick(1, 14) * (pick(0, 9) == 0 ? 1 : limits.multiple);
        if (pick(0, 2) == 0)
            for (int r = 0; r < replicas; ++r) limits.most.push_back(pick(1, limits.total));
        std::vector<std::vector<double>> times(static_cast<std::size_t>(replicas));
        for (auto& of_replica : times) {
            of_replica.push_back(0.0);
            for (int m = 0; m < limits.total * 2 + 8; ++m) of_replica.push_back(of_replica.back() + pick(0, 5));
        }
        const ReplicaTime time = [&](int r, int m) {
            return times[static_cast<std::size_t>(r)][static_cast<std::size_t>(m)];
        };
        const double best = by_trying_all(0, replicas, limits.total, limits, time);
        const auto shares = share_micro_batches(replicas, limits, time);
        ASSERT_EQ(shares.has_value(), best < std::numeric_limits<double>::infinity()) << "trial " << trial;
        if (!shares) {
            ++impossible;
            continue;
        }
        EXPECT_EQ(slowest(*shares, time), best) << "trial " << trial;
        EXPECT_EQ(std::accumulate(shares->begin(), shares->end(), 0), limits.total);
        for (std::size_t r = 0; r < shares->size(); ++r) {
            EXPECT_EQ((*shares)[r] % limits.multiple, 0);
            EXPECT_LE((*shares)[r], limits.most.empty() ? limits.total : limits.most[r]);
        }
    }
    EXPECT_GT(impossible, 10);
}

/// One at a time to whoever is done first with it, of equals to the first.
std::vector<int> one_by_one(int replicas, const ShareLimits& limits, const ReplicaTime& time) {
    std::vector<int> shares(static_cast<std::size_t>(replicas), limits.multiple);
    for (int left = limits.total - replicas * limits.multiple; left > 0; left -= limits.multiple) {
        int best = -1;
        double least = std::numeric_limits<double>::infinity();
        for (int r = 0; r < replicas; ++r) {
            const int more = shares[static_cast<std::size_t>(r)] + limits.multiple;
            if (!limits.most.empty() && more > limits.most[static_cast<std::size_t>(r)]) continue;
            if (time(r, more) >= least) continue;
            least = time(r, more);
            best = r;
        }
        if (best < 0) return {};
        shares[static_cast<std::size_t>(best)] += limits.multiple;
    }
    return shares;
}

TEST(MicroBatchShares, OfManyAreThoseGivenOutOneByOne) {
    std::mt19937_64 random(4);
    const auto pick = [&](int low, int high) { return std::uniform_int_distribution<int>(low, high)(random); };
    for (int trial = 0; trial < 200; ++trial) {
        const int replicas = pick(1, 12);
        ShareLimits limits;
        limits.multiple = pick(1, 4);
        limits.total = replicas * limits.multiple * pick(4, 60) + limits.multiple * pick(0, replicas);
        if (trial % 4 == 0)
            for (int r = 0; r < replicas; ++r) limits.most.push_back(limits.total / replicas + pick(-8, 30));
        std::vector<double> first, each, bend;
        for (int r = 0; r < replicas; ++r) {
            first.push_back(pick(1, 50));
            each.push_back(pick(1, 6) * 0.5);
            bend.push_back(trial % 3 == 0 ? pick(0, 100) : 0);
        }
        const ReplicaTime time = [&](int r, int m) {
            const auto i = static_cast<std::size_t>(r);
            return first[i] + each[i] * m + std::max(0.0, m - bend[i]) * (bend[i] > 0.0 ? 1.5 : 0.0);
        };
        const auto shares = share_micro_batches(replicas, limits, time);
        EXPECT_EQ(shares.value_or(std::vector<int>()), one_by_one(replicas, limits, time)) << "trial " << trial;
    }
}

TEST(MicroBatchShares, GiveASlowReplicaLess) {
    // Replica 0 takes 2.5 times as long: 64 = m + 3 x 2.5 m at best.
    const auto shares = share_micro_batches(4, {64, 1, {}}, [](int r, int m) { return (r == 0 ? 2.5 : 1.0) * m; });
    ASSERT_TRUE(shares);
    EXPECT_EQ(shares->front(), 7);
    EXPECT_EQ(*std::max_element(shares->begin(), shares->end()), 19);
}

TEST(MicroBatchShares, OfEqualReplicasAreEven) {
    const auto shares = share_micro_batches(3, {12, 2, {}}, [](int, int m) { return 1.0 * m; });
    EXPECT_EQ(shares, (std::vector<int>{4, 4, 4}));
}

}  // namespace
}  // namespace headway::policies
