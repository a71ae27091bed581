#include "scenarios/validation/job_fields.h"

namespace headway::scenarios {

namespace {

/// Vocabulary of the GPT tables of Megatron-LM (Narayanan et al. 2021, section 5): taken where a source is silent.
constexpr int kUsualVocabulary = 51200;

std::string silent_source(const std::string& key, const std::string& value) {
    return key + " not stated: " + value;
}

Model read_measured_model(const TableNode& node, JobDetail detail, std::vector<std::string>& assumed) {
    node.expect_keys({"name", "layers", "hidden", "heads", "kv_heads", "head_dim", "ffn", "gated_mlp", "vocab",
                      "sequence_length", "positions", "norm", "biases", "tied_embedding"});
    const bool complete = detail == JobDetail::kComplete;
    Model model;
    if (node.has("name")) model.name = node.at("name").text();
    model.layers = node.at("layers").integer(1, 100000);
    model.hidden = node.at("hidden").integer(1, 1 << 24);
    model.heads = node.at("heads").integer(1, 1 << 20);
    model.sequence_length = node.at("sequence_length").integer(1, 1 << 27);
    model.kv_heads = model.heads;
    if (complete || node.has("kv_heads")) model.kv_heads = node.at("kv_heads").integer(1, model.heads);
    if (model.heads % model.kv_heads != 0) {
        node.at("kv_heads")
            .fail(std::to_string(model.kv_heads) + " is not allowed (a divisor of heads, " +
                  std::to_string(model.heads) + ")");
    }
    if (complete || node.has("gated_mlp")) model.gated_mlp = node.at("gated_mlp").boolean();
    if (node.has("head_dim")) {
        model.head_dim = node.at("head_dim").integer(1, model.hidden);
    } else if (model.hidden % model.heads == 0) {
        model.head_dim = model.hidden / model.heads;
    } else {
        node.at("heads").fail(std::to_string(model.heads) + " is not allowed (a divisor of hidden, " +
                              std::to_string(model.hidden) + ", or with head_dim given)");
    }
    if (complete || node.has("ffn")) {
        model.ffn = node.at("ffn").integer(1, 1 << 26);
    } else {
        model.ffn = 4 * model.hidden;
        assumed.push_back(silent_source("ffn", "4 x hidden"));
    }
    if (complete || node.has("vocab")) {
        model.vocab = node.at("vocab").integer(1, 1 << 26);
    } else {
        model.vocab = kUsualVocabulary;
        assumed.push_back(silent_source("vocab", std::to_string(kUsualVocabulary)));
    }
    // What no table has states: a gated MLP or grouped queries mean the Llama kind of block, anything else the GPT
    // kind.
    const bool modern = model.gated_mlp || model.kv_heads < model.heads;
    model.positions = modern ? Positions::kRotary : Positions::kLearned;
    model.norm = modern ? Norm::kRms : Norm::kLayer;
    model.biases = !modern;
    model.tied_embedding = !modern;
    if (node.has("positions")) {
        model.positions =
            node.at("positions")
                .choice<Positions>(
                    {{"learned", Positions::kLearned}, {"rotary", Positions::kRotary}, {"alibi", Positions::kAlibi}});
    }
    if (node.has("norm")) {
        model.norm = node.at("norm").choice<Norm>({{"layer", Norm::kLayer}, {"rms", Norm::kRms}});
    }
    if (node.has("biases")) model.biases = node.at("biases").boolean();
    if (node.has("tied_embedding")) model.tied_embedding = node.at("tied_embedding").boolean();
    return model;
}

bool flag_or(const TableNode& node, const std::string& key, bool fallback) {
    return node.has(key) ? node.at(key).boolean() : fallback;
}

void read_measured_layout(const TableNode& node, MeasuredJob& job) {
    node.expect_keys({"tensor", "pipeline", "data", "context", "virtual_pipeline", "sequence_parallel", "schedule",
                      "micro_batch", "global_batch", "recompute", "distributed_optimizer", "overlap_grad_reduce",
                      "overlap_param_gather", "overlap_tensor_comm", "overlap_pipeline_comm"});
    constexpr int kMostRanks = 1 << 20;
    Layout& layout = job.layout;
    layout.tensor = node.at("tensor").integer(1, kMostRanks);
    layout.pipeline = node.at("pipeline").integer(1, kMostRanks);
    layout.data = node.at("data").integer(1, kMostRanks);
    if (node.has("context")) layout.context = node.at("context").integer(1, kMostRanks);
    if (node.has("virtual_pipeline")) layout.virtual_pipeline = node.at("virtual_pipeline").integer(1, kMostRanks);
    layout.schedule = layout.virtual_pipeline > 1 ? Schedule::kInterleaved : Schedule::kOneForwardOneBackward;
    if (node.has("schedule")) layout.schedule = read_measured_schedule(node.at("schedule"));
    if ((layout.virtual_pipeline > 1) != (layout.schedule == Schedule::kInterleaved)) {
        node.at("virtual_pipeline").fail("more than 1 goes with the interleaved schedule, and only with it");
    }
    layout.sequence_parallel = flag_or(node, "sequence_parallel", false);
    if (node.has("recompute")) {
        layout.recompute =
            node.at("recompute")
                .choice<Recompute>(
                    {{"none", Recompute::kNone}, {"selective", Recompute::kSelective}, {"full", Recompute::kFull}});
    }
    layout.distributed_optimizer = flag_or(node, "distributed_optimizer", false);
    layout.overlap_grad_reduce = flag_or(node, "overlap_grad_reduce", false);
    // Megatron-Core overlaps both or neither, unless it is told otherwise.
    layout.overlap_param_gather =
        flag_or(node, "overlap_param_gather", layout.distributed_optimizer && layout.overlap_grad_reduce);
    layout.overlap_tensor_comm = flag_or(node, "overlap_tensor_comm", false);
    layout.overlap_pipeline_comm = flag_or(node, "overlap_pipeline_comm", false);
    job.micro_batch = node.at("micro_batch").integer(1, 1'000'000);
    job.global_batch = node.at("global_batch").integer(1, 1'000'000);
}

}  // namespace

Schedule read_measured_schedule(const TableNode& node) {
    return node.choice<Schedule>({{"gpipe", Schedule::kGPipe},
                                  {"1f1b", Schedule::kOneForwardOneBackward},
                                  {"interleaved", Schedule::kInterleaved},
                                  {"zero_bubble", Schedule::kZeroBubble}});
}

std::vector<std::string> with_remarks(std::vector<std::string> keys) {
    for (const char* key : {"notes", "note", "source", "url", "licence", "license", "date", "hardware", "confidence",
                            "suggested_use", "experiment", "release", "unknown", "tflops_per_gpu", "mfu",
                            "tokens_per_s", "tokens_per_gpu_per_s", "samples_per_s", "spread"}) {
        keys.emplace_back(key);
    }
    return keys;
}

std::vector<std::string> with_job_keys(std::vector<std::string> keys) {
    for (const char* key : {"cluster", "software", "model", "precision", "layout", "gpus"}) keys.emplace_back(key);
    return with_remarks(std::move(keys));
}

MeasuredCluster read_measured_cluster(const TableNode& row, const TableNode& table) {
    const TableNode node = row.at_or_in("cluster", table);
    node.expect_keys({"gpu", "gpus_per_node", "nics_per_node", "nic_gbit_per_s", "network", "node_fabric"});
    MeasuredCluster cluster;
    cluster.gpu = node.at("gpu").text();
    cluster.gpus_per_node = node.at("gpus_per_node").integer(1, 1 << 16);
    cluster.nics_per_node = node.at("nics_per_node").integer(1, 1 << 16);
    cluster.nic_gbit_per_s = node.at("nic_gbit_per_s").positive();
    cluster.network = node.at("network").text();
    if (node.has("node_fabric")) cluster.node_fabric = node.at("node_fabric").text();
    return cluster;
}

MeasuredJob read_measured_job(const TableNode& row, const TableNode& table, JobDetail detail) {
    MeasuredJob job;
    job.cluster = read_measured_cluster(row, table);
    if (detail == JobDetail::kComplete || row.has("software") || table.has("software")) {
        job.software = row.at_or_in("software", table).text();
    }
    job.model = read_measured_model(row.at_or_in("model", table), detail, job.assumed);
    if (detail == JobDetail::kComplete || row.has("precision") || table.has("precision")) {
        job.precision =
            row.at_or_in("precision", table)
                .choice<Precision>({{"fp16", Precision::kFp16}, {"bf16", Precision::kBf16}, {"fp8", Precision::kFp8}});
    } else {
        job.assumed.push_back(silent_source("precision", "fp16"));
    }
    read_measured_layout(row.at_or_in("layout", table), job);
    job.gpus = row.at_or_in("gpus", table).integer(1, 1 << 20);
    if (row.has("unknown")) {
        for (const TableNode& key : row.at("unknown").items()) {
            job.assumed.push_back(key.text() + " not stated by the source: as the row gives it");
        }
    }
    return job;
}

}  // namespace headway::scenarios
