#include "scenarios/costs/collective.h"

#include <gtest/gtest.h>

#include <stdexcept>
#include <vector>

namespace headway::scenarios {
namespace {

constexpr std::int64_t kMiB = 1 << 20;
constexpr std::int64_t kGiB = 1 << 30;

const std::vector<Collective> kCollectives = {
    Collective::kAllReduce, Collective::kReduceScatter, Collective::kAllGather,  Collective::kBroadcast,
    Collective::kReduce,    Collective::kAllToAll,      Collective::kSendReceive};

/// Eight GPUs with 100 GB/s a direction, eight NICs of 10 GB/s; memory passes and latency as each test sets them.
Node plain_node() {
    Node node;
    node.gpus = 8;
    node.nics = 8;
    node.fabric.bandwidth = {100e9};
    node.fabric.copy = {1e30};
    node.network.bandwidth = {10e9};
    return node;
}

Node node_with_latency() {
    Node node = plain_node();
    const auto set = [](Fabric& fabric, double start, double hop, double message) {
        for (FabricProtocol* protocol : {&fabric.low_latency, &fabric.low_latency_128, &fabric.simple}) {
            *protocol = {
                Duration::microseconds(start), Duration::microseconds(hop), Duration::microseconds(message), {}};
            start *= 1.5;
            hop *= 2.0;
            message *= 2.0;
        }
    };
    set(node.fabric, 10.0, 1.0, 0.0);
    set(node.network, 0.0, 5.0, 3.0);
    node.fabric.copy = {400e9};
    return node;
}

double seconds(Collective collective, std::int64_t bytes, const GroupShape& shape, const Node& node) {
    return collective_time(collective, Bytes(bytes), shape, node).s();
}

TEST(Collective, RingBandwidthIsTheClosedForm) {
    const Node node = plain_node();
    const double bytes = static_cast<double>(kGiB);
    for (int n : {2, 3, 8}) {
        const GroupShape shape{.nodes = 1, .ranks_per_node = n};
        EXPECT_NEAR(seconds(Collective::kAllReduce, kGiB, shape, node), 2.0 * (n - 1) / n * bytes / 100e9, 1e-8);
        EXPECT_NEAR(seconds(Collective::kAllGather, kGiB, shape, node), 1.0 * (n - 1) / n * bytes / 100e9, 1e-8);
        EXPECT_NEAR(seconds(Collective::kReduceScatter, kGiB, shape, node), 1.0 * (n - 1) / n * bytes / 100e9, 1e-8);
        EXPECT_NEAR(seconds(Collective::kBroadcast, kGiB, shape, node), bytes / 100e9, 1e-8);
    }
}

TEST(Collective, RingPaysOneHopAStep) {
    Node node = plain_node();
    for (FabricProtocol* protocol : {&node.fabric.low_latency, &node.fabric.low_latency_128, &node.fabric.simple})
        *protocol = {Duration::microseconds(20), Duration::microseconds(2), {}, {}};
    const GroupShape shape{.nodes = 1, .ranks_per_node = 8};
    // A message of no length leaves the start and the 7 steps.
    EXPECT_EQ(collective_time(Collective::kAllGather, Bytes(0), shape, node), Duration::microseconds(20 + 7 * 2));
    EXPECT_EQ(collective_time(Collective::kAllReduce, Bytes(0), shape, node), Duration::microseconds(20 + 14 * 2));
}

TEST(Collective, AllReduceInsideANodePassesTheBufferOnce) {
    Node node = plain_node();
    node.fabric.copy = {500e9};
    const double expected = 2.0 * 3 / 4 * kGiB / 100e9 + kGiB / 500e9;
    EXPECT_NEAR(seconds(Collective::kAllReduce, kGiB, {.nodes = 1, .ranks_per_node = 4}, node), expected, 1e-8);
}

TEST(Collective, AcrossNodesTheNetworkIsTheBottleneck) {
    const Node node = plain_node();
    const double bytes = static_cast<double>(kGiB);
    // One GPU a node: one NIC. Eight GPUs a node: rings over eight NICs.
    EXPECT_NEAR(seconds(Collective::kAllReduce, kGiB, {.nodes = 4, .ranks_per_node = 1}, node), 1.5 * bytes / 10e9,
                1e-6);
    EXPECT_NEAR(seconds(Collective::kAllReduce, kGiB, {.nodes = 4, .ranks_per_node = 8}, node),
                2.0 * 31 / 32 * bytes / 80e9, 1e-6);
}

TEST(Collective, EqualGroupsShareTheNics) {
    Node node = plain_node();
    node.nics = 4;
    const auto time = [&](int groups) {
        return seconds(Collective::kAllGather, kGiB, {.nodes = 4, .ranks_per_node = 1, .groups_per_node = groups},
                       node);
    };
    EXPECT_DOUBLE_EQ(time(1), time(4));         // a NIC each
    EXPECT_NEAR(time(8) / time(4), 2.0, 1e-6);  // two groups a NIC
}

TEST(Collective, MessageBetweenNodesUsesOneNicUnlessGpusHaveMore) {
    Node node = plain_node();
    const GroupShape hop{.nodes = 2};
    EXPECT_NEAR(seconds(Collective::kSendReceive, kGiB, hop, node), kGiB / 10e9, 1e-6);
    node.nics = 32;
    EXPECT_NEAR(seconds(Collective::kSendReceive, kGiB, hop, node), kGiB / 40e9, 1e-6);
    node.nics = 4;
    EXPECT_NEAR(seconds(Collective::kSendReceive, kGiB, {.nodes = 2, .groups_per_node = 8}, node), kGiB / 5e9, 1e-6);
}

TEST(Collective, AllToAllSendsWhatBelongsElsewhere) {
    Node node = plain_node();
    node.network.all_to_all_efficiency = 0.5;
    // Of each rank's buffer 8 of 16 parts leave the node, through a NIC of its own at half its rate.
    EXPECT_NEAR(seconds(Collective::kAllToAll, kGiB, {.nodes = 2, .ranks_per_node = 8}, node), 0.5 * kGiB / 5e9, 1e-6);
}

TEST(Collective, AllToAllInsideANodeRunsAtItsOwnEfficiency) {
    Node node = plain_node();
    node.fabric.all_to_all_efficiency = 0.25;
    EXPECT_NEAR(seconds(Collective::kAllToAll, kGiB, {.nodes = 1, .ranks_per_node = 8}, node), 7.0 / 8 * kGiB / 25e9,
                1e-6);
}

TEST(Collective, MeshOffersAGroupOnlyItsOwnLinks) {
    Node node = plain_node();
    node.fabric.mesh = true;
    const auto time = [&](int ranks) {
        return seconds(Collective::kBroadcast, kGiB, {.nodes = 1, .ranks_per_node = ranks}, node);
    };
    EXPECT_NEAR(time(8), kGiB / 100e9, 1e-8);
    EXPECT_NEAR(time(2), 7.0 * kGiB / 100e9, 1e-8);
    node.fabric.mesh_shares = {0.25, 0.5};
    EXPECT_NEAR(time(2), 4.0 * kGiB / 100e9, 1e-8);
    EXPECT_NEAR(time(3), 2.0 * kGiB / 100e9, 1e-8);
    EXPECT_NEAR(time(8), kGiB / 100e9, 1e-8);
}

TEST(Collective, OneRankCostsNothing) {
    for (Collective collective : kCollectives)
        EXPECT_EQ(collective_cost(collective, Bytes(kGiB), {}, node_with_latency()).time, Duration{})
            << name_of(collective);
    EXPECT_EQ(collective_cost(Collective::kAllReduce, Bytes(kGiB), {}, node_with_latency()).algorithm,
              CollectiveAlgorithm::kNone);
}

TEST(Collective, GrowsWithTheMessage) {
    const Node node = node_with_latency();
    for (Collective collective : kCollectives)
        for (const GroupShape& shape : {GroupShape{1, 2, 1}, GroupShape{1, 8, 1}, GroupShape{2, 1, 1},
                                        GroupShape{5, 8, 1}, GroupShape{16, 4, 2}}) {
            Duration last;
            for (std::int64_t bytes = 0; bytes < 4 * kGiB; bytes = bytes * 3 / 2 + 97) {
                const Duration time = collective_time(collective, Bytes(bytes), shape, node);
                ASSERT_GE(time, last) << name_of(collective) << " of " << bytes << " bytes";
                last = time;
            }
        }
}

TEST(Collective, GrowsWithNodesAndWithRanksOfOneNode) {
    const Node node = node_with_latency();
    for (Collective collective : kCollectives)
        for (std::int64_t bytes : {std::int64_t{1000}, kMiB, 64 * kMiB, kGiB}) {
            Duration last;
            for (int ranks = 1; ranks <= 8; ++ranks) {
                const Duration time = collective_time(collective, Bytes(bytes), {1, ranks, 1}, node);
                ASSERT_GE(time, last) << name_of(collective) << " over " << ranks;
                last = time;
            }
            for (int nodes = 2; nodes <= 70; ++nodes) {
                const Duration time = collective_time(collective, Bytes(bytes), {nodes, 8, 1}, node);
                ASSERT_GE(time, last) << name_of(collective) << " over " << nodes << " nodes";
                last = time;
            }
        }
}

TEST(Collective, ShortMessagesTakeTheTreeAndLowLatencyLongOnesTheRing) {
    const Node node = node_with_latency();
    const GroupShape shape{.nodes = 64, .ranks_per_node = 8};
    const CollectiveCost small = collective_cost(Collective::kAllReduce, Bytes(4096), shape, node);
    EXPECT_EQ(small.algorithm, CollectiveAlgorithm::kTree);
    EXPECT_EQ(small.protocol, CollectiveProtocol::kLowLatency);
    const CollectiveCost large = collective_cost(Collective::kAllReduce, Bytes(8 * kGiB), shape, node);
    EXPECT_EQ(large.algorithm, CollectiveAlgorithm::kRing);
    EXPECT_EQ(large.protocol, CollectiveProtocol::kSimple);
    EXPECT_EQ(collective_cost(Collective::kAllGather, Bytes(4096), shape, node).algorithm, CollectiveAlgorithm::kRing);
}

TEST(Collective, SwitchThatAddsUpBeatsTheRingInsideANodeOnly) {
    Node node = node_with_latency();
    const GroupShape inside{.nodes = 1, .ranks_per_node = 8};
    const Duration ring = collective_time(Collective::kAllReduce, Bytes(kGiB), inside, node);
    const Duration across = collective_time(Collective::kAllReduce, Bytes(kGiB), {2, 8, 1}, node);
    node.fabric.reduces_in_switch = true;
    const CollectiveCost cost = collective_cost(Collective::kAllReduce, Bytes(kGiB), inside, node);
    EXPECT_EQ(cost.algorithm, CollectiveAlgorithm::kInSwitch);
    EXPECT_LT(cost.time, ring);
    EXPECT_EQ(collective_time(Collective::kAllReduce, Bytes(kGiB), {2, 8, 1}, node), across);
}

TEST(Collective, LowLatencyProtocolsObeyTheirLimit) {
    Node node = node_with_latency();
    const GroupShape shape{.nodes = 8, .ranks_per_node = 1};
    const CollectiveCost free = collective_cost(Collective::kAllGather, Bytes(kMiB), shape, node);
    ASSERT_NE(free.protocol, CollectiveProtocol::kSimple);
    node.network.low_latency.limit = {1e6};
    node.network.low_latency_128.limit = {1e6};
    const CollectiveCost limited = collective_cost(Collective::kAllGather, Bytes(kMiB), shape, node);
    EXPECT_EQ(limited.protocol, CollectiveProtocol::kSimple);
    EXPECT_GT(limited.time, free.time);
}

TEST(Collective, RejectsGroupsThatCannotBe) {
    const Node node = node_with_latency();
    EXPECT_THROW(collective_time(Collective::kAllReduce, Bytes(1), {0, 8, 1}, node), std::invalid_argument);
    EXPECT_THROW(collective_time(Collective::kAllReduce, Bytes(1), {2, 0, 1}, node), std::invalid_argument);
    EXPECT_THROW(collective_time(Collective::kAllReduce, Bytes(1), {2, 8, 0}, node), std::invalid_argument);
    EXPECT_THROW(collective_time(Collective::kAllReduce, Bytes(-1), {2, 8, 1}, node), std::invalid_argument);
    Node unconnected = node;
    unconnected.nics = 0;
    EXPECT_THROW(collective_time(Collective::kAllReduce, Bytes(1), {2, 8, 1}, unconnected), std::invalid_argument);
}

}  // namespace
}  // namespace headway::scenarios
