#include "scenarios/validation/measured_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "scenarios/language/config_error.h"

namespace headway::scenarios {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

const std::string kHead = R"(format: headway-measurements/1
title: two rows
source: nowhere
cluster: {gpu: A100-SXM4-80GB, gpus_per_node: 8, nics_per_node: 8, nic_gbit_per_s: 200, network: InfiniBand HDR}
software: megatron-lm, 2022
rows:
)";

std::string row_with(const std::string& id, const std::string& model_extra, const std::string& layout_extra,
                     const std::string& rest = "iteration_s: 1.5") {
    return "- id: " + id + "\n" +
           "  model: {layers: 48, hidden: 6144, heads: 64, kv_heads: 64, ffn: 24576, gated_mlp: false, vocab: 51200, "
           "sequence_length: 2048" +
           model_extra + "}\n" + "  precision: fp16\n" +
           "  layout: {tensor: 8, pipeline: 1, data: 1, micro_batch: 4, global_batch: 4" + layout_extra + "}\n" +
           "  gpus: 8\n  " + rest + "\n";
}

std::string message_of(const std::string& text) {
    try {
        parse_measured_table(text, "my.yaml");
    } catch (const ConfigError& error) {
        return error.what();
    }
    return "accepted";
}

TEST(MeasuredTable, ReadsARowWithWhatItsTableShares) {
    const MeasuredTable table =
        parse_measured_table(kHead + row_with("a", "", ", virtual_pipeline: 1, recompute: selective"), "my.yaml");
    EXPECT_EQ(table.title, "two rows");
    const auto& rows = std::get<std::vector<IterationRow>>(table.rows);
    ASSERT_EQ(rows.size(), 1u);
    EXPECT_EQ(rows[0].id, "a");
    EXPECT_EQ(rows[0].job.software, "megatron-lm, 2022");
    EXPECT_EQ(rows[0].job.cluster.gpu, "A100-SXM4-80GB");
    EXPECT_EQ(rows[0].job.model.head_dim, 96);
    EXPECT_TRUE(rows[0].job.model.tied_embedding);
    EXPECT_EQ(rows[0].job.layout.recompute, Recompute::kSelective);
    EXPECT_EQ(rows[0].job.layout.schedule, Schedule::kOneForwardOneBackward);
    EXPECT_DOUBLE_EQ(rows[0].iteration_s, 1.5);
}

TEST(MeasuredTable, LetsARowOverrideItsTablesSoftware) {
    const MeasuredTable table =
        parse_measured_table(kHead + row_with("a", "", "", "iteration_s: 1.5\n  software: nemo v25.02.02"), "my.yaml");
    EXPECT_EQ(std::get<std::vector<IterationRow>>(table.rows)[0].job.software, "nemo v25.02.02");
}

TEST(MeasuredTable, TakesTheInterleavedScheduleFromVirtualStages) {
    const MeasuredTable table = parse_measured_table(kHead + row_with("a", "", ", virtual_pipeline: 3"), "my.yaml");
    EXPECT_EQ(std::get<std::vector<IterationRow>>(table.rows)[0].job.layout.schedule, Schedule::kInterleaved);
}

TEST(MeasuredTable, RejectsUnknownKeyWithLineNumberAndSuggestion) {
    EXPECT_EQ(message_of(kHead + row_with("a", "", ", virtual_pipelin: 1")),
              "my.yaml:10:78: unknown key 'virtual_pipelin' in rows[0].layout (did you mean 'virtual_pipeline'?)");
    EXPECT_THAT(message_of("formt: headway-measurements/1\n"), HasSubstr("did you mean 'format'?"));
}

TEST(MeasuredTable, RejectsWrongValuesByKeyAndPlace) {
    EXPECT_THAT(message_of(kHead + row_with("a", "", ", context: 0")),
                HasSubstr("my.yaml:10:87: rows[0].layout.context: 0 is not allowed (at least 1)"));
    EXPECT_THAT(message_of(kHead + row_with("a", "", ", context: two")),
                HasSubstr("rows[0].layout.context: 'two' is not allowed (a whole number"));
    EXPECT_THAT(message_of(kHead + row_with("a", "", ", recompute: ful")),
                HasSubstr("'ful' is not allowed (one of none, selective, full) (did you mean 'full'?)"));
    EXPECT_THAT(message_of(kHead + row_with("a", "", "", "iteration_s: 0")), HasSubstr("a number above 0"));
    EXPECT_THAT(message_of(kHead + row_with("a", "", "", "iteration_s: 1.5 s")), HasSubstr("'1.5 s' is not allowed"));
    EXPECT_THAT(message_of(kHead + row_with("a", "", "", "iteration_s: .nan")), HasSubstr("'.nan' is not allowed"));
}

TEST(MeasuredTable, RejectsMissingAndRepeatedKeys) {
    EXPECT_THAT(message_of(kHead + row_with("a", "", "", "tflops_per_gpu: 3")),
                HasSubstr("my.yaml:7:3: rows[0]: the key 'iteration_s' is missing"));
    EXPECT_THAT(message_of(kHead + row_with("a", "", "") + "  gpus: 8\n"), HasSubstr("given twice"));
    EXPECT_THAT(message_of(kHead + row_with("a", "", "") + row_with("a", "", "")),
                HasSubstr("the row 'a' is given twice"));
}

TEST(MeasuredTable, RejectsWhatIsNoTable) {
    EXPECT_THAT(message_of("format: headway-measurements/2\nrows: []\n"),
                HasSubstr("'headway-measurements/2' is not allowed (one of headway-measurements/1"));
    EXPECT_THAT(message_of(kHead + "  []\n"), HasSubstr("rows: empty (at least one row)"));
    EXPECT_THAT(message_of("rows: [\n"), HasSubstr("my.yaml"));
    EXPECT_THROW(parse_measured_table("", "my.yaml"), ConfigError);
    EXPECT_THROW(read_measured_table("no/such/table.yaml"), ConfigError);
}

TEST(MeasuredTable, ReadsSlowLinksAsPipelineHops) {
    const std::string head =
        "format: headway-slow-links/1\n"
        "cluster: {gpu: H800-SXM5-80GB, gpus_per_node: 8, nics_per_node: 8, nic_gbit_per_s: 400, network: unknown}\n"
        "rows:\n- id: s\n  schedule: zero_bubble\n  model: {layers: 46, hidden: 5120, heads: 32, sequence_length: "
        "1024}\n"
        "  layout: {tensor: 1, pipeline: 8, data: 1, micro_batch: 1, global_batch: 24}\n  gpus: 8\n"
        "  added_delay_ms: 30\n  healthy_s: 0.75\n  slowdown: 2.8\n  slow_links: ";
    const MeasuredTable table = parse_measured_table(head + "0-1,3-4,6-7\n", "my.yaml");
    const auto& row = std::get<std::vector<SlowLinkRow>>(table.rows).front();
    EXPECT_THAT(row.slow_hops, ElementsAre(0, 3, 6));
    EXPECT_EQ(row.job.layout.schedule, Schedule::kZeroBubble);
    EXPECT_EQ(row.job.model.ffn, 20480);
    EXPECT_THAT(row.job.assumed, testing::Contains(HasSubstr("vocab")));
    for (const char* wrong : {"7-8", "0-2", "1-0", "0", "x-y", "0-1 2"}) {
        EXPECT_THAT(message_of(head + "'" + wrong + "'\n"), HasSubstr("pairs of neighbouring stages")) << wrong;
    }
}

TEST(MeasuredTable, RejectsARecordedJobThatLacksAWorker) {
    const std::string text =
        "format: headway-recorded-jobs/1\nrows:\n- id: j\n  gpus: 2\n"
        "  layout: {tensor: 1, pipeline: 2, data: 1}\n  step_s: 1.0\n  schedule: 1f1b\n  workers:\n"
        "  - {dp_rank: 0, stage: 0, microbatches_per_step: 4, forward_compute_ms_median: 1, "
        "backward_compute_ms_median: 2}\n";
    EXPECT_THAT(message_of(text), HasSubstr("1 workers, but data x pipeline = 2"));
}

}  // namespace
}  // namespace headway::scenarios
