#include "backend/cluster/real_cluster.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <chrono>
#include <cmath>
#include <sstream>
#include <thread>

#include "backend/backend_error.h"
#include "tests/backend/cluster/small_deployment.h"

namespace headway::backend {
namespace {

using policies::Measurements;
using scenarios::Duration;
using ::testing::AnyOf;
using ::testing::HasSubstr;

/// Losses of the iterations, in order.
class Losses final : public scenarios::RunSink {
  public:
    void iteration(const scenarios::IterationEvent& event) override {
        indices.push_back(event.index);
        losses.push_back(event.loss.value_or(-1.0));
        EXPECT_GT(event.duration_ns, 0);
        EXPECT_GE(event.start_ns, end_ns);
        end_ns = event.start_ns + event.duration_ns;
    }
    void pause(const scenarios::PauseEvent& event) override {
        EXPECT_GE(event.start_ns, end_ns);
        end_ns = event.start_ns + event.duration_ns;
        pauses.push_back(event.what);
    }
    std::vector<std::int64_t> indices;
    std::vector<double> losses;
    std::vector<std::string> pauses;
    std::int64_t end_ns = 0;
};

std::string text_of(const std::vector<double>& values) {
    std::string text;
    char number[32];
    for (const double value : values) {
        std::snprintf(number, sizeof number, "%.9g ", value);
        text += number;
    }
    return text;
}

std::vector<double> values_of(const std::string& text) {
    std::istringstream stream(text);
    std::vector<double> values;
    for (double value = 0.0; stream >> value;) values.push_back(value);
    return values;
}

void expect_same_curve(const std::string& a, const std::string& b) {
    const std::vector<double> one = values_of(a), other = values_of(b);
    ASSERT_EQ(one.size(), other.size());
    ASSERT_FALSE(one.empty());
    for (std::size_t i = 0; i < one.size(); ++i) EXPECT_NEAR(one[i] / other[i], 1.0, 1e-5) << "iteration " << i;
}

/// Loss curve of 12 iterations; `change` says under which plan to go on after 6 of them.
std::string curve(const scenarios::Scenario& scenario,
                  const std::function<scenarios::Plan(const scenarios::Plan&)>& change = {}) {
    Losses sink;
    const std::vector<RankOutcome> outcomes = deploy_locally(
        scenario,
        [&](RealCluster& cluster) {
            scenarios::Plan plan = cluster.facts().initial_plan;
            EXPECT_EQ(cluster.run(plan, 6).iterations.size(), 6u);
            if (change) {
                plan = change(plan);
                const Duration before = cluster.now();
                EXPECT_GT(cluster.move_to(plan), Duration());
                EXPECT_GT(cluster.now(), before);
                EXPECT_EQ(sink.pauses.size(), 1u);
            }
            EXPECT_EQ(cluster.run(plan, 6).iterations.size(), 6u);
            return text_of(sink.losses);
        },
        {}, &sink);
    for (const RankOutcome& outcome : outcomes) EXPECT_TRUE(outcome.finished()) << outcome.error;
    return outcomes.front().result;
}

TEST(RealCluster, LearnsFromTheText) {
    const std::vector<double> losses = values_of(curve(small_deployment()));
    ASSERT_EQ(losses.size(), 12u);
    EXPECT_NEAR(losses.front(), std::log(256.0), 0.1) << "it knows nothing yet: the acceptance run is forgotten";
    EXPECT_LT(losses.back(), losses.front() - 0.5);
}

TEST(RealCluster, ASwitchOfPlansDoesNotChangeWhatIsLearned) {
    const std::string undisturbed = curve(small_deployment());
    expect_same_curve(undisturbed, curve(small_deployment(), [](scenarios::Plan plan) {
                          plan.micro_batches_of_replica = {5, 11};
                          return plan;
                      }));
    expect_same_curve(undisturbed, curve(small_deployment(), [](scenarios::Plan plan) {
                          plan.layers_of_cell = {3, 1, 1, 3};
                          std::swap(plan.gpu_of_rank[0], plan.gpu_of_rank[3]);
                          return plan;
                      }));
    const scenarios::Scenario sharded =
        small_deployment("{data: 2, tensor: 2, distributed_optimizer: true, sequence_parallel: true}");
    const scenarios::Plan other = initial_plan_of(sharded);
    expect_same_curve(undisturbed, curve(small_deployment(), [&](const scenarios::Plan&) { return other; }));
    const scenarios::Plan piped = initial_plan_of(small_deployment());
    expect_same_curve(undisturbed, curve(sharded, [&](const scenarios::Plan&) { return piped; }));
}

TEST(RealCluster, BeginsAnewUnderTheInitialPlan) {
    Losses sink;
    const auto outcomes = deploy_locally(
        small_deployment(),
        [&](RealCluster& cluster) {
            const scenarios::Plan initial = cluster.facts().initial_plan;
            cluster.run(initial, 3);
            scenarios::Plan other = initial;
            std::swap(other.gpu_of_rank[0], other.gpu_of_rank[1]);
            cluster.run(other, 2);
            EXPECT_EQ(sink.pauses.size(), 1u) << "run moves first";
            cluster.start_episode(1);
            EXPECT_EQ(cluster.now(), Duration());
            sink.end_ns = 0;
            cluster.run(initial, 3);
            EXPECT_EQ(sink.pauses.size(), 1u) << "it is there already";
            EXPECT_EQ(std::vector(sink.losses.begin(), sink.losses.begin() + 3),
                      std::vector(sink.losses.end() - 3, sink.losses.end()));
            return "";
        },
        {}, &sink);
    for (const RankOutcome& outcome : outcomes) EXPECT_TRUE(outcome.finished()) << outcome.error;
}

TEST(RealCluster, LeavesProcessesOutAndTakesThemBack) {
    const std::string undisturbed = curve(small_deployment());
    const scenarios::Plan half =
        initial_plan_of(small_deployment("{pipeline: 2, placement: [2, 3]}"));  // process 0 idles, and commands
    expect_same_curve(undisturbed, curve(small_deployment(), [&](const scenarios::Plan&) { return half; }));
    const scenarios::Scenario small = small_deployment("{pipeline: 2, placement: [2, 3]}");
    const scenarios::Plan all = initial_plan_of(small_deployment());
    expect_same_curve(undisturbed, curve(small, [&](const scenarios::Plan&) { return all; }));
}

TEST(RealCluster, MeasuresASlowRank) {
    const scenarios::Scenario scenario = small_deployment("{data: 4}",
                                                          "deploy: {pace: 40}\ndisturbances: [{start: 0 s, co_tenant: "
                                                          "{gpu: 2, compute_share: 0.6, memory_share: 0.6}}]\n");
    deployed(scenario, [&](RealCluster& cluster) {
        const Measurements measured = cluster.run(cluster.facts().initial_plan, 4);
        const auto compute = [&](std::size_t rank) { return measured.ranks.at(rank).compute.s(); };
        EXPECT_GT(compute(2), 1.8 * compute(1)) << "slowed 2.5 times";
        EXPECT_GT(measured.ranks[1].idle, measured.ranks[2].idle);
        EXPECT_GT(measured.iterations[1], cluster.facts().healthy_iteration.scaled(1.3));
        EXPECT_FALSE(measured.groups.empty());
        const auto summaries = cluster.gpu_summaries();
        EXPECT_LT(summaries[2].mean_speed, 0.6);
        EXPECT_GT(summaries[1].mean_speed, summaries[2].mean_speed * 1.5);
        return "";
    });
}

TEST(RealCluster, TellsTheOthersWhenTheRunFailsOnProcess0) {
    const auto outcomes = deploy_locally(small_deployment(), [](RealCluster& cluster) -> std::string {
        cluster.run(cluster.facts().initial_plan, 2);
        throw std::runtime_error("the policy has a bug");
    });
    EXPECT_EQ(outcomes[0].error, "the policy has a bug");
    for (std::size_t rank = 1; rank < 4; ++rank) EXPECT_THAT(outcomes[rank].error, HasSubstr("ended early")) << rank;
}

TEST(RealCluster, AKilledProcessEndsTheRunEverywhere) {
    const scenarios::Scenario scenario =
        small_deployment("{data: 2, pipeline: 2}", "disturbances: [{start: 200 ms, gpu_loss: {gpu: 3}}]\n");
    const auto begin = std::chrono::steady_clock::now();
    const auto outcomes = deploy_locally(scenario, [](RealCluster& cluster) -> std::string {
        cluster.run(cluster.facts().initial_plan, 1000);
        return "";
    });
    EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(20)) << "far below the timeout";
    EXPECT_EQ(outcomes[3].signal, SIGKILL);
    for (std::size_t rank = 0; rank < 3; ++rank) {
        EXPECT_EQ(outcomes[rank].signal, 0) << rank;
        EXPECT_NE(outcomes[rank].error, "") << rank;
    }
    EXPECT_THAT(outcomes[0].error, HasSubstr("3")) << "who is lost";
}

TEST(RealCluster, AProcessThatHangsEndsTheRunAfterTheTimeout) {
    const scenarios::Scenario scenario = small_deployment("{data: 2, pipeline: 2}", "deploy: {timeout: 2 s}\n");
    LocalRanksOptions ranks;
    ranks.timeout = std::chrono::seconds(2);
    int stopped = 0;
    std::thread killer;
    ranks.meanwhile = [&](const std::vector<int>& processes) {
        stopped = processes[2];
        killer = std::thread([pid = stopped] {
            std::this_thread::sleep_for(std::chrono::milliseconds(1500));
            ::kill(pid, SIGSTOP);
            std::this_thread::sleep_for(std::chrono::seconds(8));
            ::kill(pid, SIGKILL);
        });
    };
    const auto outcomes = deploy_locally(
        scenario,
        [](RealCluster& cluster) -> std::string {
            const auto begin = std::chrono::steady_clock::now();
            try {
                cluster.run(cluster.facts().initial_plan, 100'000);
            } catch (const BackendError& error) {
                EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(9));
                throw;
            }
            return "";
        },
        {}, nullptr, ranks);
    killer.join();
    EXPECT_EQ(outcomes[2].signal, SIGKILL);
    for (const std::size_t rank : {0u, 1u, 3u}) {
        EXPECT_EQ(outcomes[rank].signal, 0) << rank;
        EXPECT_NE(outcomes[rank].error, "") << rank;
        EXPECT_EQ(outcomes[rank].failures.size(), 0u) << rank;
    }
}

TEST(RealCluster, APolicyMayThinkLongerThanTheTimeout) {
    const scenarios::Scenario scenario = small_deployment("{data: 2, pipeline: 2}", "deploy: {timeout: 1 s}\n");
    LocalRanksOptions ranks;
    ranks.timeout = std::chrono::seconds(1);
    const auto outcomes = deploy_locally(
        scenario,
        [](RealCluster& cluster) {
            for (int i = 0; i < 2; ++i) {
                EXPECT_EQ(cluster.run(cluster.facts().initial_plan, 2).iterations.size(), 2u);
                std::this_thread::sleep_for(std::chrono::milliseconds(1800));
            }
            return "";
        },
        {}, nullptr, ranks);
    for (const RankOutcome& outcome : outcomes) EXPECT_TRUE(outcome.finished()) << outcome.error;
}

TEST(RealCluster, EndsAfterTheIterationWhenOneIsAskedTo) {
    DeploymentOptions options;
    int asked = 0;
    options.asked_to_stop = [&] { return ++asked > 7; };  // acceptance run included: after the third of the episode
    const auto outcomes = deploy_locally(
        small_deployment(),
        [](RealCluster& cluster) {
            const Measurements measured = cluster.run(cluster.facts().initial_plan, 10);
            EXPECT_LT(measured.iterations.size(), 10u);
            EXPECT_TRUE(measured.ended);
            EXPECT_TRUE(cluster.stopped());
            EXPECT_TRUE(cluster.run(cluster.facts().initial_plan, 10).iterations.empty());
            return "";
        },
        options);
    for (const RankOutcome& outcome : outcomes) EXPECT_TRUE(outcome.finished()) << outcome.error;
}

TEST(RealCluster, ADataFileThatIsNotThereIsToldByAllProcesses) {
    DeploymentOptions options;
    options.data = "/nonexistent/book.txt";
    const auto outcomes = deploy_locally(
        small_deployment(), [](RealCluster&) { return ""; }, options);
    for (const RankOutcome& outcome : outcomes) EXPECT_THAT(outcome.error, HasSubstr("/nonexistent/book.txt"));
}

}  // namespace
}  // namespace headway::backend
