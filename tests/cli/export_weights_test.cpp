#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <fstream>
#include <nlohmann/json.hpp>

#include "backend/checkpoint/hugging_face.h"
#include "scenarios/language/read.h"
#include "tests/cli/run_program.h"
#include "tests/paths.h"

/// Weights of Hugging Face into a deployment and out of its checkpoint, as a person would do it.
namespace headway::tests {
namespace {

using ::testing::HasSubstr;

/// The model of tests/backend/checkpoint/hugging_face/gpt2. Weights move by less than a millionth.
constexpr const char* kScenario = R"(
name: tiny
job:
  model: {name: tiny gpt2, layers: 2, hidden: 16, heads: 4, ffn: 32, vocab: 13, sequence_length: 6}
  precision: fp32
  global_batch: 8
  micro_batch: 2
  stack: headway-host
  data: tokens.bin
  training: {learning_rate: 1e-9, final_learning_rate: 1e-9}
cluster:
  base: lab-4
  node: {gpu: paced-core, fabric: host-loopback, network: host-loopback}
strategy: {tensor: 2, pipeline: 2}
run: {iterations: 2}
)";

class WeightsFolder : public TestFolder {
  public:
    WeightsFolder() {
        write("s.yaml", kScenario);
        std::vector<std::int32_t> header(256);
        header[0] = 20240520;
        header[1] = 1;
        header[2] = 1000;
        std::ofstream file(path() / "tokens.bin", std::ios::binary);
        file.write(reinterpret_cast<const char*>(header.data()), 1024);
        for (std::uint16_t i = 0; i < 1000; ++i) {
            const auto token = static_cast<std::uint16_t>(i * i % 13);
            file.write(reinterpret_cast<const char*>(&token), 2);
        }
    }
};

std::string golden(const char* name) {
    return (source_directory() / "tests/backend/checkpoint/hugging_face" / name).string();
}

TEST(ExportWeights, WeightsGoIntoADeploymentAndComeOutOfItsCheckpoint) {
    const WeightsFolder folder;
    const ProgramResult deployed =
        folder.headway("deploy s.yaml --init '" + golden("gpt2") + "' --checkpoints ck --json");
    ASSERT_EQ(deployed.exit_code, 0) << deployed.err;
    const double first = nlohmann::json::parse(deployed.out)["loss"]["first"].get<double>();
    EXPECT_GT(first, 2.65) << "weights that were drawn know nothing: log 13 = 2.565";

    const ProgramResult exported = folder.headway("export-weights ck --out out");
    ASSERT_EQ(exported.exit_code, 0) << exported.err;
    EXPECT_EQ(exported.out, "out/model.safetensors: weights of tiny gpt2 after 2 steps, from ck/step-0000002\n");
    EXPECT_TRUE(folder.has("out/config.json"));
    const scenarios::Scenario scenario =
        scenarios::read_scenario(folder.path() / "s.yaml", {source_directory() / "scenarios"});
    const scenarios::Model& model = scenario.job.model;
    const backend::HuggingFaceWeights before(golden("gpt2"), model), after(folder.path() / "out", model);
    for (const scenarios::Block& block : scenarios::blocks_of(model)) {
        const scenarios::Interval whole{0, backend::real_elements(model, block.kind)};
        const std::vector<float> a = before.read(block, whole), b = after.read(block, whole);
        for (std::size_t i = 0; i < a.size(); ++i) ASSERT_NEAR(b[i], a[i], 1e-6);
    }

    const ProgramResult again = folder.headway("export-weights ck --out out");
    EXPECT_EQ(again.exit_code, 2);
    EXPECT_THAT(again.err, HasSubstr("--out out/model.safetensors: exists (--force overwrites it)"));
    EXPECT_EQ(folder.headway("export-weights ck/step-0000002 --out out --force --type bf16").exit_code, 0);
    EXPECT_EQ(std::filesystem::file_size(folder.path() / "out/model.safetensors") < 15'000, true) << "half as long";
}

TEST(ExportWeights, WeightsOfAnotherModelAreRefusedWithOneMessage) {
    const WeightsFolder folder;
    const ProgramResult result = folder.headway("deploy s.yaml --init '" + golden("llama") + "' --json");
    EXPECT_EQ(result.exit_code, 2);
    EXPECT_THAT(result.err, HasSubstr("llama/config.json: model_type is \"llama\""));
    const ProgramResult missing = folder.headway("deploy s.yaml --init nowhere --json");
    EXPECT_EQ(missing.exit_code, 2);
    EXPECT_THAT(missing.err, HasSubstr("nowhere: no such file"));
}

TEST(ExportWeights, ACutCheckpointIsRefusedByAllWithOneMessage) {
    const WeightsFolder folder;
    ASSERT_EQ(folder.headway("deploy s.yaml --checkpoints ck --json").exit_code, 0);
    std::filesystem::resize_file(folder.path() / "ck/step-0000002/rank-00002.safetensors", 3000);
    const ProgramResult exported = folder.headway("export-weights ck --out out");
    EXPECT_EQ(exported.exit_code, 2);
    EXPECT_THAT(exported.err, HasSubstr("ck/step-0000002/rank-00002.safetensors: is cut or was changed: 3000 bytes"));
    EXPECT_FALSE(folder.has("out/model.safetensors"));
    for (int i = 0; i < 3; ++i) {
        const ProgramResult resumed = folder.headway("deploy s.yaml --checkpoints ck --resume --json");
        EXPECT_EQ(resumed.exit_code, 2) << "whoever ends first";
        EXPECT_THAT(resumed.err, HasSubstr("rank-00002.safetensors: is cut or was changed: 3000 bytes"));
    }
    EXPECT_TRUE(folder.has("ck/step-0000002/manifest.json")) << "stays as it is";
}

TEST(ExportWeights, NeedsACheckpoint) {
    const TestFolder folder;
    EXPECT_THAT(folder.headway("export-weights none --out out").err, HasSubstr("none: no such folder"));
    EXPECT_THAT(folder.headway("export-weights . --out out").err, HasSubstr(".: holds no checkpoint"));
    EXPECT_FALSE(folder.has("out"));
}

}  // namespace
}  // namespace headway::tests
