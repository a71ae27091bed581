#include "backend/checkpoint/checkpoint.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <csignal>
#include <random>
#include <set>

#include "backend/backend_error.h"
#include "backend/checkpoint/checkpoint_reader.h"
#include "backend/host/host_device.h"
#include "scenarios/costs/parameters.h"
#include "scenarios/language/config_error.h"
#include "tests/backend/checkpoint/saved_state.h"
#include "tests/backend/local_ranks.h"
#include "tests/scenarios/transfer/small_plans.h"

namespace headway::backend {
namespace {

using scenarios::Job;
using scenarios::Layout;
using scenarios::Plan;
using scenarios::transfer_test::even_plan;
using scenarios::transfer_test::text_of;
using scenarios::transfer_test::tiny_job;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::set<std::string> names_in(const std::filesystem::path& folder) {
    std::set<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(folder))
        names.insert(entry.path().filename().string());
    return names;
}

Plan plan_of(const Job& job, int tensor, int pipeline, int data, bool distributed = false) {
    Layout layout;
    layout.tensor = tensor;
    layout.pipeline = pipeline;
    layout.data = data;
    layout.distributed_optimizer = distributed;
    return even_plan(job, layout);
}

/// Any plan that `processes` can run.
Plan random_plan(const Job& job, int processes, std::mt19937_64& random) {
    const std::vector<Layout> layouts = scenarios::transfer_test::all_layouts(processes);
    return scenarios::transfer_test::shaken(job, layouts[random() % layouts.size()], processes, true, random);
}

void save_generation(CheckpointStore& store, const Job& job, const Plan& plan, int process, int step) {
    const auto device = make_host_device();
    PlanState state(job, plan, process, *device);
    state.fill(step);
    store.save(job, plan, {step, 7, "a scenario"}, *device, state.slices());
}

/// Loads under `plan`; empty: every element is that of the step.
std::string loaded_difference(CheckpointStore& store, const Job& job, const Plan& plan, int process, int step,
                              DataType type = DataType::kFloat32) {
    const auto device = make_host_device(type);
    PlanState state(job, plan, process, *device);
    store.load(job, {step, 0, ""}, *device, state.slices());
    return state.difference(step);
}

/// What loading step 1 throws, under one rank a stage.
std::string loading_error(const std::filesystem::path& folder, const Job& job) {
    const auto errors = run_ranks(2, [&](LocalRank& local) -> std::string {
        CheckpointStore store(folder, local.control);
        try {
            loaded_difference(store, job, plan_of(job, 1, 2, 1), local.rank, 1);
        } catch (const scenarios::ConfigError& error) {
            return error.what();
        }
        return "no error";
    });
    EXPECT_EQ(errors[0], errors[1]);
    return errors[0];
}

class CheckpointFaults : public ::testing::Test {
  protected:
    CheckpointFaults() {
        run_ranks(2, [&](LocalRank& local) {
            CheckpointStore store(folder_.path(), local.control);
            save_generation(store, job_, plan_of(job_, 2, 1, 1), local.rank, 1);
            store.finish();
        });
        EXPECT_THAT(names_in(checkpoint()),
                    ElementsAre("manifest.json", "rank-00000.safetensors", "rank-00001.safetensors"));
    }
    std::filesystem::path checkpoint() const { return folder_.path() / "step-0000001"; }
    void change(const std::string& name, const std::function<void(std::string&)>& edit) const {
        std::string text = text_of_file(checkpoint() / name, 1 << 20);
        edit(text);
        replace_file(checkpoint() / name, text);
    }

    ScratchFolder folder_;
    Job job_ = tiny_job(true);
};

TEST(Checkpoint, LoadsUnderAnyOtherPlan) {
    const ScratchFolder folder;
    run_ranks(4, [&](LocalRank& local) {
        std::mt19937_64 random(17);
        CheckpointStore store(folder.path(), local.control);
        for (int step = 1; step <= 40; ++step) {
            const Job job = tiny_job(step % 2 == 0);
            const Plan before = random_plan(job, 4, random), after = random_plan(job, 4, random);
            save_generation(store, job, before, local.rank, step);
            store.finish();
            EXPECT_EQ(store.newest()->step, step);
            EXPECT_EQ(loaded_difference(store, job, after, local.rank, step), "")
                << text_of(before) << " to " << text_of(after);
        }
    });
}

TEST(Checkpoint, TellsWhatItIsOf) {
    const ScratchFolder folder;
    run_ranks(2, [&](LocalRank& local) {
        const Job job = tiny_job(false);
        CheckpointStore store(folder.path() / "new" / "folder", local.control);
        EXPECT_FALSE(store.newest().has_value());
        save_generation(store, job, plan_of(job, 1, 2, 1), local.rank, 120);
        store.finish();
        const std::optional<CheckpointInfo> info = store.newest();
        ASSERT_TRUE(info.has_value());
        EXPECT_EQ(info->step, 120);
        EXPECT_EQ(info->seed, 7U);
        EXPECT_EQ(info->scenario, "a scenario");
    });
}

TEST(Checkpoint, HoldsTheStateAsItWasWhenSaveWasCalled) {
    const ScratchFolder folder;
    run_ranks(2, [&](LocalRank& local) {
        const Job job = tiny_job(true);
        const Plan plan = plan_of(job, 1, 1, 2, true);
        const auto device = make_host_device();
        PlanState state(job, plan, local.rank, *device);
        CheckpointStore store(folder.path(), local.control);
        for (int step = 1; step <= 5; ++step) {
            state.fill(step);
            store.save(job, plan, {step, 7, ""}, *device, state.slices());
            state.fill(99);
        }
        store.finish();
        EXPECT_EQ(loaded_difference(store, job, plan, local.rank, 5), "");
    });
}

TEST(Checkpoint, KeepsTheNewest) {
    const ScratchFolder folder;
    run_ranks(2, [&](LocalRank& local) {
        const Job job = tiny_job(true);
        CheckpointStore store(folder.path(), local.control, 3);
        for (const int step : {10, 20, 30, 40, 50, 50})
            save_generation(store, job, plan_of(job, 1, 2, 1), local.rank, step);
        store.finish();
        EXPECT_EQ(loaded_difference(store, job, plan_of(job, 1, 1, 1), local.rank, 50), "");
    });
    EXPECT_THAT(names_in(folder.path()), ElementsAre("step-0000040", "step-0000050", "step-0000050-2"));
    run_ranks(1, [&](LocalRank& local) {
        const Job job = tiny_job(true);
        CheckpointStore store(folder.path(), local.control, 1);
        save_generation(store, job, plan_of(job, 1, 1, 1), 0, 3);
        store.finish();
    });
    EXPECT_THAT(names_in(folder.path()), ElementsAre("step-0000003")) << "what was just written stays";
}

TEST(Checkpoint, WritesEachElementOnce) {
    const ScratchFolder folder;
    const Job job = tiny_job(true);
    run_ranks(4, [&](LocalRank& local) {
        CheckpointStore store(folder.path(), local.control);
        save_generation(store, job, plan_of(job, 1, 1, 4), local.rank, 1);
        store.finish();
    });
    EXPECT_THAT(names_in(folder.path() / "step-0000001"), ElementsAre("manifest.json", "rank-00000.safetensors"))
        << "replicas have the same";
    const CheckpointReader reader(folder.path() / "step-0000001");
    std::int64_t elements = 0;
    for (const SavedPart& part : reader.manifest().files.at(0).parts) elements += part.elements.size();
    EXPECT_EQ(elements, scenarios::model_parameters(job.model));
}

TEST(Checkpoint, ChangesBetweenFloat64AndFloat32) {
    const ScratchFolder folder;
    run_ranks(1, [&](LocalRank& local) {
        const Job job = tiny_job(true);
        const Plan plan = plan_of(job, 1, 1, 1);
        const auto device = make_host_device(DataType::kFloat64);
        PlanState state(job, plan, 0, *device);
        state.fill(1);
        CheckpointStore store(folder.path(), local.control);
        store.save(job, plan, {1, 7, ""}, *device, state.slices());
        store.finish();
        EXPECT_EQ(loaded_difference(store, job, plan, 0, 1, DataType::kFloat32), "");
        EXPECT_EQ(loaded_difference(store, job, plan, 0, 1, DataType::kFloat64), "");
    });
}

TEST_F(CheckpointFaults, AChangedByteIsFoundWhereverItIs) {
    for (const char* const name : {"rank-00000.safetensors", "rank-00001.safetensors", "manifest.json"}) {
        const auto size = std::filesystem::file_size(checkpoint() / name);
        for (const double place : {0.001, 0.3, 0.7, 0.999}) {
            const auto flip = [&](std::string& text) {
                text[static_cast<std::size_t>(place * static_cast<double>(size))] ^= 1;
            };
            change(name, flip);
            EXPECT_THAT(loading_error(folder_.path(), job_), HasSubstr((checkpoint() / name).string() + ": "))
                << name << place;
            change(name, flip);
        }
    }
    EXPECT_EQ(loading_error(folder_.path(), job_), "no error") << "once it is as before";
}

TEST_F(CheckpointFaults, AChangedValueIsFoundAndNamed) {
    change("rank-00001.safetensors", [](std::string& text) { text.back() ^= 64; });
    EXPECT_THAT(loading_error(folder_.path(), job_), HasSubstr("is damaged: the checksum of elements"));
}

TEST_F(CheckpointFaults, ACutFileIsFound) {
    std::filesystem::resize_file(checkpoint() / "rank-00001.safetensors", 500);
    EXPECT_THAT(loading_error(folder_.path(), job_),
                HasSubstr("rank-00001.safetensors: is cut or was changed: 500 bytes instead of"));
    std::filesystem::resize_file(checkpoint() / "rank-00001.safetensors", 0);
    EXPECT_THAT(loading_error(folder_.path(), job_), HasSubstr(": 0 bytes instead of"));
    std::filesystem::resize_file(checkpoint() / "manifest.json", 500);
    EXPECT_THAT(loading_error(folder_.path(), job_), HasSubstr("manifest.json: "));
}

TEST_F(CheckpointFaults, AMissingFileIsFound) {
    std::filesystem::remove(checkpoint() / "rank-00001.safetensors");
    EXPECT_THAT(loading_error(folder_.path(), job_), HasSubstr("rank-00001.safetensors: no such file"));
}

TEST_F(CheckpointFaults, MissingElementsAreNamed) {
    change("manifest.json", [](std::string& text) {
        Manifest manifest = parse_manifest(text, "");
        std::erase_if(manifest.files[1].parts, [](const SavedPart& part) {
            return part.block == scenarios::Block{scenarios::BlockKind::kLayerSplit, 3};
        });
        text = manifest_text(manifest);
    });
    EXPECT_THAT(loading_error(folder_.path(), job_), HasSubstr("of layer 3 split are missing"));
}

TEST_F(CheckpointFaults, AnotherModelIsRefused) {
    job_.model.layers = 6;
    job_.model.rotary_base = 500000;
    EXPECT_THAT(loading_error(folder_.path(), job_),
                HasSubstr("step-0000001: a checkpoint of another model: layers is 5 in it and 6 in the scenario, "
                          "rotary_base is 10000.0"));
    job_ = tiny_job(true);
    job_.model.name = "the same by another name";
    EXPECT_EQ(loading_error(folder_.path(), job_), "no error");
}

TEST_F(CheckpointFaults, AnotherVersionIsRefused) {
    change("manifest.json", [](std::string& text) { text.replace(text.find("\"version\": 1"), 12, "\"version\": 2"); });
    EXPECT_THAT(loading_error(folder_.path(), job_),
                HasSubstr("a checkpoint of version 2; this program reads version 1"));
}

TEST_F(CheckpointFaults, AStepThatIsNotThereIsRefused) {
    std::filesystem::remove_all(checkpoint());
    EXPECT_THAT(loading_error(folder_.path(), job_), HasSubstr("holds no checkpoint of step 1"));
}

TEST(Checkpoint, NeedsAFolder) {
    const ScratchFolder folder;
    replace_file(folder.path() / "file", "");
    const Job job = tiny_job(true);
    const auto outcomes = rank_outcomes(2, [&](LocalRank& local) -> std::string {
        CheckpointStore store(folder.path() / "file", local.control);
        save_generation(store, job, plan_of(job, 1, 2, 1), local.rank, 1);
        return "";
    });
    for (const RankOutcome& outcome : outcomes)
        EXPECT_THAT(outcome.error, HasSubstr("file: is no folder for checkpoints"));
}

/// One process cannot write more than 1 kB a file, as if its disk were full.
TEST(Checkpoint, AFullDiskIsToldEverywhereAndLeavesTheOldCheckpoint) {
    const ScratchFolder folder;
    const auto errors = run_ranks(2, [&](LocalRank& local) -> std::string {
        const Job job = tiny_job(true);
        const Plan plan = plan_of(job, 1, 2, 1);
        CheckpointStore store(folder.path(), local.control);
        save_generation(store, job, plan, local.rank, 1);
        store.finish();
        std::signal(SIGXFSZ, SIG_IGN);
        rlimit limit{};
        ::getrlimit(RLIMIT_FSIZE, &limit);
        const rlimit before = limit;
        limit.rlim_cur = 1000;
        if (local.rank == 1) ::setrlimit(RLIMIT_FSIZE, &limit);
        save_generation(store, job, plan, local.rank, 2);
        std::string told;
        try {
            store.finish();
        } catch (const BackendError& error) {
            told = error.what();
        }
        ::setrlimit(RLIMIT_FSIZE, &before);
        EXPECT_EQ(store.newest()->step, 1);
        EXPECT_EQ(loaded_difference(store, job, plan, local.rank, 1), "");
        save_generation(store, job, plan, local.rank, 3);
        store.finish();
        EXPECT_EQ(loaded_difference(store, job, plan, local.rank, 3), "");
        return told;
    });
    EXPECT_THAT(errors[0], HasSubstr("rank-00001.safetensors: File too large"));
    EXPECT_EQ(errors[0], errors[1]);
    EXPECT_THAT(names_in(folder.path()), ElementsAre("step-0000001", "step-0000003"));
}

}  // namespace
}  // namespace headway::backend
