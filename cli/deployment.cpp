#include "cli/deployment.h"

#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <fstream>
#include <stdexcept>
#include <system_error>

#include "backend/checkpoint/checkpoint_folder.h"
#include "backend/data/token_source.h"
#include "backend/training/plan_place.h"
#include "cli/catalogue_choice.h"
#include "cli/output_file.h"
#include "cli/scenario_check.h"
#include "cli/wildcards.h"
#include "scenarios/costs/memory.h"
#include "scenarios/language/config_error.h"

namespace headway::cli {

namespace fs = std::filesystem;

namespace {

scenarios::Scenario scenario_of(const DeployArguments& arguments, scenarios::KeyPlaces& places) {
    std::vector<scenarios::Override> overrides = arguments.overrides;
    for (const auto& [option, name] : {std::pair{"--policy ", &arguments.policy}, {"--shadow ", &arguments.shadow}}) {
        if (!*name) continue;
        scenarios::KeyPlaces place;
        place.add("policy", option + **name);
        expect_policy(**name, place);
    }
    if (arguments.policy) overrides.emplace_back("policy", *arguments.policy);
    scenarios::Scenario scenario =
        scenarios::read_scenario(arguments.scenario, chosen_catalogue(arguments), overrides, &places);
    if (arguments.iterations) {
        scenario.run.time.reset();
        scenario.run.iterations = static_cast<int>(*arguments.iterations);
    }
    expect_policy(scenario.policy, places);
    return scenario;
}

/// What a simulation can do and this backend cannot.
void expect_trainable(const Deployment& deployment, const std::string& processors, const scenarios::KeyPlaces& places) {
    const scenarios::Job& job = deployment.scenario.job;
    if (deployment.plan.layout.context > 1)
        throw places.error("strategy.context", "context parallelism is not built yet for real processors (1)");
    const bool host = processors == "host";
    if (job.precision != (host ? scenarios::Precision::kFp32 : scenarios::Precision::kBf16))
        throw places.error("job.precision", host ? "host processors compute in fp32 (--set job.precision=fp32)"
                                                 : "CUDA devices compute in bf16 (--set job.precision=bf16)");
    if (job.model.positions == scenarios::Positions::kAlibi)
        throw places.error("job.model.positions", "ALiBi is not built yet for real processors (learned, rotary)");
    if (job.model.positions == scenarios::Positions::kRotary && job.model.head_dim % 2 != 0)
        throw places.error("job.model.positions",
                           "rotary positions need an even head_dim, not " + std::to_string(job.model.head_dim));
    try {
        backend::check_trainable(job, deployment.plan);
    } catch (const std::invalid_argument& error) {
        throw places.error("strategy", error.what());
    }
}

fs::path data_of(const DeployArguments& arguments, const scenarios::Scenario& scenario,
                 const scenarios::KeyPlaces& places) {
    if (!arguments.data && !scenario.job.data)
        throw places.error("job.data", "missing (a text file or token shard to learn from; or --data FILE)");
    const fs::path file = arguments.data ? *arguments.data : arguments.scenario.parent_path() / *scenario.job.data;
    const scenarios::Model& model = scenario.job.model;
    backend::open_tokens(file, model.sequence_length, model.vocab);
    return fs::absolute(file);
}

/// Where the run saves and goes on from; what is wrong with it is told before hours of training, not after.
std::optional<fs::path> checkpoints_of(const DeployArguments& arguments, const scenarios::Scenario& scenario) {
    const bool given = arguments.checkpoints.has_value();
    if (!given && !(scenario.deploy && scenario.deploy->checkpoints)) {
        if (arguments.resume)
            throw scenarios::ConfigError("--resume: from which folder? (--checkpoints DIR, or deploy.checkpoints)");
        return std::nullopt;
    }
    if (given && arguments.checkpoints->empty())
        throw scenarios::ConfigError("--checkpoints: the name of a folder is needed");
    const fs::path folder =
        fs::absolute(given ? *arguments.checkpoints : arguments.scenario.parent_path() / *scenario.deploy->checkpoints);
    const std::string place = (given ? "--checkpoints " : "deploy.checkpoints: ") + folder.string() + ": ";
    std::error_code problem;
    if (fs::exists(folder, problem) && !fs::is_directory(folder, problem))
        throw scenarios::ConfigError(place + "is no folder");
    const std::vector<backend::CheckpointName> kept = backend::complete_checkpoints(folder);
    if (arguments.resume && kept.empty()) throw scenarios::ConfigError("--resume: no checkpoint in " + folder.string());
    // Two runs in one folder: the new one would remove checkpoints of the old, and --resume could not tell them apart.
    if (!arguments.resume && !kept.empty())
        throw scenarios::ConfigError(place + "holds " + kept.back().text() +
                                     " of an earlier run (--resume goes on from it; a new run needs another folder)");
    fs::create_directories(folder, problem);
    if (!problem && ::access(folder.c_str(), W_OK | X_OK) != 0) problem = {errno, std::generic_category()};
    if (problem) throw scenarios::ConfigError(place + "cannot be written: " + problem.message());
    return folder;
}

/// Of this machine, available now; 0 where the kernel does not say.
double available_bytes() {
    std::ifstream file("/proc/meminfo");
    for (std::string key; file >> key;) {
        double kib = 0.0;
        if (key == "MemAvailable:" && file >> kib) return kib * 1024.0;
    }
    return 0.0;
}

void expect_host_memory(const Deployment& deployment, const scenarios::KeyPlaces& places) {
    double needed = 0.0;
    for (const scenarios::StageMemory& worker : scenarios::worker_memory(deployment.scenario.job, deployment.plan))
        needed +=
            static_cast<double>((worker.total() - worker.reserve).count()) * deployment.plan.layout.ranks_per_worker();
    const double available = available_bytes();
    if (available <= 0.0 || needed <= available) return;
    char text[160];
    std::snprintf(text, sizeof text,
                  "its %d processes need about %.1f GiB together, and this machine has %.1f GiB available",
                  deployment.plan.layout.world_size(), needed / 1073741824.0, available / 1073741824.0);
    throw places.error("job", text);
}

}  // namespace

std::optional<Deployment> prepare_deployment(const DeployArguments& arguments, bool local) {
    scenarios::KeyPlaces places;
    Deployment deployment;
    deployment.scenario = scenario_of(arguments, places);
    if (!resolve_wildcards(deployment.scenario, places)) return std::nullopt;
    deployment.plan = plan_that_fits(deployment.scenario, places);
    expect_trainable(deployment, arguments.processors, places);
    deployment.data = data_of(arguments, deployment.scenario, places);
    if (arguments.weights) deployment.weights = fs::absolute(*arguments.weights);
    if (arguments.resume && arguments.weights)
        throw scenarios::ConfigError("--resume and --init: a run begins with one of them");
    deployment.checkpoints = checkpoints_of(arguments, deployment.scenario);
    if (arguments.out) {
        expect_writable("--out", *arguments.out, arguments.force);
        expect_record_or_nothing("--out", *arguments.out);
    }
    if (arguments.trace) {
        expect_writable("--trace", *arguments.trace, arguments.force);
        expect_another_file("--trace", *arguments.trace, arguments.scenario, "the scenario");
        expect_another_file("--trace", *arguments.trace, deployment.data, "the data to learn from");
        if (arguments.out) expect_another_file("--trace", *arguments.trace, *arguments.out, "the file of --out too");
    }
    const bool host = arguments.processors == "host";
    if (host && local) expect_host_memory(deployment, places);
    return deployment;
}

}  // namespace headway::cli
