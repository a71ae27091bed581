#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "tests/scenarios/language/small_scenario.h"

namespace headway::scenarios {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

const char* const kTinyShape = "layers: 2\nhidden: 64\nheads: 4\nffn: 256\nvocab: 1000\nsequence_length: 128\n";

class OwnCatalogue : public testing::Test {
  protected:
    void SetUp() override {
        catalogue_.directory = fs::temp_directory_path() / ("headway-catalogue-" + std::to_string(getpid()));
        fs::create_directories(catalogue_.directory / "models");
    }
    void TearDown() override { fs::remove_all(catalogue_.directory); }

    void model(const std::string& name, const std::string& text) const {
        std::ofstream(catalogue_.directory / "models" / (name + ".yaml")) << text;
    }

    std::string model_error(const std::string& name) const {
        try {
            read_model(catalogue_, name);
        } catch (const ConfigError& error) {
            return error.what();
        }
        ADD_FAILURE() << "accepted without an error: " << name;
        return {};
    }

    Catalogue catalogue_;
};

TEST_F(OwnCatalogue, DemandsASourceForEveryNumber) {
    model("bare", kTinyShape);
    EXPECT_THAT(model_error("bare"),
                AllOf(HasSubstr("bare.yaml:1:9: layers: 2 has no source"), HasSubstr("[2, assumed]")));
    model("covered", std::string("source: a paper\n") + kTinyShape);
    EXPECT_EQ(read_model(catalogue_, "covered").layers, 2);
    model("single",
          "sources: {paper: Some 2020}\nlayers: [2, paper]\nhidden: [64, paper]\nheads: [4, assumed]\nffn: [256, "
          "paper]\nvocab: [1000, paper]\nsequence_length: [128, paper]\n");
    EXPECT_EQ(read_model(catalogue_, "single").hidden, 64);
}

TEST_F(OwnCatalogue, RejectsASourceThatIsNotDefined) {
    model("typo", "sources: {paper: Some 2020}\nlayers: [2, papr]\n");
    EXPECT_THAT(
        model_error("typo"),
        HasSubstr("typo.yaml:2:13: layers: source 'papr' is not defined under sources (did you mean 'paper'?)"));
}

TEST_F(OwnCatalogue, BuildsEntriesOnOthers) {
    model("base", std::string("source: a paper\n") + kTinyShape);
    model("deeper", "base: base\nlayers: [4, assumed]\n");
    const Model deeper = read_model(catalogue_, "deeper");
    EXPECT_EQ(deeper.layers, 4);
    EXPECT_EQ(deeper.hidden, 64);
    EXPECT_EQ(deeper.name, "deeper");
}

TEST_F(OwnCatalogue, RejectsEntriesThatAreBasedOnThemselves) {
    model("snake", "base: tail\n");
    model("tail", "base: snake\n");
    EXPECT_THAT(model_error("snake"), HasSubstr("is based on itself, or on too long a chain of entries"));
}

TEST_F(OwnCatalogue, ReportsUnknownKeysWithTheFileOfTheEntry) {
    model("wrong", std::string("source: a paper\nlayer: 3\n") + kTinyShape);
    EXPECT_THAT(model_error("wrong"),
                AllOf(HasSubstr("wrong.yaml:2:1: unknown key 'layer' in models"), HasSubstr("did you mean 'layers'?")));
    model("named", "name: x\n");
    EXPECT_THAT(model_error("named"), HasSubstr("named.yaml:1:7: name: not allowed here"));
}

TEST_F(OwnCatalogue, BlamesTheEntryForAKeyThatItLacks) {
    model("short", "source: a paper\nlayers: 2\n");
    EXPECT_THAT(model_error("short"), HasSubstr("short.yaml:1:1: models.hidden: missing"));
}

TEST_F(OwnCatalogue, ListsItsEntries) {
    model("b", "description: second\n");
    model("a", "description: first\n");
    EXPECT_THAT(catalogue_names(catalogue_, "models"), ElementsAre("a", "b"));
    EXPECT_EQ(catalogue_description(catalogue_, "models", "a"), "first");
    EXPECT_TRUE(catalogue_names(catalogue_, "gpus").empty());
}

TEST(CatalogueNames, SuggestTheNearestEntry) {
    EXPECT_THAT(error_of(small_with("model: gpt2-124m", "model: gpt2-124")),
                AllOf(StartsWith("small.yaml:3:10: job.model: 'gpt2-124' is not in the catalogue of models"),
                      HasSubstr("(did you mean 'gpt2-124m'?)")));
    EXPECT_THAT(error_of(small_with("base: selene", "base: seline")),
                AllOf(StartsWith("small.yaml:9:9: cluster.base: 'seline'"), HasSubstr("(did you mean 'selene'?)")));
    EXPECT_THROW(read_gpu(shipped(), "A100"), ConfigError);
}

TEST(CatalogueNames, CannotLeaveTheCatalogue) {
    for (const char* name : {"../models/gpt2-124m", "/etc/passwd", ".", "..", "a/b", "''", "\"a\\nb\""}) {
        EXPECT_THAT(error_of(small_with("model: gpt2-124m", std::string("model: ") + name)),
                    HasSubstr("is not in the catalogue of models"))
            << name;
    }
}

TEST(CatalogueEntries, TakeOverridesOfSingleKeys) {
    const Scenario scenario = parse_scenario(
        small_with("  nodes: 1\n", "  nodes: 1\n  node: {gpu: {power_limit: 300 W, thermal: {max_operating: 80 C}}}\n"),
        "small.yaml", ".", shipped());
    const GpuType plain = read_gpu(shipped(), "A100-SXM4-80GB");
    const GpuType& changed = scenario.cluster.node(0).gpu;
    EXPECT_EQ(changed.power_limit.value, 300.0);
    EXPECT_EQ(changed.thermal.max_operating.value, 80.0);
    EXPECT_EQ(changed.thermal.slowdown, plain.thermal.slowdown);
    EXPECT_EQ(changed.name, "A100-SXM4-80GB");
}

TEST(CatalogueEntries, CanBeWrittenOutWithoutABase) {
    EXPECT_THAT(error_of(small_with("model: gpt2-124m", "model: {layers: 2}")), HasSubstr("job.model.hidden: missing"));
    const Scenario scenario = parse_scenario(
        small_with("model: gpt2-124m",
                   "model: {layers: 2, hidden: 64, heads: 4, ffn: 256, vocab: 1000, sequence_length: 128}"),
        "small.yaml", ".", shipped());
    EXPECT_EQ(scenario.job.model.ffn, 256);
    EXPECT_EQ(scenario.job.model.name, "");
}

}  // namespace
}  // namespace headway::scenarios
