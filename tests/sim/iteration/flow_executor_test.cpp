#include "sim/iteration/flow_executor.h"

#include <gtest/gtest.h>

#include <numeric>
#include <vector>

#include "scenarios/timing/evaluator.h"
#include "tests/paths.h"
#include "tests/property/random_plans.h"

namespace headway::sim {
namespace {

using scenarios::timing_test::random_plan;
using scenarios::timing_test::RandomPlan;

std::vector<int> all_replicas(const scenarios::Plan& plan) {
    std::vector<int> replicas(static_cast<std::size_t>(plan.layout.data));
    std::iota(replicas.begin(), replicas.end(), 0);
    return replicas;
}

Route port_to_port(int from, int to) {
    Route r;
    r.source = from;
    r.sink = to;
    r.links = {2 * from, 2 * to + 1};
    r.count = 2;
    return r;
}

/// Every worker has a port of 1 GB/s each way: links 2w and 2w+1. Messages carry what fills their send time.
FlowExecutor::Tables tables_of(const RandomPlan& random) {
    const scenarios::Layout& layout = random.plan.layout;
    const int p = layout.pipeline;
    const int v = layout.virtual_pipeline;
    FlowExecutor::Tables tables;
    for (int replica = 0; replica < layout.data; ++replica) {
        for (int stage = 0; stage < p; ++stage) {
            for (int chunk = 0; chunk < v; ++chunk) {
                const auto cell = static_cast<std::size_t>((replica * p + stage) * v + chunk);
                const auto message = [&](const std::vector<std::int64_t>& sends, int other) {
                    const double bytes = sends.empty() ? 0.0 : static_cast<double>(sends[cell]);
                    return MessagePath{bytes > 0.0 && p > 1, port_to_port(replica * p + stage, replica * p + other),
                                       bytes};
                };
                tables.activation.push_back(message(random.times.send_activation, (stage + 1) % p));
                tables.gradient.push_back(message(random.times.send_gradient, (stage + p - 1) % p));
            }
        }
    }
    tables.rings.resize(static_cast<std::size_t>(p));
    for (int stage = 0; stage < p && layout.data > 1; ++stage)
        for (int replica = 0; replica < layout.data; ++replica)
            tables.rings[static_cast<std::size_t>(stage)].push_back(
                {replica, port_to_port(replica * p + stage, (replica + 1) % layout.data * p + stage)});
    const auto ring_bytes = [&](const std::vector<std::int64_t>& times) {
        std::vector<double> bytes(static_cast<std::size_t>(p * v), 0.0);
        for (std::size_t i = 0; i < times.size(); ++i) bytes[i] = 0.7 * static_cast<double>(times[i]);
        return bytes;
    };
    tables.reduce_bytes = ring_bytes(random.times.reduce_gradients);
    tables.gather_bytes = ring_bytes(random.times.gather_parameters);
    return tables;
}

FlowExecutor executor_of(const RandomPlan& random) {
    const scenarios::Plan& plan = random.plan;
    return FlowExecutor(scenarios::iteration_graph(plan.layout, random.tied_embedding, all_replicas(plan),
                                                   plan.micro_batches_of_replica),
                        plan.layout, all_replicas(plan), tables_of(random), 2 * plan.workers());
}

IterationState state_of(const RandomPlan& random, const FlowExecutor& executor) {
    return {scenarios::task_durations(executor.graph(), random.plan.layout, random.plan.micro_batches_of_replica,
                                      random.times),
            std::vector<double>(static_cast<std::size_t>(2 * random.plan.workers()), 1e9),
            {}};
}

FlowNetwork ports(int workers) {
    std::vector<LinkPath> sources, sinks;
    for (int w = 0; w < workers; ++w) {
        sources.push_back({2 * w});
        sinks.push_back({2 * w + 1});
    }
    return FlowNetwork(std::vector<double>(static_cast<std::size_t>(2 * workers), 1.0), sources, sinks);
}

TEST(FlowExecutor, WithoutContentionIsTheLongestPathToTheNanosecond) {
    const std::uint64_t seeds = headway::tests::long_tests() ? 5000 : 400;
    for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
        const RandomPlan random = random_plan(seed);
        scenarios::Evaluator evaluator(random.plan, random.tied_embedding);
        FlowExecutor executor = executor_of(random);
        const IterationOutcome outcome = executor.run(state_of(random, executor), {}, nullptr);
        ASSERT_EQ(outcome.duration_ns, evaluator.iteration_time(random.times).ns())
            << "seed " << seed << ": " << describe(random);
    }
}

TEST(FlowExecutor, WhereNothingContendsTheNetworkIsNotAsked) {
    const std::uint64_t seeds = headway::tests::long_tests() ? 1000 : 150;
    FlowNetwork network = ports(24);
    int contended = 0, uncontended = 0;
    for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
        const RandomPlan random = random_plan(seed);
        FlowExecutor executor = executor_of(random);
        const IterationState state = state_of(random, executor);
        const std::int64_t alone = executor.run(state, {}, nullptr).duration_ns;
        const IterationOutcome outcome = executor.run(state, {}, &network);
        if (outcome.contended_flows == 0) {
            ++uncontended;
            ASSERT_EQ(outcome.duration_ns, alone) << "seed " << seed << ": " << describe(random);
        } else {
            ++contended;
        }
        const IterationOutcome again = executor.run(state, {}, &network);
        ASSERT_EQ(outcome.duration_ns, again.duration_ns) << "seed " << seed << ": " << describe(random);
    }
    EXPECT_GT(contended, 10);
    EXPECT_GT(uncontended, 10);
}

TEST(FlowExecutor, AgreesWithANetworkThatCarriesEveryFlow) {
    // Durations in microseconds, so that the rounding of each flow to a nanosecond is small beside them.
    const std::uint64_t seeds = headway::tests::long_tests() ? 1000 : 150;
    FlowNetwork network = ports(24);
    int contended = 0;
    for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
        RandomPlan random = random_plan(seed);
        for (auto* values :
             {&random.times.forward, &random.times.backward, &random.times.backward_input,
              &random.times.backward_weight, &random.times.send_activation, &random.times.send_gradient,
              &random.times.delay_activation, &random.times.delay_gradient, &random.times.reduce_gradients,
              &random.times.reduce_last_bucket, &random.times.reduce_tied_embedding, &random.times.optimizer,
              &random.times.gather_parameters, &random.times.gather_first_bucket})
            for (std::int64_t& value : *values) value *= 1000;
        FlowExecutor executor = executor_of(random);
        const IterationState state = state_of(random, executor);
        const IterationOutcome lazy = executor.run(state, {}, &network);
        executor.hand_over_everything(true);
        const IterationOutcome plain = executor.run(state, {}, &network);
        contended += lazy.contended_flows > 0 ? 1 : 0;
        // Within 100 ns of an iteration of some milliseconds: the network rounds the end of every flow.
        ASSERT_NEAR(static_cast<double>(lazy.duration_ns), static_cast<double>(plain.duration_ns), 100.0)
            << "seed " << seed << ": " << describe(random);
    }
    EXPECT_GT(contended, 10);
}

TEST(FlowExecutor, AChangeThatChangesNothingChangesNothing) {
    FlowNetwork network = ports(24);
    for (std::uint64_t seed = 1; seed <= 60; ++seed) {
        const RandomPlan random = random_plan(seed);
        FlowExecutor executor = executor_of(random);
        const IterationState state = state_of(random, executor);
        const std::int64_t plain = executor.run(state, {}, &network).duration_ns;
        EXPECT_EQ(executor.run(state, {{plain / 3, state}, {plain / 2, state}}, &network).duration_ns, plain)
            << "seed " << seed << ": " << describe(random);
    }
}

TEST(FlowExecutor, WorkInProgressFinishesAtTheNewPace) {
    // One worker, one micro-batch of 100 + 200; at 150 everything becomes twice as slow: 150 done, the other 150 take
    // 300.
    RandomPlan random;
    random.plan.layout = {};
    random.plan.micro_batches_of_replica = {1};
    random.times.forward = {100};
    random.times.backward = {200};
    FlowExecutor executor = executor_of(random);
    IterationState fast = state_of(random, executor);
    IterationState slow = fast;
    for (std::int64_t& duration : slow.durations) duration *= 2;
    const IterationOutcome outcome = executor.run(fast, {{150, slow}}, nullptr);
    EXPECT_EQ(outcome.duration_ns, 450);
    EXPECT_EQ(outcome.compute_ns, std::vector<std::int64_t>{450});
}

TEST(FlowExecutor, AMessageInFlightFeelsItsLinkSlowDown) {
    // Two stages; forward 100, message of 1000 bytes at 1 byte/ns. At 600 half of it is sent; the rest takes twice as
    // long.
    RandomPlan random;
    random.plan.layout.pipeline = 2;
    random.plan.micro_batches_of_replica = {1};
    random.times.forward = {100, 100};
    random.times.backward = {100, 100};
    random.times.send_activation = {1000, 0};
    random.times.send_gradient = {0, 0};
    FlowNetwork network = ports(2);
    FlowExecutor executor = executor_of(random);
    const IterationState healthy = state_of(random, executor);
    EXPECT_EQ(executor.run(healthy, {}, &network).duration_ns, 100 + 1000 + 100 + 100 + 100);
    IterationState slow = healthy;
    slow.capacity[0] = 0.5e9;
    EXPECT_EQ(executor.run(healthy, {{600, slow}}, &network).duration_ns, 100 + 500 + 1000 + 300);
    EXPECT_EQ(executor.run(healthy, {{600, slow}}, nullptr).duration_ns, 100 + 500 + 1000 + 300)
        << "also without a network";
}

TEST(FlowExecutor, TwoMessagesOverOneLinkTakeTwiceAsLong) {
    // Two replicas of two stages send at the same moment; both senders go through link 8, which carries one of them.
    RandomPlan random;
    random.plan.layout.pipeline = 2;
    random.plan.layout.data = 2;
    random.plan.micro_batches_of_replica = {1, 1};
    random.times.forward = {100, 100, 100, 100};
    random.times.backward = {100, 100, 100, 100};
    random.times.send_activation = {1000, 0, 1000, 0};
    random.times.send_gradient = {0, 0, 0, 0};
    FlowExecutor::Tables tables = tables_of(random);
    for (const std::size_t cell : {0u, 2u}) {
        Route& route = tables.activation[cell].route;
        route.links = {route.links[0], 8, route.links[1], 0};
        route.count = 3;
    }
    std::vector<LinkPath> sources, sinks;
    for (int w = 0; w < 4; ++w) {
        sources.push_back({2 * w, 8});
        sinks.push_back({2 * w + 1});
    }
    FlowNetwork network(std::vector<double>(9, 1.0), sources, sinks);
    const scenarios::Plan& plan = random.plan;
    FlowExecutor executor(
        scenarios::iteration_graph(plan.layout, false, all_replicas(plan), plan.micro_batches_of_replica), plan.layout,
        all_replicas(plan), tables, 9);
    IterationState state = state_of(random, executor);
    state.capacity.push_back(1e9);
    const IterationOutcome outcome = executor.run(state, {}, &network);
    EXPECT_EQ(outcome.contended_flows, 2);
    EXPECT_EQ(outcome.duration_ns, 100 + 2000 + 300);
}

}  // namespace
}  // namespace headway::sim
