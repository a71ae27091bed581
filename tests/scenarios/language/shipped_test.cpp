#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
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
    EXPECT_TRUE(names.count("quickstart"));
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
