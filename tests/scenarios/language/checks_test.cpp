#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/scenarios/language/small_scenario.h"

namespace headway::scenarios {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::StartsWith;

std::string error_with(const std::vector<Override>& overrides) {
    return error_of(small_scenario(), overrides);
}

std::string error_with_disturbance(const std::string& disturbance) {
    return error_with({{"disturbances.0", disturbance}});
}

TEST(Degrees, MultiplyToTheGpusUsed) {
    EXPECT_THAT(
        error_with({{"strategy.data", "3"}}),
        HasSubstr(
            "strategy: tensor 2 x pipeline 2 x data 3 x context 1 = 12 is not allowed (the 8 GPUs of the cluster"));
    EXPECT_THAT(
        error_with({{"strategy.tensor", "3"}}),
        HasSubstr("strategy.data: auto is not allowed (tensor x pipeline x context = 6 does not divide the 8 GPUs"));
    EXPECT_THAT(error_with({{"strategy.tensor", "1000000"},
                            {"strategy.context", "1000000"},
                            {"strategy.pipeline", "10000"},
                            {"strategy.data", "1000000"}}),
                HasSubstr("= more than 1048576 is not allowed"));
    EXPECT_THAT(error_with({{"strategy.tensor", "16"}}), HasSubstr("does not divide the 8 GPUs"));
    EXPECT_EQ(read_small().strategy.layout.data, 2);
    EXPECT_EQ(read_small({{"strategy.idle_gpus", "4"}}).strategy.layout.data, 1);
    EXPECT_THAT(error_with({{"strategy.idle_gpus", "8"}}),
                HasSubstr("strategy.idle_gpus: 8 is not allowed (fewer than the cluster's 8 GPUs)"));
}

TEST(Degrees, DivideTheShapesOfTheModel) {
    EXPECT_THAT(error_with({{"strategy.tensor", "8"}, {"strategy.pipeline", "1"}}),
                HasSubstr("strategy.tensor: 8 is not allowed (a divisor of the model's heads, 12)"));
    EXPECT_THAT(error_with({{"job.model.kv_heads", "1"}}),
                HasSubstr("strategy.tensor: 2 is not allowed (a divisor of the model's kv_heads, 1)"));
    EXPECT_THAT(error_with({{"job.model.ffn", "3073"}}),
                HasSubstr("strategy.tensor: 2 is not allowed (a divisor of the model's ffn, 3073)"));
    EXPECT_THAT(error_with({{"job.model.sequence_length", "1023"}, {"strategy.context", "2"}}),
                HasSubstr("strategy.context: 2 is not allowed (a divisor of the model's sequence_length, 1023)"));
    EXPECT_THAT(error_with({{"job.model.sequence_length", "1023"}, {"strategy.sequence_parallel", "true"}}),
                HasSubstr("strategy.sequence_parallel: true is not allowed"));
    EXPECT_THAT(error_with({{"job.model.heads", "7"}, {"job.model.kv_heads", "7"}}),
                HasSubstr("job.model.heads: 7 is not allowed (a divisor of hidden, 768, or give head_dim)"));
    EXPECT_THAT(error_with({{"job.model.kv_heads", "5"}}),
                HasSubstr("job.model.kv_heads: 5 is not allowed (a divisor of heads, 12)"));
}

TEST(Models, FillInWhatFollowsFromTheirShape) {
    const Scenario scenario = read_small();
    EXPECT_EQ(scenario.job.model.head_dim, 64);
    EXPECT_EQ(scenario.job.model.kv_heads, 12);
    EXPECT_EQ(read_small({{"job.model.head_dim", "128"}}).job.model.head_dim, 128);
}

TEST(Schedules, FitThePipeline) {
    EXPECT_THAT(error_with({{"strategy.virtual_pipeline", "2"}}),
                HasSubstr("strategy.virtual_pipeline: 2 is not allowed (more than 1 only with schedule: interleaved)"));
    EXPECT_THAT(
        error_with({{"strategy.zero_bubble_memory", "2"}}),
        HasSubstr("strategy.zero_bubble_memory: 2 is not allowed (more than 1 only with schedule: zero-bubble)"));
    EXPECT_THAT(error_with({{"strategy.schedule", "interleaved"}}),
                HasSubstr("strategy.schedule: interleaved is not allowed (virtual_pipeline is 1"));
    EXPECT_THAT(
        error_with(
            {{"strategy.schedule", "interleaved"}, {"strategy.virtual_pipeline", "2"}, {"strategy.pipeline", "1"}}),
        HasSubstr("strategy.schedule: interleaved is not allowed (pipeline is 1)"));
    EXPECT_THAT(error_with({{"strategy.schedule", "interleaved"}, {"strategy.virtual_pipeline", "7"}}),
                HasSubstr("strategy.virtual_pipeline: 7 is not allowed (pipeline x virtual_pipeline = 14 is more than "
                          "the model's 12 layers)"));
    EXPECT_THAT(
        error_with({{"job.model.layers", "1"}}),
        HasSubstr(
            "strategy.pipeline: 2 is not allowed (pipeline x virtual_pipeline = 2 is more than the model's 1 layer)"));
    EXPECT_THAT(
        error_with(
            {{"strategy.schedule", "interleaved"}, {"strategy.virtual_pipeline", "2"}, {"job.global_batch", "12"}}),
        HasSubstr("job.global_batch: 12 is not allowed (the interleaved schedule needs a multiple of 2 micro-batches a "
                  "replica, not 3)"));
    EXPECT_THAT(
        error_with({{"strategy.schedule", "interleaved"},
                    {"strategy.virtual_pipeline", "2"},
                    {"strategy.micro_batches_per_replica", "[5, 3]"}}),
        HasSubstr(
            "strategy.micro_batches_per_replica.0: 5 is not allowed (the interleaved schedule needs a multiple of 2)"));
    EXPECT_THAT(error_with({{"strategy.overlap", "{param_gather: true}"}}),
                HasSubstr("strategy.overlap.param_gather: true is not allowed (parameters are only gathered with "
                          "distributed_optimizer: true)"));
}

TEST(Batches, AreWholeOrSharedExplicitly) {
    EXPECT_THAT(error_with({{"job.global_batch", "15"}}),
                HasSubstr("job.global_batch: 15 is not allowed (a multiple of micro_batch, 2)"));
    EXPECT_THAT(error_with({{"job.global_batch", "14"}}),
                HasSubstr("job.global_batch: 14 is not allowed (a multiple of micro_batch x data = 4, or give "
                          "strategy.micro_batches_per_replica)"));
    EXPECT_EQ(read_small({{"job.global_batch", "14"}, {"strategy.micro_batches_per_replica", "[4, 3]"}})
                  .strategy.micro_batches_per_replica,
              (std::vector<int>{4, 3}));
    EXPECT_THAT(error_with({{"strategy.micro_batches_per_replica", "[4, 3]"}}),
                HasSubstr("a sum of 7 is not allowed (global_batch / micro_batch = 8)"));
    EXPECT_THAT(error_with({{"strategy.micro_batches_per_replica", "[8]"}}),
                HasSubstr("a list of 1 is not allowed (data = 2 numbers)"));
    EXPECT_THAT(error_with({{"strategy.micro_batches_per_replica", "[8, 0]"}}),
                HasSubstr("strategy.micro_batches_per_replica.1: 0 is not allowed"));
    EXPECT_THAT(error_with({{"strategy.micro_batches_per_replica", "[]"}}),
                HasSubstr("a list is not allowed (a list of whole numbers, or even)"));
}

TEST(LayersPerStage, AddUpToTheModel) {
    EXPECT_THAT(error_with({{"strategy.layers_per_stage", "[6, 5]"}}),
                HasSubstr("strategy.layers_per_stage: a sum of 11 is not allowed (the model has 12 layers)"));
    EXPECT_THAT(error_with({{"strategy.layers_per_stage", "[6, 5, 1]"}}),
                HasSubstr("a list of 3 is not allowed (pipeline x virtual_pipeline = 2 numbers)"));
    EXPECT_THAT(error_with({{"strategy.layers_per_stage", "[12, 0]"}}),
                HasSubstr("strategy.layers_per_stage.1: 0 is not allowed"));
}

TEST(Placements, NameEveryGpuOnceAndOnlyThoseThereAre) {
    EXPECT_THAT(error_with({{"strategy.placement", "[0, 1, 2, 3, 4, 5, 6, 8]"}}),
                HasSubstr("strategy.placement.7: 8 is not allowed (0 to 7: the cluster has 8 GPUs)"));
    EXPECT_THAT(error_with({{"strategy.placement", "[0, 1, 2, 3, 4, 5, 6, 2]"}}),
                HasSubstr("strategy.placement.7: 2 is not allowed (each GPU once; it is already given to rank 2)"));
    EXPECT_THAT(error_with({{"strategy.placement", "[0, 1, 2]"}}),
                HasSubstr("does not divide the 3 GPUs of the placement"));
    EXPECT_EQ(read_small({{"strategy.placement", "[7, 6, 5, 4]"}}).strategy.layout.data, 1);
}

TEST(Precisions, NeedTheArithmetic) {
    EXPECT_THAT(error_with({{"job.precision", "fp8"}}),
                HasSubstr("job.precision: fp8 is not allowed (the cluster's A100-SXM4-80GB has no fp8 arithmetic)"));
    EXPECT_THAT(error_with({{"job.precision", "fp32"}}),
                HasSubstr("job.precision: fp32 is not allowed (no peak_single is known of the cluster's "
                          "A100-SXM4-80GB; add it to its entry)"));
    const Scenario single = read_small({{"job.precision", "fp32"}, {"cluster.node.gpu.peak_single", "19.5 TFLOP/s"}});
    EXPECT_EQ(single.cluster.node_groups[0].node.gpu.peak_single->value, 19.5e12);
}

TEST(Deployments, AreReadAndWritten) {
    const Scenario read = read_small({{"deploy.pace", "2"}, {"deploy.timeout", "5 s"}, {"deploy.checkpoints", "kept"}});
    ASSERT_TRUE(read.deploy);
    EXPECT_EQ(read.deploy->pace, 2.0);
    EXPECT_EQ(read.deploy->timeout, Duration::seconds(5));
    EXPECT_EQ(read.deploy->checkpoints, "kept");
    EXPECT_THAT(write_scenario(read), HasSubstr("deploy:"));
    EXPECT_FALSE(read_small({}).deploy);
    EXPECT_THAT(error_with({{"deploy.pace", "0"}}), HasSubstr("deploy.pace: 0 is not allowed"));
    EXPECT_THAT(error_with({{"deploy.keep", "0"}}), HasSubstr("deploy.keep: 0 is not allowed"));
}

TEST(Clusters, AreConsistent) {
    EXPECT_THAT(error_with({{"cluster.nodes", "1000000"}}), HasSubstr("cluster: more than 1048576 GPUs"));
    EXPECT_THAT(error_with({{"cluster.node.nics", "3"}}),
                HasSubstr("cluster.node.nics: 3 is not allowed (the node's 8 GPUs share them evenly)"));
    EXPECT_THAT(error_with({{"cluster.node.gpu.idle_power", "500 W"}}),
                HasSubstr("cluster.node.gpu.idle_power: not allowed (below power_limit)"));
    EXPECT_THAT(error_with({{"cluster.node_groups", "[]"}}),
                HasSubstr("cluster.nodes: not allowed beside node_groups"));
    EXPECT_THAT(error_with({{"cluster", "{node_groups: []}"}}),
                HasSubstr("cluster.node_groups: an empty list is not allowed"));
    EXPECT_THAT(error_with({{"cluster", "{}"}}), HasSubstr("cluster.nodes: missing"));
}

TEST(Disturbances, ActOnPartsThatExist) {
    EXPECT_THAT(error_with_disturbance("{start: 1 s, airflow: {gpu: 8, resistance_factor: 2}}"),
                HasSubstr("disturbances.0.airflow.gpu: 8 is not allowed (0 to 7: there are 8 GPUs)"));
    EXPECT_THAT(error_with_disturbance("{start: 1 s, power_cap: {node: 1, limit: 300 W}}"),
                HasSubstr("disturbances.0.power_cap.node: 1 is not allowed (only 0: there are 1 node)"));
    EXPECT_THAT(error_with_disturbance("{start: 1 s, inlet: {rack: 4, temperature: 40 C}}"),
                HasSubstr("disturbances.0.inlet.rack: 4 is not allowed"));
    EXPECT_THAT(error_with_disturbance("{start: 1 s, node_loss: {node: 3}}"),
                HasSubstr("disturbances.0.node_loss.node: 3 is not allowed"));
    EXPECT_THAT(error_with_disturbance("{start: 1 s, gpu_loss: {gpu: 9}}"),
                HasSubstr("disturbances.0.gpu_loss.gpu: 9 is not allowed"));
    EXPECT_THAT(error_with_disturbance("{start: 1 s, link_bandwidth: {nic: 9, factor: 0.5}}"),
                HasSubstr("disturbances.0.link_bandwidth.nic: 9 is not allowed"));
    EXPECT_THAT(error_with_disturbance("{start: 1 s, link_bandwidth: {rack_uplink: 0, factor: 0.5}}"),
                HasSubstr("disturbances.0.link_bandwidth.rack_uplink: 0 is not allowed (there is none"));
    EXPECT_THAT(
        error_with_disturbance("{start: 1 s, link_delay: {pipeline_hop: 1, delay: 10 ms}}"),
        HasSubstr("disturbances.0.link_delay.pipeline_hop: 1 is not allowed (only 0: there are 1 pipeline hop)"));
}

TEST(Disturbances, HaveOneCauseAndOneTarget) {
    EXPECT_THAT(
        error_with_disturbance("{start: 1 s}"),
        HasSubstr(
            "disturbances.0: no cause (one of airflow, inlet, power_cap, co_tenant, speed_factor, link_bandwidth, "
            "link_delay, link_flap, gpu_loss, node_loss, node_arrival, sequence_lengths, jitter)"));
    EXPECT_THAT(error_with_disturbance("{start: 1 s, airfow: {gpu: 1}}"),
                HasSubstr("unknown key 'airfow' in disturbances.0 (did you mean 'airflow'?)"));
    EXPECT_THAT(error_with_disturbance("{start: 1 s, jitter: {spread: 0.1}, gpu_loss: {gpu: 1}}"),
                HasSubstr("disturbances.0: two causes, gpu_loss and jitter"));
    EXPECT_THAT(error_with_disturbance("{start: 1 s, airflow: {gpu: 1, node: 0, resistance_factor: 2}}"),
                HasSubstr("more than one target is given (one of gpu, node, rack)"));
    EXPECT_THAT(error_with_disturbance("{start: 1 s, link_delay: {delay: 10 ms}}"),
                HasSubstr("no target is given (one of rack_uplink, node_network, nic, node_fabric, pipeline_hop)"));
    EXPECT_THAT(error_with_disturbance("{start: 1 s, link_delay: {node_fabric: 0, delay: 1 ms}}"),
                HasSubstr("link_delay.node_fabric: delays inside a node are not modelled"));
    EXPECT_THAT(error_with_disturbance("{start: 1 s, co_tenant: {gpu: 1}}"),
                HasSubstr("disturbances.0.co_tenant: takes nothing"));
    EXPECT_THAT(error_with_disturbance("{start: 1 s, co_tenant: {gpu: 1, compute_share: 1}}"),
                HasSubstr("compute_share: 1 is not allowed (0 to 0.999)"));
    EXPECT_THAT(error_with_disturbance("{start: 1 s, link_flap: {node_network: 0, down: 2 s, period: 2 s}}"),
                HasSubstr("link_flap.down: 2 s is not allowed (below period, 2 s)"));
    EXPECT_THAT(error_with_disturbance("{start: 1 s, power_cap: {gpu: 0, limit: 10 W}}"),
                HasSubstr("power_cap.limit: 10 W is not allowed (above the idle power of A100-SXM4-80GB"));
}

TEST(Disturbances, HappenDuringTheRun) {
    EXPECT_THAT(error_with({{"run", "{time: 5 s}"}}),
                HasSubstr("disturbances.0.start: 5 s is not allowed (before the end of the run, 5 s)"));
    EXPECT_THAT(error_with({{"run", "{time: 5 s, iterations: 3}"}}),
                HasSubstr("run.iterations: not allowed: a time is given; give one of the two"));
    EXPECT_THAT(error_with({{"disturbances.0.duration", "0 s"}}),
                HasSubstr("disturbances.0.duration: 0 s is not allowed (more than 0)"));
}

TEST(Losses, DoNotTakeWhatIsAlreadyGone) {
    const std::string node = "{start: 10 min, node_loss: {node: 0}}";
    EXPECT_THAT(error_with({{"disturbances", "[" + node + ", {start: 20 min, node_loss: {node: 0}}]"}}),
                HasSubstr("disturbances.1.start: 20 min is not allowed (loss of node 0 of disturbances.0 has the same "
                          "part gone until 250 min)"));
    EXPECT_THAT(error_with({{"disturbances", "[{start: 20 min, gpu_loss: {gpu: 3}}, " + node + "]"}}),
                HasSubstr("disturbances.0.start: 20 min is not allowed"));
    EXPECT_EQ(read_small({{"disturbances", "[" + node + ", {start: 5 h, node_loss: {node: 0}}]"}}).disturbances.size(),
              2u);
    EXPECT_EQ(read_small(
                  {{"disturbances",
                    "[{start: 10 min, duration: 1 min, node_loss: {node: 0}}, {start: 20 min, node_loss: {node: 0}}]"}})
                  .disturbances.size(),
              2u);
}

TEST(Names, AreGivenToDisturbancesWithoutOne) {
    EXPECT_EQ(read_small().disturbances[0].name, "jitter");
    EXPECT_EQ(
        read_small({{"disturbances.0", "{start: 1 s, airflow: {gpu: 3, resistance_factor: 2}}"}}).disturbances[0].name,
        "airflow of GPU 3");
    EXPECT_EQ(read_small({{"disturbances.0", "{start: 1 s, inlet: {temperature: 40 C}}"}}).disturbances[0].name,
              "inlet of the whole cluster");
    EXPECT_EQ(read_small({{"disturbances.0", "{start: 1 s, link_delay: {pipeline_hop: 0, delay: 1 ms}}"}})
                  .disturbances[0]
                  .name,
              "link delay of pipeline hop 0-1");
    EXPECT_EQ(read_small({{"disturbances.0", "{start: 1 s, link_bandwidth: {node_network: 0, factor: 0.5}}"}})
                  .disturbances[0]
                  .name,
              "link bandwidth of node 0 network");
}

}  // namespace
}  // namespace headway::scenarios
