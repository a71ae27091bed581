#include "scenarios/validation/hardware_names.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <stdexcept>

#include "tests/paths.h"

namespace headway::scenarios {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

Catalogue shipped_catalogue() {
    return {tests::source_directory() / "scenarios"};
}

MeasuredCluster selene_node() {
    return {"A100-SXM4-80GB", 8, 8, 200.0, "InfiniBand HDR", ""};
}

std::string reason_for(const MeasuredCluster& cluster) {
    HardwareNames names(shipped_catalogue());
    std::vector<std::string> notes;
    try {
        names.node(cluster, notes);
    } catch (const std::invalid_argument& reason) {
        return reason.what();
    }
    return "found";
}

TEST(HardwareNames, TakeTheNicRateFromTheTable) {
    HardwareNames names(shipped_catalogue());
    std::vector<std::string> notes;
    MeasuredCluster cluster = selene_node();
    cluster.nic_gbit_per_s = 100.0;
    cluster.nics_per_node = 4;
    const Node node = names.node(cluster, notes);
    EXPECT_EQ(node.gpu.name, "A100-SXM4-80GB");
    EXPECT_EQ(node.fabric.name, "nvlink3");
    EXPECT_EQ(node.network.name, "infiniband-hdr");
    EXPECT_DOUBLE_EQ(node.network.bandwidth.value, 12.5e9);
    EXPECT_EQ(node.nics, 4);
    EXPECT_THAT(notes, IsEmpty());
}

TEST(HardwareNames, CompareLettersAndDigitsOnly) {
    MeasuredCluster cluster = selene_node();
    cluster.gpu = "a100 sxm4 80gb";
    cluster.network = "infiniband_hdr";
    EXPECT_EQ(reason_for(cluster), "found");
}

TEST(HardwareNames, SayWhatTheyDoNotKnow) {
    MeasuredCluster cluster = selene_node();
    cluster.gpu = "A100-SXM4-80GBB";
    EXPECT_THAT(reason_for(cluster), HasSubstr("did you mean 'A100-SXM4-80GB'?"));
    cluster = selene_node();
    cluster.network = "carrier pigeon";
    EXPECT_THAT(reason_for(cluster), HasSubstr("'carrier pigeon' is neither an entry of fabrics/"));
    cluster = selene_node();
    cluster.network = "unknown";
    cluster.nic_gbit_per_s = 123.0;
    EXPECT_THAT(reason_for(cluster), HasSubstr("the network is not stated"));
}

TEST(HardwareNames, NoteANetworkThatTheTableDoesNotStateOnce) {
    HardwareNames names(shipped_catalogue());
    std::vector<std::string> notes;
    MeasuredCluster cluster = selene_node();
    cluster.network = "unknown";
    cluster.nic_gbit_per_s = 400.0;
    names.node(cluster, notes);
    names.node(cluster, notes);
    EXPECT_THAT(notes, ElementsAre("network not stated: infiniband-ndr"));
}

TEST(HardwareNames, TakeTheLongestBeginningOfASoftwareName) {
    HardwareNames names(shipped_catalogue());
    std::vector<std::string> notes;
    EXPECT_EQ(names.stack("nemo v25.02.02", {}, notes).name, "nemo-2025");
    EXPECT_EQ(names.stack("NeMo v24.11.1", {}, notes).name, "nemo-2024");
    EXPECT_EQ(names.stack("megatron-deepspeed, 2022", {}, notes).name, "megatron-deepspeed-2022");
    EXPECT_EQ(names.stack("whatever", "pytorch", notes).name, "pytorch");
    EXPECT_THROW(names.stack("nemo v250", {}, notes), std::invalid_argument);
    EXPECT_THROW(names.stack("megatron-lm, 1999", {}, notes), std::invalid_argument);
    EXPECT_THROW(names.stack("megatron-lm", {}, notes), std::invalid_argument);
}

TEST(HardwareNames, KnowTheNodeFabricOfEveryGpuInTheCatalogue) {
    for (const std::string& gpu : catalogue_names(shipped_catalogue(), "gpus")) {
        if (gpu == "this-machine") continue;  // made here by a calibration, and in no table
        MeasuredCluster cluster = selene_node();
        cluster.gpu = gpu;
        EXPECT_EQ(reason_for(cluster), "found") << gpu;
    }
}

}  // namespace
}  // namespace headway::scenarios
