#include "sim/run/site.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <string>
#include <utility>

#include "scenarios/costs/measured_scales.h"
#include "scenarios/costs/memory.h"
#include "scenarios/language/config_error.h"
#include "scenarios/language/plan_check.h"
#include "scenarios/language/strategy.h"
#include "scenarios/language/value_text.h"
#include "sim/run/measurement.h"
#include "sim/run/time_shares.h"

namespace headway::sim {
namespace {

constexpr std::size_t kKnownPlans = 32;
constexpr int kHealthyPasses = 4;
constexpr double kSlowestPace = 1e-6;  // of causes that come together: an iteration stays within what a clock counts

std::string gib_text(scenarios::Bytes bytes) {
    const double value = std::round(bytes.in_gib() * 10.0) / 10.0;
    std::string text = std::to_string(value);
    return text.substr(0, text.find('.') + 2) + " GiB";
}

std::uint64_t hash_of(const scenarios::Plan& plan) {
    std::uint64_t hash = 0xcbf29ce484222325ULL;
    for (const auto* part : {&plan.gpu_of_rank, &plan.layers_of_cell, &plan.micro_batches_of_replica})
        for (const int value : *part) hash = (hash ^ static_cast<std::uint64_t>(value)) * 0x100000001b3ULL;
    return hash;
}

}  // namespace

std::vector<double> busy_of(const scenarios::Plan& plan, const IterationTimes& times, int gpus) {
    std::vector<double> busy(static_cast<std::size_t>(gpus), -1.0);
    for (int replica = 0; replica < plan.layout.data; ++replica)
        for (int stage = 0; stage < plan.layout.pipeline; ++stage) {
            const auto worker = static_cast<std::size_t>(plan.worker(replica, stage));
            const double share = std::clamp(times.workers[worker].compute / times.duration, 0.0, 1.0);
            for (int member = 0; member < plan.layout.ranks_per_worker(); ++member)
                busy[static_cast<std::size_t>(plan.gpu_of_worker(replica, stage, member))] = share;
        }
    return busy;
}

std::vector<scenarios::GpuPace> paces_of(const Topology& topology, const Environment& environment,
                                         const std::vector<double>& thermal_pace) {
    std::vector<scenarios::GpuPace> paces(thermal_pace.size());
    for (std::size_t gpu = 0; gpu < thermal_pace.size(); ++gpu) {
        scenarios::GpuPace& pace = paces[gpu];
        pace.compute = std::max(kSlowestPace, thermal_pace[gpu] * environment.compute_share[gpu]);
        pace.memory = std::max(kSlowestPace, environment.memory_share[gpu]);
        pace.fabric = environment.fabric_factor[static_cast<std::size_t>(topology.node_of_gpu(static_cast<int>(gpu)))];
    }
    return paces;
}

Site::Site(const scenarios::Scenario& scenario_, const SimulationOptions& options_)
    : scenario(scenario_),
      options(options_),
      topology(scenario.cluster),
      timeline(scenario),
      healthy(timeline.healthy()),
      fleet(scenario.cluster),
      facts{scenario.job, scenario.cluster, scenarios::initial_plan(scenario.strategy, scenario.job, scenario.cluster),
            scenario.strategy.adapt, Duration()},
      network_(topology) {
    const auto shortages = scenarios::memory_shortages(scenario.job, scenario.cluster, facts.initial_plan);
    if (!shortages.empty()) {
        std::string message = "the plan does not fit in memory:";
        for (const scenarios::MemoryShortage& s : shortages)
            message += "\n  stage " + std::to_string(s.stage) + " needs " + gib_text(s.needed) + " on GPU " +
                       std::to_string(s.gpu) + ", which has " + gib_text(s.available);
        throw scenarios::ConfigError(message);
    }
    const std::shared_ptr<PreparedPlan> initial = prepared(facts.initial_plan);
    if (initial->shuts_down >= 0) {
        const scenarios::GpuType& gpu = scenario.cluster.gpu_type(initial->shuts_down);
        throw scenarios::ConfigError(
            "cluster.facility.inlet: " + scenarios::format_value(scenario.cluster.facility.inlet) +
            " is not allowed (GPU " + std::to_string(initial->shuts_down) + ", " + gpu.name +
            ", reaches its shutdown temperature of " + scenarios::format_value(gpu.thermal.shutdown) +
            " under this job)");
    }
    facts.healthy_iteration = initial->healthy.duration;
    if (!scenario.job.measured) return;
    // As recorded, a job need not be healthy.
    PlanModel without_slow_workers(scenario.cluster, topology, network_, facts.initial_plan,
                                   scenarios::iteration_costs(scenario.job, scenario.cluster, facts.initial_plan),
                                   scenario.job.model.tied_embedding, options);
    facts.healthy_iteration =
        without_slow_workers.steady({paces_of(topology, healthy, initial->pace), healthy, {}}).duration;
}

std::shared_ptr<PreparedPlan> Site::prepared(const scenarios::Plan& plan) {
    const std::uint64_t hash = hash_of(plan);
    ++asked_;
    for (Known& known : known_) {
        if (known.hash != hash || !(known.plan->plan == plan)) continue;
        known.used = asked_;
        return known.plan;
    }
    std::shared_ptr<PreparedPlan> fresh = prepare(plan);
    if (known_.size() < kKnownPlans) known_.emplace_back();
    Known& place =
        *std::min_element(known_.begin(), known_.end(), [](const Known& a, const Known& b) { return a.used < b.used; });
    place = {hash, asked_, std::move(fresh)};
    return place.plan;
}

std::shared_ptr<PreparedPlan> Site::prepare(const scenarios::Plan& plan) {
    scenarios::check_plan(scenario.job, scenario.cluster, plan);
    for (const scenarios::MemoryShortage& s : scenarios::memory_shortages(scenario.job, scenario.cluster, plan))
        throw std::invalid_argument("stage " + std::to_string(s.stage) + " of the plan needs " + gib_text(s.needed) +
                                    " on GPU " + std::to_string(s.gpu) + ", which has " + gib_text(s.available));
    auto result = std::make_shared<PreparedPlan>();
    PreparedPlan& known = *result;
    known.plan = plan;
    known.number = ++plans_seen_;
    scenarios::IterationCosts costs = scenarios::iteration_costs(scenario.job, scenario.cluster, plan);
    costs.gpu_scales = scenarios::measured_scales(scenario.job, scenario.cluster).actual;
    known.model = std::make_unique<PlanModel>(scenario.cluster, topology, network_, plan, std::move(costs),
                                              scenario.job.model.tied_embedding, options);
    // Heat depends on the load and the load on how long an iteration takes: a few passes where the air is warm, one
    // elsewhere.
    const int gpus = scenario.cluster.gpus();
    known.pace.assign(static_cast<std::size_t>(gpus), 1.0);
    const auto find = [&] {
        known.healthy = known.model->steady({paces_of(topology, healthy, known.pace), healthy, {}});
        known.busy = busy_of(plan, known.healthy, gpus);
    };
    find();
    for (int pass = 0; pass < kHealthyPasses; ++pass) {
        Fleet::HealthyPace found = fleet.healthy_pace(healthy.surroundings, known.busy);
        known.shuts_down = found.shuts_down;
        if (found.pace == known.pace) break;
        known.pace = std::move(found.pace);
        find();
    }
    known.shares = shares_of_healthy(*known.model, known.healthy);
    known.checkpoint = scenarios::checkpoint_costs(scenario.job, scenario.cluster, plan);
    for (const scenarios::StageMemory& worker : scenarios::worker_memory(scenario.job, plan))
        known.memory.push_back(worker.total().count());
    known.tensor_bus = healthy_tensor_bus(scenario.job, scenario.cluster, plan);
    return result;
}

}  // namespace headway::sim
