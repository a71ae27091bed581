#include "scenarios/language/cluster.h"

#include <gtest/gtest.h>

#include <stdexcept>

namespace headway::scenarios {
namespace {

Cluster mixed_cluster() {
    Cluster cluster;
    cluster.node_groups.resize(2);
    cluster.node_groups[0].count = 3;
    cluster.node_groups[0].node.gpus = 8;
    cluster.node_groups[0].node.gpu.name = "A";
    cluster.node_groups[1].count = 2;
    cluster.node_groups[1].node.gpus = 4;
    cluster.node_groups[1].node.gpu.name = "B";
    cluster.network.nodes_per_rack = 2;
    return cluster;
}

TEST(Cluster, NumbersGpusNodeByNode) {
    const Cluster cluster = mixed_cluster();
    EXPECT_EQ(cluster.nodes(), 5);
    EXPECT_EQ(cluster.gpus(), 32);
    EXPECT_EQ(cluster.racks(), 3);
    int gpu = 0;
    for (int node = 0; node < cluster.nodes(); ++node) {
        ASSERT_EQ(cluster.first_gpu(node), gpu);
        for (int slot = 0; slot < cluster.node(node).gpus; ++slot, ++gpu) {
            ASSERT_EQ(cluster.node_of(gpu), node);
            ASSERT_EQ(cluster.slot_of(gpu), slot);
            ASSERT_EQ(cluster.gpu_type(gpu).name, node < 3 ? "A" : "B");
        }
    }
    EXPECT_EQ(gpu, cluster.gpus());
}

TEST(Cluster, HasNoPartsBeyondItsLast) {
    const Cluster cluster = mixed_cluster();
    EXPECT_THROW(cluster.node_of(32), std::out_of_range);
    EXPECT_THROW(cluster.node_of(-1), std::out_of_range);
    EXPECT_THROW(cluster.slot_of(32), std::out_of_range);
    EXPECT_THROW(cluster.first_gpu(5), std::out_of_range);
    EXPECT_THROW(cluster.group_of_node(-1), std::out_of_range);
}

}  // namespace
}  // namespace headway::scenarios
