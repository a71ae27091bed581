#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <string>
#include <vector>

#include "scenarios/language/read.h"
#include "tests/paths.h"

namespace headway::scenarios {
namespace {

namespace fs = std::filesystem;

Catalogue shipped_catalogue() {
    return {tests::source_directory() / "scenarios"};
}

std::vector<fs::path> shipped_scenarios() {
    std::vector<fs::path> files;
    for (const auto& entry : fs::directory_iterator(shipped_catalogue().directory)) {
        if (entry.path().extension() == ".yaml") files.push_back(entry.path());
    }
    std::sort(files.begin(), files.end());
    return files;
}

TEST(ShippedScenarios, AreThere) {
    std::set<std::string> names;
    for (const fs::path& file : shipped_scenarios()) names.insert(file.stem().string());
    for (const char* name : {"quickstart", "straggler", "thermal-rack", "gpt3-175b-1024", "mixed-a100-h800", "lab-4",
                             "two-racks", "h100-node", "starved-card", "recorded-job-ar", "bad-day"}) {
        EXPECT_TRUE(names.count(name)) << name;
    }
}

TEST(ShippedScenarios, ReadBackFromTheirResolvedForm) {
    for (const fs::path& file : shipped_scenarios()) {
        SCOPED_TRACE(file.string());
        const Scenario scenario = read_scenario(file, shipped_catalogue());
        const std::string text = write_scenario(scenario);
        // The resolved form needs neither the catalogue nor any other file.
        const Scenario again = parse_scenario(text, "resolved.yaml", "/nonexistent", Catalogue{"/nonexistent"});
        EXPECT_TRUE(again == scenario);
        EXPECT_EQ(write_scenario(again), text);
        EXPECT_NO_THROW(initial_plan(scenario.strategy, scenario.job, scenario.cluster));
    }
}

TEST(Quickstart, IsTheJobOfTheSc21TableOnABadDay) {
    const Scenario scenario = read_scenario(shipped_catalogue().directory / "quickstart.yaml", shipped_catalogue());
    const Layout& layout = scenario.strategy.layout;
    EXPECT_EQ(describe(layout), "t8 p8 d24 c1 v2 interleaved, recompute full");
    EXPECT_EQ(scenario.cluster.gpus(), 1536);
    EXPECT_EQ(scenario.cluster.gpu_type(0).name, "A100-SXM4-80GB");
    EXPECT_EQ(scenario.cluster.facility.spare_nodes, 0);
    EXPECT_EQ(scenario.job.global_batch, 2304);
    EXPECT_EQ(scenario.job.micro_batch, 2);
    EXPECT_EQ(scenario.job.model.layers, 80);
    EXPECT_EQ(scenario.job.model.hidden, 12288);
    EXPECT_EQ(scenario.job.stack.name, "megatron-lm-2021");
    ASSERT_EQ(scenario.disturbances.size(), 3u);
    EXPECT_STREQ(kind_of(scenario.disturbances[0].cause), "airflow");
    EXPECT_EQ(scenario.disturbances[0].start, Duration::seconds(60));
    EXPECT_STREQ(kind_of(scenario.disturbances[1].cause), "link_bandwidth");
    EXPECT_TRUE(scenario.disturbances[1].duration);
    EXPECT_STREQ(kind_of(scenario.disturbances[2].cause), "node_loss");
}

TEST(RecordedJobAr, HoldsTheSlowWorkerOfTheRecording) {
    const Scenario scenario =
        read_scenario(shipped_catalogue().directory / "recorded-job-ar.yaml", shipped_catalogue());
    ASSERT_TRUE(scenario.job.measured);
    const auto& workers = scenario.job.measured->workers;
    ASSERT_EQ(workers.size(), 16u);
    EXPECT_EQ(workers[0].forward, Duration::nanoseconds(545'721'000));
    EXPECT_EQ(workers[0].backward, Duration::nanoseconds(869'250'000));
    for (std::size_t i = 1; i < workers.size(); ++i) EXPECT_LT(workers[i].forward, Duration::milliseconds(240));
}

TEST(LanguageReference, NamesEveryKeyOfAScenario) {
    std::ifstream stream(shipped_catalogue().directory / "README.md");
    const std::string reference{std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>()};
    const std::set<std::string> catalogue_only{"gpu", "fabric", "network",
                                               "stack"};  // their keys are explained by their files
    std::string text =
        write_scenario(read_scenario(shipped_catalogue().directory / "quickstart.yaml", shipped_catalogue()));
    int checked = 0;
    std::size_t skip_from = std::string::npos;  // indentation of the entry whose keys are not in the reference
    for (std::size_t at = 0; at < text.size();) {
        const std::size_t end = text.find('\n', at);
        const std::string line = text.substr(at, end - at);
        at = end + 1;
        const std::size_t indent = line.find_first_not_of(" -");
        const std::string key = line.substr(indent, line.find(':') - indent);
        if (skip_from != std::string::npos && indent > skip_from) continue;
        skip_from = catalogue_only.count(key) && line.back() == ':' && indent > 0 ? indent : std::string::npos;
        EXPECT_NE(reference.find("`" + key + "`"), std::string::npos) << key;
        ++checked;
    }
    EXPECT_GT(checked, 60);
    for (const char* kind : kCauseKinds)
        EXPECT_NE(reference.find("`" + std::string(kind) + "`"), std::string::npos) << kind;
}

TEST(ShippedCatalogue, EveryEntryReadsAndEveryNumberHasASource) {
    // A number without a source is an error of reading (see catalogue_test.cpp).
    const Catalogue catalogue = shipped_catalogue();
    for (const std::string& name : catalogue_names(catalogue, "gpus")) EXPECT_EQ(read_gpu(catalogue, name).name, name);
    for (const std::string& name : catalogue_names(catalogue, "fabrics"))
        EXPECT_EQ(read_fabric(catalogue, name).name, name);
    for (const std::string& name : catalogue_names(catalogue, "stacks"))
        EXPECT_EQ(read_stack(catalogue, name).name, name);
    for (const std::string& name : catalogue_names(catalogue, "clusters"))
        EXPECT_EQ(read_cluster(catalogue, name).name, name);
    for (const std::string& name : catalogue_names(catalogue, "models"))
        EXPECT_EQ(read_model(catalogue, name).name, name);
}

TEST(ShippedCatalogue, DescribesEveryEntry) {
    for (const char* kind : {"gpus", "fabrics", "stacks", "clusters", "models"}) {
        const auto names = catalogue_names(shipped_catalogue(), kind);
        EXPECT_FALSE(names.empty()) << kind;
        for (const std::string& name : names)
            EXPECT_NE(catalogue_description(shipped_catalogue(), kind, name), "") << kind << "/" << name;
    }
}

}  // namespace
}  // namespace headway::scenarios
