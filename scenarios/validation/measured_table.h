#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "scenarios/language/job.h"
#include "scenarios/language/plan.h"

/// Tables of published measurements as they stand in their files (scenarios/measured/README.md describes the formats).
/// Nothing here knows the catalogues: hardware and software keep the names that the table uses.
namespace headway::scenarios {

struct MeasuredCluster {
    std::string gpu;
    int gpus_per_node = 8;
    int nics_per_node = 8;
    double nic_gbit_per_s = 0.0;
    std::string network;      ///< "unknown" where the source does not say
    std::string node_fabric;  ///< between the GPUs of a node; empty: the usual one of the GPU type
};

/// A job, its layout and where it ran. Common to all rows that time a training job.
struct MeasuredJob {
    MeasuredCluster cluster;
    std::string software;  ///< stack and age, "megatron-lm, 2022"; empty where the source does not say
    Model model;
    Precision precision = Precision::kFp16;
    Layout layout;
    int micro_batch = 1;
    int global_batch = 1;
    int gpus = 1;
    std::vector<std::string> assumed;  ///< what the row leaves out and was filled in: "vocab 51200"
};

/// headway-measurements/1: seconds per optimizer step.
struct IterationRow {
    std::string id;
    MeasuredJob job;
    double iteration_s = 0.0;
};

/// headway-collectives/1: out-of-place time of one collective; `message_bytes` as nccl-tests counts them.
struct CollectiveRow {
    std::string id;
    MeasuredCluster cluster;
    std::string collective;
    int nodes = 1;
    int gpus_per_node = 1;  ///< that take part
    std::int64_t message_bytes = 0;
    double time_us = 0.0;
};

/// headway-slow-links/1: iteration with a delay before every send over some pipeline hops, over the healthy iteration.
/// One rank a node, so every hop crosses the network.
struct SlowLinkRow {
    std::string id;
    MeasuredJob job;
    std::vector<int> slow_hops;  ///< hop k is between stages k and k+1
    double added_delay_ms = 0.0;
    double slowdown = 1.0;
};

/// Medians of the operations of one worker (all tensor ranks of one replica and stage).
struct RecordedWorker {
    int replica = 0;
    int stage = 0;
    int micro_batches = 1;
    double forward_ms = 0.0;
    double backward_ms = 0.0;
    double send_activation_ms = 0.0;
    double send_gradient_ms = 0.0;
    double gather_parameters_ms = 0.0;
    double reduce_gradients_ms = 0.0;
    double reduce_norms_ms = 0.0;  ///< all-reduce of the layer norms' gradients over the tensor ranks
    double reduce_embedding_ms = 0.0;
    double optimizer_ms = 0.0;  ///< gradient clipping included
    double garbage_collection_ms = 0.0;
};

/// headway-recorded-jobs/1: mean time of a step, and the medians of everything it consists of.
struct RecordedJobRow {
    std::string id;
    Layout layout;
    int gpus = 1;
    std::vector<RecordedWorker> workers;  ///< in any order
    double step_s = 0.0;
};

/// headway-layer-times/1: one transformer layer, one micro-batch.
struct LayerTimeRow {
    std::string id;
    std::optional<MeasuredJob> job;  ///< absent where the table does not state model, layout and cluster
    double forward_ms = 0.0;
    double backward_ms = 0.0;
};

using MeasuredRows = std::variant<std::vector<IterationRow>, std::vector<CollectiveRow>, std::vector<SlowLinkRow>,
                                  std::vector<RecordedJobRow>, std::vector<LayerTimeRow>>;

struct MeasuredTable {
    std::string file;  ///< as given
    std::string title;
    std::string source;
    MeasuredRows rows;
};

/// Reads a table of any of the formats. Throws ConfigError (file, line, column, key, value and what is allowed) for
/// anything that is not as the format says; unknown keys are errors.
MeasuredTable read_measured_table(const std::filesystem::path& file);
/// The same from text; `name` stands for the file in messages.
MeasuredTable parse_measured_table(const std::string& text, const std::string& name);

}  // namespace headway::scenarios
