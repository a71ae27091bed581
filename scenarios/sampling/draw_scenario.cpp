#include "scenarios/sampling/draw_scenario.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <utility>
#include <vector>

#include "scenarios/costs/iteration_costs.h"
#include "scenarios/costs/memory.h"
#include "scenarios/language/checks.h"
#include "scenarios/language/random.h"
#include "scenarios/language/strategy.h"
#include "scenarios/sampling/draw_causes.h"
#include "scenarios/timing/evaluator.h"
#include "scenarios/timing/step_times.h"

namespace headway::scenarios {

namespace {

constexpr std::uint64_t kMostAttempts = 200;

template <class T>
const T& one_of(const std::vector<T>& list, RandomStream& stream) {
    return list[static_cast<std::size_t>(stream.below(static_cast<std::int64_t>(list.size())))];
}

/// An entry of a list by weight.
template <class T>
const T& weighted(const std::vector<const T*>& list, RandomStream& stream) {
    double sum = 0.0;
    for (const T* entry : list) sum += entry->weight;
    double at = stream.uniform() * sum;
    for (const T* entry : list) {
        at -= entry->weight;
        if (at < 0.0) return *entry;
    }
    return *list.back();
}

int drawn(const WholeRange& range, RandomStream& stream) {
    return range.min + static_cast<int>(stream.below(range.max - range.min + 1));
}

/// Whole seconds.
Duration drawn(const TimeRange& range, RandomStream& stream) {
    if (range.min == range.max || range.min <= Duration())
        return Duration::seconds(std::round(stream.uniform(range.min.s(), range.max.s())));
    return Duration::seconds(std::round(stream.log_uniform(range.min.s(), range.max.s())));
}

double to_digits(double value, double step) {
    return std::round(value / step) * step;
}

/// A layout with the time of its healthy iteration.
struct RankedLayout {
    Strategy strategy;
    Plan plan;
    Duration iteration;
};

Duration healthy_time(const Job& job, const Cluster& cluster, const Plan& plan) {
    Evaluator evaluator(plan, job.model.tied_embedding);
    return evaluator.iteration_time(step_times(iteration_costs(job, cluster, plan), plan, cluster));
}

bool strikes_pipelines(const ScenarioFamily& family) {
    return std::any_of(family.causes.begin(), family.causes.end(), [](const DrawnCause& cause) {
        return cause.on == DrawnTarget::kStage || cause.on == DrawnTarget::kLastStage ||
               cause.on == DrawnTarget::kPipelineHop;
    });
}

/// Draws one scenario; every attempt has streams of its own.
class ScenarioDrawer {
  public:
    ScenarioDrawer(const ScenarioSet& set, const SetStage& stage, std::uint64_t index)
        : set_(set), stage_(stage), index_(index) {}

    /// Empty when this attempt came to nothing that fits.
    std::optional<DrawnScenario> attempt(const ScenarioFamily& family, std::uint64_t number) const {
        DrawnScenario drawn_scenario;
        drawn_scenario.family = family.name;
        Scenario& scenario = drawn_scenario.scenario;
        scenario.name = set_.name + " " + std::to_string(index_);
        scenario.description = family.name;
        scenario.seed = RandomStream(set_.seed, "draw/seed", index_).next() >> 16;
        RandomStream hardware = stream("draw/hardware", number);
        draw_cluster(scenario, hardware);
        draw_job(scenario, hardware);
        draw_facility(scenario, hardware);
        RandomStream worlds = stream("draw/worlds", number);
        randomise_constants(scenario, worlds);
        RandomStream layouts = stream("draw/layout", number);
        std::optional<RankedLayout> best = draw_layout(scenario, strikes_pipelines(family), layouts);
        if (!best) return std::nullopt;
        scenario.strategy = std::move(best->strategy);
        drawn_scenario.plan = std::move(best->plan);
        drawn_scenario.healthy_iteration = best->iteration;
        RandomStream run = stream("draw/run", number);
        draw_run(scenario, best->iteration, run);
        RandomStream sensors = stream("draw/sensors", number);
        draw_sensors(scenario, sensors);
        RandomStream causes = stream("draw/causes", number);
        scenario.disturbances = draw_causes(family, scenario, drawn_scenario.plan, causes);
        try {
            complete_and_check(scenario, {});
        } catch (const ConfigError&) {
            return std::nullopt;  // losses that overlap, a part that several causes want for themselves
        }
        return drawn_scenario;
    }

  private:
    RandomStream stream(const char* name, std::uint64_t attempt) const {
        return RandomStream(set_.seed, name, index_ * kMostAttempts + attempt);
    }

    bool small_enough(const ClusterChoice& choice, int nodes) const {
        return stage_.largest_gpus == 0 || nodes * choice.cluster.node(0).gpus <= stage_.largest_gpus;
    }

    void draw_cluster(Scenario& scenario, RandomStream& stream) const {
        std::vector<const ClusterChoice*> choices;
        for (const ClusterChoice& choice : set_.clusters)
            for (const int nodes : choice.nodes)
                if (small_enough(choice, nodes)) {
                    choices.push_back(&choice);
                    break;
                }
        const ClusterChoice& choice = weighted(choices, stream);
        std::vector<int> counts;
        for (const int nodes : choice.nodes)
            if (small_enough(choice, nodes)) counts.push_back(nodes);
        scenario.cluster = choice.cluster;
        const int nodes = one_of(counts, stream);
        const auto groups = static_cast<int>(scenario.cluster.node_groups.size());
        for (NodeGroup& group : scenario.cluster.node_groups) group.count = nodes / groups;
        scenario.cluster.network.nodes_per_rack = one_of(choice.nodes_per_rack, stream);
        scenario.cluster.network.oversubscription = one_of(choice.oversubscription, stream);
    }

    void draw_job(Scenario& scenario, RandomStream& stream) const {
        std::vector<const JobChoice*> choices;
        for (const JobChoice& choice : set_.jobs) choices.push_back(&choice);
        const JobChoice& choice = weighted(choices, stream);
        scenario.job.model = choice.model;
        scenario.job.stack = choice.stack;
        scenario.job.precision = choice.precision;
        scenario.job.global_batch = one_of(choice.global_batch, stream);
        scenario.job.micro_batch = one_of(choice.micro_batch, stream);
    }

    void draw_facility(Scenario& scenario, RandomStream& stream) const {
        Facility& facility = scenario.cluster.facility;
        facility.spare_nodes = drawn(set_.facility.spare_nodes, stream);
        facility.spare_start = drawn(set_.facility.spare_start, stream);
        facility.node_repair = drawn(set_.facility.repair, stream);
        facility.gpu_repair = facility.node_repair;
        facility.inlet = {to_digits(stream.uniform(set_.facility.inlet.min, set_.facility.inlet.max), 0.5)};
        scenario.job.checkpoint.interval = drawn(set_.facility.checkpoint_interval, stream);
    }

    /// A constant times or over up to 1 + spread.
    double off_by(RandomStream& stream) const {
        const double most = portable_log(1.0 + set_.randomisation.constants * stage_.randomisation);
        return portable_exp(stream.uniform(-most, most));
    }
    void shift_share(double& share, RandomStream& stream) const { share = std::min(1.0, share * off_by(stream)); }
    void shift_time(Duration& time, RandomStream& stream) const { time = time.scaled(off_by(stream)); }

    void randomise_constants(Scenario& scenario, RandomStream& stream) const {
        if (set_.randomisation.constants <= 0.0 || stage_.randomisation <= 0.0) return;
        for (NodeGroup& group : scenario.cluster.node_groups) {
            shift_share(group.node.gpu.gemm_efficiency, stream);
            shift_share(group.node.gpu.memory_efficiency, stream);
            group.node.gpu.thermal.slow_resistance.value *= off_by(stream);
            shift_share(group.node.fabric.efficiency, stream);
            shift_share(group.node.network.efficiency, stream);
        }
        SoftwareStack& stack = scenario.job.stack;
        for (Duration* time :
             {&stack.kernel_gap, &stack.host_forward, &stack.host_backward, &stack.host_message, &stack.host_step})
            shift_time(*time, stream);
        shift_share(stack.exposed_bucket, stream);
    }

    /// Every legal combination of degrees and recomputation for this job and cluster.
    std::vector<Layout> legal_layouts(const Scenario& scenario, bool with_pipeline) const {
        const Model& model = scenario.job.model;
        const int gpus = scenario.cluster.gpus();
        const int micro_batches = scenario.job.global_batch / scenario.job.micro_batch;
        std::vector<Layout> layouts;
        for (const int tensor : set_.layout.tensor) {
            if (tensor > scenario.cluster.node(0).gpus || model.heads % tensor != 0 || model.kv_heads % tensor != 0)
                continue;
            for (const int pipeline : set_.layout.pipeline) {
                if ((with_pipeline && pipeline == 1) || pipeline > model.layers || gpus % (tensor * pipeline) != 0)
                    continue;
                const int data = gpus / (tensor * pipeline);
                if (micro_batches / data < set_.layout.fewest_micro_batches) continue;
                for (const Schedule schedule : set_.layout.schedule) {
                    if (schedule != Schedule::kOneForwardOneBackward && pipeline == 1) continue;
                    for (const Recompute recompute : set_.layout.recompute) {
                        Layout layout;
                        layout.tensor = tensor;
                        layout.pipeline = pipeline;
                        layout.data = data;
                        layout.sequence_parallel = tensor > 1;
                        layout.schedule = schedule;
                        layout.recompute = recompute;
                        layout.distributed_optimizer = set_.layout.distributed_optimizer;
                        layout.overlap_grad_reduce = true;
                        layout.overlap_param_gather = layout.distributed_optimizer;
                        layouts.push_back(layout);
                    }
                }
            }
        }
        return layouts;
    }

    /// The fastest of `compared` random layouts that fit; empty when none does.
    std::optional<RankedLayout> draw_layout(const Scenario& scenario, bool with_pipeline, RandomStream& stream) const {
        if (scenario.job.global_batch % scenario.job.micro_batch != 0) return std::nullopt;
        std::vector<Layout> layouts = legal_layouts(scenario, with_pipeline);
        std::optional<RankedLayout> best;
        for (int compared = 0; compared < set_.layout.compared && !layouts.empty();) {
            const auto pick = layouts.begin() + stream.below(static_cast<std::int64_t>(layouts.size()));
            RankedLayout candidate;
            candidate.strategy.layout = *pick;
            layouts.erase(pick);
            Scenario trial = scenario;
            trial.strategy = candidate.strategy;
            try {
                complete_and_check(trial, {});
                candidate.plan = initial_plan(trial.strategy, trial.job, trial.cluster);
            } catch (const ConfigError&) {
                continue;
            } catch (const std::invalid_argument&) {
                continue;
            }
            if (!memory_shortages(trial.job, trial.cluster, candidate.plan).empty()) continue;
            candidate.iteration = healthy_time(trial.job, trial.cluster, candidate.plan);
            if (!best || candidate.iteration < best->iteration) best = std::move(candidate);
            ++compared;
        }
        return best;
    }

    void draw_run(Scenario& scenario, Duration iteration, RandomStream& stream) const {
        const RunChoice& run = set_.run;
        const double beyond = (run.mean - run.shortest).s() * stream.exponential();
        scenario.run.time = Duration::seconds(std::round(std::min(run.shortest.s() + beyond, run.longest.s())));
        const double between = drawn(run.between_decisions, stream).s();
        scenario.decision_interval = std::max(1, static_cast<int>(std::lround(between / iteration.s())));
    }

    double scaled(const NumberRange& range, RandomStream& stream) const {
        return stream.uniform(range.min, range.min + (range.max - range.min) * stage_.randomisation);
    }

    void draw_sensors(Scenario& scenario, RandomStream& stream) const {
        const Randomisation& random = set_.randomisation;
        scenario.sensors.time_noise = to_digits(scaled(random.time_noise, stream), 1e-4);
        scenario.sensors.temperature_noise = to_digits(scaled(random.temperature_noise, stream), 1e-2);
        const int delay = drawn(random.delay_intervals, stream);
        scenario.sensors.delay_intervals = static_cast<int>(
            std::lround(random.delay_intervals.min + (delay - random.delay_intervals.min) * stage_.randomisation));
        const double factor = stream.log_uniform(random.switch_time_factor.min, random.switch_time_factor.max);
        scenario.switching.time_factor = to_digits(portable_exp(portable_log(factor) * stage_.randomisation), 1e-3);
    }

    const ScenarioSet& set_;
    const SetStage& stage_;
    std::uint64_t index_;
};

const ScenarioFamily& drawn_family(const ScenarioSet& set, const SetStage& stage, std::uint64_t index,
                                   const std::optional<std::string>& asked) {
    std::vector<const ScenarioFamily*> families;
    for (const ScenarioFamily& family : set.families) {
        const bool in_stage = stage.families.empty() || std::find(stage.families.begin(), stage.families.end(),
                                                                  family.name) != stage.families.end();
        if (in_stage && (!asked || *asked == family.name)) families.push_back(&family);
    }
    if (families.empty()) {
        throw std::invalid_argument("scenario set " + set.name + ": stage '" + stage.name + "' has no family '" +
                                    asked.value_or("") + "'");
    }
    RandomStream stream(set.seed, "draw/family", index);
    return weighted(families, stream);
}

}  // namespace

DrawnScenario draw_scenario(const ScenarioSet& set, std::uint64_t index, const DrawOptions& options) {
    const SetStage everything;
    const SetStage& stage = options.stage != nullptr ? *options.stage : everything;
    const ScenarioFamily& family = drawn_family(set, stage, index, options.family);
    const ScenarioDrawer drawer(set, stage, index);
    for (std::uint64_t attempt = 0; attempt < kMostAttempts; ++attempt) {
        if (std::optional<DrawnScenario> drawn_scenario = drawer.attempt(family, attempt))
            return std::move(*drawn_scenario);
    }
    throw ConfigError("scenario set " + set.name + ": scenario " + std::to_string(index) + " (" + family.name +
                      "): none of " + std::to_string(kMostAttempts) +
                      " draws of job, cluster and layout is legal and fits in memory");
}

}  // namespace headway::scenarios
