#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/cli/run_program.h"
#include "tests/paths.h"

namespace headway::tests {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::string measured(const std::string& table) {
    return "'" + (source_directory() / "scenarios/measured" / table).string() + "'";
}

const char* const kHead = R"(format: headway-measurements/1
title: my cluster
cluster: {gpu: A100-SXM4-80GB, gpus_per_node: 8, nics_per_node: 8, nic_gbit_per_s: 200, network: InfiniBand HDR}
rows:
)";

std::string row(const std::string& id, const std::string& software, int gpus, double seconds) {
    return "- {id: " + id + ", software: '" + software + "', gpus: " + std::to_string(gpus) +
           ", precision: fp16, iteration_s: " + std::to_string(seconds) +
           ",\n   model: {layers: 48, hidden: 6144, heads: 64, kv_heads: 64, ffn: 24576, gated_mlp: false, vocab: "
           "51200, "
           "sequence_length: 2048},\n   layout: {tensor: 8, pipeline: 1, data: 1, micro_batch: 4, global_batch: 4, "
           "recompute: full}}\n";
}

TEST(Validate, PrintsThePromisedJson) {
    const TestFolder folder;
    const ProgramResult result =
        folder.headway("validate --json " + measured("megatron-sc21.yaml") + " " + measured("recorded-jobs.yaml"));
    ASSERT_EQ(result.exit_code, 0) << result.err;
    const json report = json::parse(result.out);
    ASSERT_EQ(report.at("tables").size(), 2u);
    double sum = 0.0;
    int rows = 0;
    for (const json& table : report["tables"]) {
        for (const char* key : {"file", "rows", "mape", "worst", "bias", "kendall_tau"}) {
            EXPECT_TRUE(table.contains(key)) << key;
        }
        double absolute = 0.0;
        for (const json& each : table["rows"]) {
            const double measured_value = each.at("measured"), predicted = each.at("predicted");
            EXPECT_NEAR(each.at("error"), (predicted - measured_value) / measured_value, 1e-12);
            absolute += std::abs(each["error"].get<double>());
            ++rows;
        }
        EXPECT_NEAR(table["mape"], absolute / static_cast<double>(table["rows"].size()), 1e-12);
        sum += absolute;
    }
    EXPECT_NEAR(report.at("mape"), sum / rows, 1e-12);
}

TEST(Validate, ListsRowsThatCannotBeExpressedWithTheReason) {
    const TestFolder folder;
    folder.write("t.yaml", kHead + row("good", "megatron-lm, 2022", 8, 1.4) + row("unknown", "my-own-trainer", 8, 1.4) +
                               row("degrees", "megatron-lm, 2022", 16, 1.4));
    const json table = json::parse(folder.headway("validate t.yaml --json").out)["tables"][0];
    ASSERT_EQ(table["rows"].size(), 3u);
    EXPECT_TRUE(table["rows"][0]["predicted"].is_number());
    EXPECT_TRUE(table["rows"][1]["predicted"].is_null());
    EXPECT_THAT(table["rows"][1]["reason"].get<std::string>(), HasSubstr("--stack"));
    EXPECT_TRUE(table["rows"][2]["predicted"].is_null());
    EXPECT_THAT(table["rows"][2]["reason"].get<std::string>(), HasSubstr("16 GPUs"));
    const ProgramResult text = folder.headway("validate t.yaml --summary");
    EXPECT_THAT(text.out, HasSubstr("1 of 3 rows"));
    EXPECT_THAT(text.out, HasSubstr("my-own-trainer"));
    // A stack that is named serves every row.
    const json named = json::parse(folder.headway("validate t.yaml --stack megatron-lm-2022 --json").out)["tables"][0];
    EXPECT_EQ(named["rows"][1]["predicted"], named["rows"][0]["predicted"]);
}

TEST(Validate, RejectsAMistakeInATableWithItsPlace) {
    const TestFolder folder;
    folder.write("t.yaml", kHead + row("a", "megatron-lm, 2022", 0, 1.4));
    const ProgramResult result = folder.headway("validate " + measured("megatron-sc21.yaml") + " t.yaml");
    EXPECT_EQ(result.exit_code, 2);
    EXPECT_THAT(result.out, IsEmpty());
    EXPECT_THAT(result.err, HasSubstr("t.yaml:5:"));
    EXPECT_THAT(result.err, HasSubstr("rows[0].gpus: 0 is not allowed (at least 1)"));
}

TEST(Validate, ReadsEveryTableOfAFolder) {
    const TestFolder folder;
    std::filesystem::create_directories(folder.path() / "tables" / "more");
    folder.write("tables/b.yaml", kHead + row("b", "megatron-lm, 2022", 8, 1.4));
    folder.write("tables/more/a.yaml", kHead + row("a", "megatron-lm, 2022", 8, 1.4));
    folder.write("tables/notes.txt", "no table");
    folder.write("tables/sheet.yaml", "gpus: [A100]\n");
    const ProgramResult result = folder.headway("validate tables --json");
    EXPECT_EQ(result.exit_code, 0);
    EXPECT_EQ(result.err, "headway: tables/sheet.yaml: no table (it states no format), left out\n");
    const json report = json::parse(result.out);
    ASSERT_EQ(report["tables"].size(), 2u);
    EXPECT_EQ(report["tables"][0]["file"], "tables/b.yaml");
    EXPECT_EQ(report["tables"][1]["file"], "tables/more/a.yaml");
    // As the README of the tables writes it.
    const std::string measured_folder = (source_directory() / "scenarios/measured").string();
    EXPECT_EQ(folder.headway("validate --summary '" + measured_folder + "'/*.yaml").exit_code, 0);
    std::filesystem::create_directories(folder.path() / "empty");
    EXPECT_EQ(folder.headway("validate empty").exit_code, 2);
}

TEST(Validate, ReadsItsCatalogueFromTheFolderThatIsNamed) {
    const TestFolder folder;
    folder.write("t.yaml", kHead + row("a", "megatron-lm, 2022", 8, 1.4));
    std::filesystem::copy(source_directory() / "scenarios", folder.path() / "mine",
                          std::filesystem::copy_options::recursive);
    const std::string before = folder.headway("validate t.yaml --json --catalogue mine").out;
    EXPECT_EQ(before, folder.headway("validate t.yaml --json").out);
    const std::string gpu = folder.read("mine/gpus/A100-SXM4-80GB.yaml");
    const std::size_t at = gpu.find("[312 TFLOP/s");
    ASSERT_NE(at, std::string::npos);
    folder.write("mine/gpus/A100-SXM4-80GB.yaml", std::string(gpu).replace(at, 12, "[156 TFLOP/s"));
    const double slow =
        json::parse(folder.headway("validate t.yaml --json --catalogue mine").out)["tables"][0]["rows"][0]["predicted"];
    const double fast = json::parse(before)["tables"][0]["rows"][0]["predicted"];
    EXPECT_GT(slow, 1.5 * fast);
}

}  // namespace
}  // namespace headway::tests
