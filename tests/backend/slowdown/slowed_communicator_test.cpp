#include "backend/slowdown/slowed_communicator.h"

#include <gtest/gtest.h>

#include <chrono>

#include "tests/backend/cluster/small_deployment.h"

namespace headway::backend {
namespace {

using Clock = std::chrono::steady_clock;

Tensor tensor_of(std::vector<float>& values) {
    const auto count = static_cast<std::int64_t>(values.size());
    return {values.data(), DataType::kFloat32, 1, count, count};
}

double milliseconds_since(Clock::time_point begin) {
    return std::chrono::duration<double, std::milli>(Clock::now() - begin).count();
}

const std::string kDelayed = "disturbances: [{start: 0 s, link_delay: {node_network: 0, delay: 40 ms}}]\n";

TEST(SlowedCommunicators, HoldMessagesBackAndKeepTheirOrderAndContent) {
    const scenarios::Scenario scenario = small_deployment("{data: 2, pipeline: 2}", kDelayed);
    run_ranks(4, [&](LocalRank& local) {
        const PhysicalDisturbances disturbances(scenario);
        EpisodeClock clock;
        SlowedCommunicators maker(local.communicators, disturbances, clock);
        maker.place(initial_plan_of(scenario));
        auto across = std::move(maker.make({{"across nodes", {0, 2}}}).front());
        clock.start();
        if (!across) return;
        std::vector<float> first(3, static_cast<float>(local.rank)), second(3, 10.0f + static_cast<float>(local.rank));
        std::vector<float> sum(4, 1.0f + static_cast<float>(local.rank));
        const auto begin = Clock::now();
        const bool sends = local.rank == 0;
        const std::vector<Message> one = {{sends, sends ? 1 : 0, tensor_of(first)}};
        const std::vector<Message> two = {{sends, sends ? 1 : 0, tensor_of(second)}};
        const auto a = across->exchange(one);
        const auto b = across->exchange(two);
        b->wait();
        a->wait();
        EXPECT_TRUE(a->done());
        EXPECT_GE(milliseconds_since(begin), sends ? 0.0 : 39.0);
        EXPECT_EQ(first, std::vector<float>(3, 0.0f));
        EXPECT_EQ(second, std::vector<float>(3, 10.0f));
        const auto before = Clock::now();
        across->all_reduce(tensor_of(sum), ReduceOperation::kSum)->wait();
        EXPECT_GE(milliseconds_since(before), 159.0) << "two passes over two nodes";
        EXPECT_EQ(sum, std::vector<float>(4, 4.0f));
    });
}

TEST(SlowedCommunicators, LeaveLinksAloneThatNobodySlows) {
    const scenarios::Scenario scenario = small_deployment("{data: 2, pipeline: 2}", kDelayed);
    run_ranks(4, [&](LocalRank& local) {
        const PhysicalDisturbances disturbances(scenario);
        EpisodeClock clock;
        SlowedCommunicators maker(local.communicators, disturbances, clock);
        maker.place(initial_plan_of(scenario));
        auto inside = std::move(maker.make({{"inside node 1", {2, 3}}}).front());
        clock.start();
        if (!inside) return;
        std::vector<float> values(4, 1.0f);
        double best = 1e9;
        for (int i = 0; i < 5; ++i) {
            const auto begin = Clock::now();
            inside->all_reduce(tensor_of(values), ReduceOperation::kSum)->wait();
            best = std::min(best, milliseconds_since(begin));
        }
        EXPECT_LT(best, 35.0);
    });
}

TEST(SlowedCommunicators, ALostPeerEndsCallsThatAreHeldBack) {
    const scenarios::Scenario scenario = small_deployment("{data: 2, pipeline: 2}", kDelayed);
    const auto outcomes = rank_outcomes(4, [&](LocalRank& local) -> std::string {
        const PhysicalDisturbances disturbances(scenario);
        EpisodeClock clock;
        SlowedCommunicators maker(local.communicators, disturbances, clock);
        maker.place(initial_plan_of(scenario));
        auto across = std::move(maker.make({{"across nodes", {0, 2}}}).front());
        clock.start();
        if (!across) return "";
        std::vector<float> values(4, 1.0f);
        if (local.rank == 2) throw std::runtime_error("gone");
        across->all_reduce(tensor_of(values), ReduceOperation::kSum)->wait();
        return "done";
    });
    EXPECT_NE(outcomes[0].error, "") << "it must not wait for ever, nor succeed";
    EXPECT_EQ(outcomes[2].error, "gone");
}

}  // namespace
}  // namespace headway::backend
