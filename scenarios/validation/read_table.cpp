#include <fstream>
#include <set>
#include <sstream>

#include "scenarios/language/config_error.h"
#include "scenarios/validation/job_fields.h"
#include "scenarios/validation/measured_table.h"
#include "scenarios/validation/table_node.h"

namespace headway::scenarios {

namespace {

IterationRow read_iteration_row(const TableNode& row, const TableNode& table) {
    row.expect_keys(with_job_keys({"id", "iteration_s"}));
    return {row.at("id").text(), read_measured_job(row, table, JobDetail::kComplete), row.at("iteration_s").positive()};
}

CollectiveRow read_collective_row(const TableNode& row, const TableNode& table) {
    row.expect_keys(with_remarks({"id", "collective", "nodes", "gpus_per_node", "message_bytes", "time_us",
                                  "bus_gbyte_per_s", "algorithm_gbyte_per_s", "cluster"}));
    CollectiveRow read;
    read.id = row.at("id").text();
    read.cluster = read_measured_cluster(row, table);
    read.collective = row.at("collective").text();
    read.nodes = row.at("nodes").integer(1, 1 << 20);
    read.gpus_per_node = row.at("gpus_per_node").integer(1, read.cluster.gpus_per_node);
    read.message_bytes = row.at("message_bytes").long_integer(1);
    read.time_us = row.at("time_us").positive();
    return read;
}

/// "0-1,3-4": pairs of neighbouring stages.
std::vector<int> read_slow_hops(const TableNode& node, int stages) {
    std::vector<int> hops;
    std::istringstream list(node.text());
    std::string pair;
    while (std::getline(list, pair, ',')) {
        int from = -1, to = -1;
        char dash = 0, rest = 0;
        std::istringstream text(pair);
        text >> from >> dash >> to;
        if (text.fail() || dash != '-' || to != from + 1 || from < 0 || to >= stages || (text >> rest)) {
            node.fail("'" + pair + "' is not allowed (pairs of neighbouring stages, 0-1 to " +
                      std::to_string(stages - 2) + "-" + std::to_string(stages - 1) + ")");
        }
        hops.push_back(from);
    }
    if (hops.empty()) node.fail("empty (pairs of neighbouring stages, \"0-1,3-4\")");
    return hops;
}

SlowLinkRow read_slow_link_row(const TableNode& row, const TableNode& table) {
    row.expect_keys(with_job_keys(
        {"id", "experiment", "schedule", "slow_links", "added_delay_ms", "healthy_s", "degraded_s", "slowdown"}));
    SlowLinkRow read;
    read.id = row.at("id").text();
    read.job = read_measured_job(row, table, JobDetail::kPartial);
    read.job.layout.schedule = read_measured_schedule(row.at("schedule"));
    // The runs behind this format hold up to twice the pipeline's micro-batches (zero-bubble-max-pending-backward).
    if (read.job.layout.schedule == Schedule::kZeroBubble) read.job.layout.zero_bubble_memory = 2;
    if (read.job.layout.pipeline < 2) row.at("layout").fail("a pipeline of at least 2 stages is needed");
    read.slow_hops = read_slow_hops(row.at("slow_links"), read.job.layout.pipeline);
    read.added_delay_ms = row.at("added_delay_ms").not_negative();
    if (row.has("healthy_s")) row.at("healthy_s").positive();
    read.slowdown = row.at("slowdown").positive();
    return read;
}

RecordedWorker read_recorded_worker(const TableNode& node, const Layout& layout) {
    node.expect_keys({"dp_rank", "stage", "microbatches_per_step", "forward_compute_ms_median",
                      "backward_compute_ms_median", "forward_send_ms_median", "backward_send_ms_median",
                      "params_all_gather_ms_median", "grads_reduce_scatter_ms_median",
                      "layernorm_grads_all_reduce_ms_median", "embedding_grads_all_reduce_ms_median",
                      "optimizer_ms_median", "optimizer_clip_main_grad_ms_median", "gc_ms_median"});
    const auto optional_ms = [&](const char* key) { return node.has(key) ? node.at(key).not_negative() : 0.0; };
    RecordedWorker worker;
    worker.replica = node.at("dp_rank").integer(0, layout.data - 1);
    worker.stage = node.at("stage").integer(0, layout.pipeline - 1);
    worker.micro_batches = node.at("microbatches_per_step").integer(1, 1'000'000);
    worker.forward_ms = node.at("forward_compute_ms_median").positive();
    worker.backward_ms = node.at("backward_compute_ms_median").positive();
    worker.send_activation_ms = optional_ms("forward_send_ms_median");
    worker.send_gradient_ms = optional_ms("backward_send_ms_median");
    worker.gather_parameters_ms = optional_ms("params_all_gather_ms_median");
    worker.reduce_gradients_ms = optional_ms("grads_reduce_scatter_ms_median");
    worker.reduce_norms_ms = optional_ms("layernorm_grads_all_reduce_ms_median");
    worker.reduce_embedding_ms = optional_ms("embedding_grads_all_reduce_ms_median");
    // Clipping ends before the optimizer's own span starts.
    worker.optimizer_ms = optional_ms("optimizer_clip_main_grad_ms_median") + optional_ms("optimizer_ms_median");
    worker.garbage_collection_ms = optional_ms("gc_ms_median");
    return worker;
}

RecordedJobRow read_recorded_row(const TableNode& row) {
    row.expect_keys(
        with_remarks({"id", "gpus", "layout", "step_s", "step_s_median", "ideal_step_s", "schedule", "workers"}));
    RecordedJobRow read;
    read.id = row.at("id").text();
    read.gpus = row.at("gpus").integer(1, 1 << 20);
    const TableNode layout = row.at("layout");
    layout.expect_keys({"tensor", "pipeline", "data", "context"});
    read.layout.tensor = layout.at("tensor").integer(1, 1 << 20);
    read.layout.pipeline = layout.at("pipeline").integer(1, 1 << 14);
    read.layout.data = layout.at("data").integer(1, 1 << 14);
    if (layout.has("context")) read.layout.context = layout.at("context").integer(1, 1 << 14);
    read.layout.schedule = read_measured_schedule(row.at("schedule"));
    read.layout.distributed_optimizer = true;
    read.step_s = row.at("step_s").positive();
    std::set<std::pair<int, int>> seen;
    for (const TableNode& node : row.at("workers").items()) {
        read.workers.push_back(read_recorded_worker(node, read.layout));
        const RecordedWorker& worker = read.workers.back();
        if (!seen.insert({worker.replica, worker.stage}).second) {
            node.fail("replica " + std::to_string(worker.replica) + ", stage " + std::to_string(worker.stage) +
                      " is given twice");
        }
    }
    const std::size_t expected =
        static_cast<std::size_t>(read.layout.data) * static_cast<std::size_t>(read.layout.pipeline);
    if (read.workers.size() != expected) {
        row.at("workers").fail(std::to_string(read.workers.size()) +
                               " workers, but data x pipeline = " + std::to_string(expected));
    }
    return read;
}

LayerTimeRow read_layer_row(const TableNode& row, const TableNode& table) {
    row.expect_keys(with_job_keys({"case", "sequence_parallel", "recompute", "forward_ms", "backward_ms"}));
    LayerTimeRow read;
    read.id = row.at("case").text();
    read.forward_ms = row.at("forward_ms").positive();
    read.backward_ms = row.at("backward_ms").positive();
    if (!table.has("model") && !row.has("model"))
        return read;  // a table for people: the case stands in its words alone
    read.job = read_measured_job(row, table, JobDetail::kComplete);
    if (row.has("sequence_parallel")) read.job->layout.sequence_parallel = row.at("sequence_parallel").boolean();
    if (row.has("recompute")) {
        read.job->layout.recompute =
            row.at("recompute")
                .choice<Recompute>(
                    {{"none", Recompute::kNone}, {"selective", Recompute::kSelective}, {"full", Recompute::kFull}});
    }
    return read;
}

template <class Row, class Read>
std::vector<Row> read_rows(const TableNode& table, Read read) {
    std::vector<Row> rows;
    for (const TableNode& row : table.at("rows").items()) rows.push_back(read(row, table));
    if (rows.empty()) table.at("rows").fail("empty (at least one row)");
    return rows;
}

template <class Row>
void expect_distinct_ids(const TableNode& table, const std::vector<Row>& rows) {
    std::set<std::string> seen;
    for (std::size_t index = 0; index < rows.size(); ++index) {
        if (!seen.insert(rows[index].id).second) {
            table.at("rows").items()[index].fail("the row '" + rows[index].id + "' is given twice");
        }
    }
}

}  // namespace

MeasuredTable parse_measured_table(const std::string& text, const std::string& name) {
    const TableNode table = TableNode::parse(text, name);
    table.expect_keys(with_job_keys({"format", "title", "memory_per_gpu", "rows"}));
    MeasuredTable read;
    read.file = name;
    if (table.has("title")) read.title = table.at("title").text();
    if (table.has("source")) read.source = table.at("source").text();
    enum class Format { kMeasurements, kCollectives, kSlowLinks, kRecordedJobs, kLayerTimes };
    switch (table.at("format").choice<Format>({{"headway-measurements/1", Format::kMeasurements},
                                               {"headway-collectives/1", Format::kCollectives},
                                               {"headway-slow-links/1", Format::kSlowLinks},
                                               {"headway-recorded-jobs/1", Format::kRecordedJobs},
                                               {"headway-layer-times/1", Format::kLayerTimes}})) {
        case Format::kMeasurements:
            read.rows = read_rows<IterationRow>(table, read_iteration_row);
            break;
        case Format::kCollectives:
            read.rows = read_rows<CollectiveRow>(table, read_collective_row);
            break;
        case Format::kSlowLinks:
            read.rows = read_rows<SlowLinkRow>(table, read_slow_link_row);
            break;
        case Format::kRecordedJobs:
            read.rows = read_rows<RecordedJobRow>(
                table, [](const TableNode& row, const TableNode&) { return read_recorded_row(row); });
            break;
        case Format::kLayerTimes:
            read.rows = read_rows<LayerTimeRow>(table, read_layer_row);
            break;
    }
    std::visit([&](const auto& rows) { expect_distinct_ids(table, rows); }, read.rows);
    return read;
}

MeasuredTable read_measured_table(const std::filesystem::path& file) {
    std::error_code ignored;
    if (!std::filesystem::is_regular_file(file, ignored)) {
        throw ConfigError(file.string() + ": no such file (a table of measurements, " +
                          "see scenarios/measured/README.md)");
    }
    std::ifstream stream(file, std::ios::binary);
    std::ostringstream text;
    text << stream.rdbuf();
    if (!stream) throw ConfigError(file.string() + ": cannot be read");
    return parse_measured_table(text.str(), file.string());
}

}  // namespace headway::scenarios
