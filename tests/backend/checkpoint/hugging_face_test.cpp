#include "backend/checkpoint/hugging_face.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>

#include "backend/checkpoint/checkpoint.h"
#include "backend/checkpoint/hugging_face_names.h"
#include "backend/host/host_device.h"
#include "scenarios/language/config_error.h"
#include "tests/backend/checkpoint/saved_state.h"
#include "tests/backend/local_ranks.h"
#include "tests/backend/transformer/chunk_run.h"
#include "tests/paths.h"
#include "tests/scenarios/transfer/small_plans.h"

namespace headway::backend {
namespace {

using scenarios::Block;
using scenarios::BlockKind;
using scenarios::Interval;
using ::testing::HasSubstr;

/// As transformers saved them: golden.py there is the recipe.
std::filesystem::path golden_folder() {
    return tests::source_directory() / "tests/backend/checkpoint/hugging_face";
}

scenarios::Model golden_model(const std::string& name) {
    scenarios::Model model = name == "gpt2" ? small_gpt2() : small_llama();
    model.name = name;
    return model;
}

scenarios::Job job_of_model(const scenarios::Model& model) {
    scenarios::Job job = scenarios::transfer_test::tiny_job(model.tied_embedding);
    job.model = model;
    return job;
}

BlockValues read_all(const HuggingFaceWeights& weights, const scenarios::Model& model) {
    BlockValues values;
    for (const Block& block : scenarios::blocks_of(model)) {
        const std::vector<float> elements = weights.read(block, {0, real_elements(model, block.kind)});
        values[{block.kind, block.layer}] = {elements.begin(), elements.end()};
    }
    return values;
}

std::string weights_error(const std::filesystem::path& path, const scenarios::Model& model) {
    try {
        HuggingFaceWeights(path, model);
    } catch (const scenarios::ConfigError& error) {
        return error.what();
    }
    return "no error";
}

class HuggingFace : public ::testing::TestWithParam<std::string> {};

/// So names, orders, transposition, rotary pairs, GQA, activations and epsilons are those of transformers.
TEST_P(HuggingFace, WeightsGiveTheLossThatTransformersHave) {
    std::ifstream figures(golden_folder() / "losses.txt");
    std::string name;
    double loss = 0.0;
    Tokens tokens{std::vector<std::int32_t>(6), std::vector<std::int32_t>(6)};
    do {
        ASSERT_TRUE(figures >> name >> loss);
        for (std::vector<std::int32_t>* const row : {&tokens.inputs, &tokens.targets})
            for (std::int32_t& token : *row) figures >> token;
    } while (name != GetParam());
    RunSetup setup;
    setup.model = golden_model(GetParam());
    setup.micro_batch = 1;
    const HuggingFaceWeights weights(golden_folder() / GetParam(), setup.model);
    const auto device = make_host_device(DataType::kFloat64);
    ChunkRun run(*device, setup);
    run.set_weights(read_all(weights, setup.model));
    // The library computes rotary angles in single precision.
    EXPECT_NEAR(run.run({tokens}).loss, loss, (GetParam() == "gpt2" ? 1e-12 : 1e-7) * loss);
}

TEST_P(HuggingFace, AnyIntervalIsAPartOfTheWhole) {
    const scenarios::Model model = golden_model(GetParam());
    const HuggingFaceWeights weights(golden_folder() / GetParam(), model);
    const BlockValues whole = read_all(weights, model);
    std::mt19937_64 random(3);
    for (const auto& [block, values] : whole) {
        const auto size = static_cast<std::int64_t>(values.size());
        for (int i = 0; i < 50; ++i) {
            const auto begin = static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(size));
            const auto end =
                begin + static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(size - begin + 20));
            const std::vector<float> part = weights.read({block.first, block.second}, {begin, end});
            for (std::int64_t e = begin; e < end; ++e)
                ASSERT_EQ(part[static_cast<std::size_t>(e - begin)],
                          e < size ? whole.at(block)[static_cast<std::size_t>(e)] : 0.0);
        }
    }
}

/// Into a training under one plan, saved, and written for transformers again: the same values, and no tensor more or
/// less.
TEST_P(HuggingFace, WeightsComeBackAsTheyWere) {
    const ScratchFolder folder;
    const scenarios::Job job = job_of_model(golden_model(GetParam()));
    scenarios::Layout layout;
    layout.tensor = layout.pipeline = 2;
    const scenarios::Plan plan = scenarios::transfer_test::even_plan(job, layout);
    run_ranks(4, [&](LocalRank& local) {
        const auto device = make_host_device();
        PlanState state(job, plan, local.rank, *device);
        state.fill(3);
        load_hugging_face(golden_folder() / GetParam(), job, local.control, *device, state.slices());
        for (const StateSlice& slice : state.slices())
            for (const Tensor* const moment : {&slice.first_moment, &slice.second_moment})
                for (std::int64_t i = 0; i < moment->count(); ++i)
                    EXPECT_EQ(static_cast<const float*>(moment->data)[i], 0.0F);
        CheckpointStore store(folder.path(), local.control);
        store.save(job, plan, {0, 1, ""}, *device, state.slices());
        store.finish();
    });
    CheckpointReader checkpoint(find_checkpoint(folder.path()));
    const BlockValues wanted = read_all(HuggingFaceWeights(golden_folder() / GetParam(), job.model), job.model);
    export_hugging_face(checkpoint, folder.path() / "out", WeightType::kFloat32);
    EXPECT_EQ(read_all(HuggingFaceWeights(folder.path() / "out", job.model), job.model), wanted);
    export_hugging_face(checkpoint, folder.path() / "one.safetensors", WeightType::kFloat32);
    EXPECT_EQ(read_all(HuggingFaceWeights(folder.path() / "one.safetensors", job.model), job.model), wanted);
    const SafetensorsHeader header = read_safetensors_header(PlainFile::open(folder.path() / "one.safetensors"));
    EXPECT_EQ(header.metadata.at("format"), "pt") << "transformers ask for it";

    export_hugging_face(checkpoint, folder.path() / "b.safetensors", WeightType::kBfloat16);
    export_hugging_face(checkpoint, folder.path() / "h.safetensors", WeightType::kFloat16);
    const BlockValues rough = read_all(HuggingFaceWeights(folder.path() / "b.safetensors", job.model), job.model);
    const BlockValues half = read_all(HuggingFaceWeights(folder.path() / "h.safetensors", job.model), job.model);
    for (const auto& [block, values] : wanted)
        for (std::size_t i = 0; i < values.size(); ++i) {
            EXPECT_NEAR(rough.at(block)[i], values[i], std::abs(values[i]) / 256);
            EXPECT_NEAR(half.at(block)[i], values[i], std::abs(values[i]) / 2048 + 1e-7);
        }
}

INSTANTIATE_TEST_SUITE_P(Families, HuggingFace, ::testing::Values("gpt2", "llama"),
                         [](const auto& family) { return family.param; });

TEST(HuggingFaceErrors, AModelOfAnotherShapeIsRefused) {
    scenarios::Model model = golden_model("gpt2");
    model.ffn = 64;
    EXPECT_THAT(weights_error(golden_folder() / "gpt2/model.safetensors", model),
                HasSubstr("gpt2/config.json: n_inner is 32, which"));
    model = golden_model("gpt2");
    model.vocab = 14;
    std::filesystem::path file = golden_folder() / "gpt2/model.safetensors";
    const ScratchFolder folder;
    std::filesystem::copy_file(file, folder.path() / "alone.safetensors");
    file = folder.path() / "alone.safetensors";
    EXPECT_THAT(weights_error(file, model), HasSubstr("alone.safetensors: tensor 'transformer.wte.weight' is [13, 16], "
                                                      "not [14, 16] as the scenario's model 'gpt2' has it"));
    model = golden_model("gpt2");
    model.layers = 3;
    EXPECT_THAT(weights_error(file, model),
                HasSubstr("tensor 'h.2.attn.c_attn.weight' of the scenario's model 'gpt2' is missing"));
    model.layers = 1;
    EXPECT_THAT(weights_error(file, model), HasSubstr("the scenario's model 'gpt2' has no tensor 'h.1."));
    model = golden_model("gpt2");
    model.sequence_length = 13;
    EXPECT_THAT(weights_error(file, model), HasSubstr("wpe.weight' is [12, 16], not [13, 16]"));
    EXPECT_THAT(weights_error(file, golden_model("llama")),
                HasSubstr("tensor 'model.embed_tokens.weight' of the scenario's model 'llama' is missing"));
}

TEST(HuggingFaceErrors, WhatTheShapesDoNotTellTheConfigDoes) {
    scenarios::Model model = golden_model("llama");
    model.rotary_base = 10000.0;
    EXPECT_THAT(weights_error(golden_folder() / "llama", model),
                HasSubstr("llama/config.json: rope_theta is 100.0, which the scenario's model 'llama' has at 10000.0"));
    model = golden_model("gpt2");
    model.heads = model.kv_heads = 2;
    model.head_dim = 8;
    EXPECT_THAT(weights_error(golden_folder() / "gpt2", model), HasSubstr("n_head is 4"));
    const std::string file = "x/config.json";
    model = golden_model("llama");
    EXPECT_THROW(check_hugging_face_config(model, R"({"rope_scaling": {"factor": 8.0}})", file),
                 scenarios::ConfigError);
    EXPECT_THROW(check_hugging_face_config(model, R"({"hidden_act": "gelu"})", file), scenarios::ConfigError);
    EXPECT_THROW(check_hugging_face_config(model, "[]", file), scenarios::ConfigError);
    EXPECT_THROW(check_hugging_face_config(model, "{", file), scenarios::ConfigError);
    check_hugging_face_config(model, R"({"rope_scaling": null, "max_position_embeddings": 8192, "more": 1})", file);
}

TEST(HuggingFaceErrors, AModelOfNeitherFamilyIsRefused) {
    scenarios::Model model = golden_model("gpt2");
    model.norm = scenarios::Norm::kRms;
    EXPECT_THAT(weights_error(golden_folder() / "gpt2", model), HasSubstr("model 'gpt2' is neither a GPT-2 ("));
}

TEST(HuggingFaceErrors, AFolderWithoutWeightsAndACutFileAreRefused) {
    const ScratchFolder folder;
    const scenarios::Model model = golden_model("llama");
    EXPECT_THAT(weights_error(folder.path(), model),
                HasSubstr(": holds neither model.safetensors nor model.safetensors.index.json"));
    EXPECT_THAT(weights_error(folder.path() / "none.safetensors", model), HasSubstr("none.safetensors: no such file"));
    for (const auto& entry : std::filesystem::directory_iterator(golden_folder() / "llama"))
        std::filesystem::copy_file(entry.path(), folder.path() / entry.path().filename());
    EXPECT_EQ(weights_error(folder.path(), model), "no error");
    std::filesystem::resize_file(folder.path() / "model-00002-of-00002.safetensors", 4000);
    EXPECT_THAT(weights_error(folder.path(), model), HasSubstr("model-00002-of-00002.safetensors: is cut"));
    std::filesystem::remove(folder.path() / "model-00002-of-00002.safetensors");
    EXPECT_THAT(weights_error(folder.path(), model), HasSubstr("model-00002-of-00002.safetensors: no such file"));
    replace_file(folder.path() / "model.safetensors.index.json", R"({"weight_map": {"a": "../b"}})");
    EXPECT_THAT(weights_error(folder.path(), model), HasSubstr("'../b' is no file of the same folder"));
    replace_file(folder.path() / "model.safetensors.index.json", "{}");
    EXPECT_THAT(weights_error(folder.path(), model), HasSubstr("weight_map"));
}

TEST(HuggingFaceErrors, AreToldByEveryProcessAlike) {
    const scenarios::Job job = job_of_model(golden_model("gpt2"));
    const auto outcomes = rank_outcomes(2, [&](LocalRank& local) -> std::string {
        const auto device = make_host_device();
        PlanState state(job, scenarios::transfer_test::even_plan(job, {}), local.rank, *device);
        // A folder that only one process lacks, as on a machine without the disk.
        load_hugging_face(local.rank == 1 ? "/nowhere" : golden_folder() / "gpt2", job, local.control, *device,
                          state.slices());
        return "";
    });
    for (const RankOutcome& outcome : outcomes) EXPECT_EQ(outcome.error, "/nowhere: no such file");
}

}  // namespace
}  // namespace headway::backend
