#include "cli/against_simulation.h"

#include <algorithm>
#include <limits>
#include <map>
#include <utility>
#include <vector>

#include "cli/output_file.h"
#include "cli/standard_output.h"
#include "scenarios/language/config_error.h"
#include "scenarios/language/read.h"
#include "scenarios/record/run_reader.h"
#include "sim/simulated_cluster.h"

namespace headway::cli {

namespace {

using scenarios::DisturbanceFacts;
using scenarios::IterationEvent;

/// What of a run, recorded or simulated, is compared.
class RunMemory final : public scenarios::RunSink {
  public:
    void begin(const scenarios::RunHeader& header) override { header_ = header; }
    void iteration(const IterationEvent& event) override { iterations_.push_back(event); }
    void pause(const scenarios::PauseEvent& event) override { pauses_.push_back(event); }
    void decision(const scenarios::DecisionEvent& event) override {
        decisions_.push_back({event.iteration, event.chosen_plan, !event.lost_gpus.empty()});
    }

    struct Decided {
        std::int64_t iteration = 0;
        std::optional<scenarios::Plan> plan;
        bool lost = false;
    };
    const scenarios::RunHeader& header() const { return header_; }
    const std::vector<IterationEvent>& iterations() const { return iterations_; }
    const std::vector<Decided>& decisions() const { return decisions_; }
    std::vector<std::int64_t> switch_pauses() const {
        std::vector<std::int64_t> durations;
        for (const scenarios::PauseEvent& pause : pauses_)
            if (pause.reason == scenarios::PauseEvent::Reason::kSwitch) durations.push_back(pause.duration_ns);
        return durations;
    }

  private:
    scenarios::RunHeader header_;
    std::vector<IterationEvent> iterations_;
    std::vector<scenarios::PauseEvent> pauses_;
    std::vector<Decided> decisions_;
};

/// The stretches of a run between its changes of plan: number of the plan and iterations from the run's begin to its
/// end.
struct PlanStretch {
    std::size_t plan = 0;
    std::int64_t end = 0;
};

std::vector<PlanStretch> stretches_of(const RunMemory& run, std::vector<scenarios::Plan>& plans) {
    plans = {run.header().plan};
    std::vector<PlanStretch> stretches;
    const auto total = static_cast<std::int64_t>(run.iterations().size());
    std::size_t current = 0;
    for (const RunMemory::Decided& decision : run.decisions()) {
        if (decision.lost) {
            stretches.push_back({current, std::min(decision.iteration, total)});
            return stretches;
        }
        if (!decision.plan) continue;
        stretches.push_back({current, std::min(decision.iteration, total)});
        const auto known = std::find(plans.begin(), plans.end(), *decision.plan);
        current = static_cast<std::size_t>(known - plans.begin());
        if (known == plans.end()) plans.push_back(*decision.plan);
    }
    stretches.push_back({current, total});
    return stretches;
}

/// Plan and disturbances under which an iteration ran from its begin to its end; nothing where one began or ended in
/// it.
using Circumstances = std::pair<std::size_t, std::vector<int>>;

std::optional<Circumstances> circumstances(const IterationEvent& iteration, std::size_t plan,
                                           const std::vector<DisturbanceFacts>& disturbances) {
    Circumstances result{plan, {}};
    const std::int64_t begin = iteration.start_ns, end = begin + iteration.duration_ns;
    for (std::size_t d = 0; d < disturbances.size(); ++d) {
        const std::int64_t from = disturbances[d].start_ns;
        const std::int64_t to = disturbances[d].duration_ns < 0 ? std::numeric_limits<std::int64_t>::max()
                                                                : from + disturbances[d].duration_ns;
        if (to <= begin || from >= end) continue;
        if (from > begin || to < end) return std::nullopt;
        result.second.push_back(static_cast<int>(d));
    }
    return result;
}

struct Mean {
    std::int64_t first = 0;  ///< iteration
    std::int64_t count = 0;
    std::int64_t sum_ns = 0;
};

std::map<Circumstances, Mean> means_of(const RunMemory& run, const std::vector<PlanStretch>& stretches,
                                       const std::vector<DisturbanceFacts>& disturbances) {
    std::map<Circumstances, Mean> means;
    std::int64_t index = 0;
    for (const PlanStretch& stretch : stretches) {
        for (; index < stretch.end && index < static_cast<std::int64_t>(run.iterations().size()); ++index) {
            const IterationEvent& iteration = run.iterations()[static_cast<std::size_t>(index)];
            const auto key = circumstances(iteration, stretch.plan, disturbances);
            if (!key) continue;
            Mean& mean = means.try_emplace(*key, Mean{index, 0, 0}).first->second;
            ++mean.count;
            mean.sum_ns += iteration.duration_ns;
        }
    }
    return means;
}

void simulate(const RunMemory& run, const std::vector<PlanStretch>& stretches,
              const std::vector<scenarios::Plan>& plans, RunMemory& simulated) {
    scenarios::Scenario scenario =
        scenarios::parse_scenario(run.header().scenario_yaml, "scenario of the record", ".", {});
    // As long as the run was, whatever the scenario says.
    scenario.run.time.reset();
    scenario.run.iterations = std::numeric_limits<int>::max();
    sim::SimulatedCluster cluster(scenario, &simulated);
    cluster.start_episode(run.header().seed);
    std::int64_t done = 0;
    for (const PlanStretch& stretch : stretches) {
        const scenarios::Plan& plan = plans[stretch.plan];
        cluster.move_to(plan);
        while (done < stretch.end) {
            const auto measured = cluster.run(plan, static_cast<int>(stretch.end - done));
            done += static_cast<std::int64_t>(measured.iterations.size());
            if (measured.loss || measured.iterations.empty()) return;  // what follows has no counterpart
        }
    }
}

std::string words_for(const scenarios::Plan& plan, const scenarios::Plan& initial) {
    std::string text = scenarios::describe(plan.layout);
    if (plan == initial) return text;
    if (plan.micro_batches_of_replica != initial.micro_batches_of_replica) {
        text += ", micro-batches";
        for (const int share : plan.micro_batches_of_replica) text += " " + std::to_string(share);
    }
    if (plan.layers_of_cell != initial.layers_of_cell) {
        text += ", layers";
        for (const int layers : plan.layers_of_cell) text += " " + std::to_string(layers);
    }
    if (plan.gpu_of_rank != initial.gpu_of_rank) text += ", other GPUs";
    return text;
}

}  // namespace

scenarios::PredictionReport against_simulation(const std::filesystem::path& record) {
    expect_readable(record, "a run record");
    RunMemory run;
    const scenarios::RecordStatus status = scenarios::read_record(record, run);
    if (!status.problem.empty()) complain(status.problem);
    if (run.header().scenario_yaml.empty()) throw scenarios::ConfigError(record.string() + ": is no record of a run");
    if (run.iterations().empty())
        throw scenarios::ConfigError(record.string() +
                                     ": has no iterations (record at level iterations or operations)");

    std::vector<scenarios::Plan> plans;
    const std::vector<PlanStretch> stretches = stretches_of(run, plans);
    RunMemory simulated;
    simulate(run, stretches, plans, simulated);

    const std::vector<DisturbanceFacts>& disturbances = run.header().disturbances;
    const auto measured = means_of(run, stretches, disturbances);
    const auto predicted = means_of(simulated, stretches, disturbances);
    scenarios::PredictionReport report;
    report.run = record.filename().string();
    report.scenario = run.header().scenario;
    std::vector<std::pair<std::int64_t, scenarios::PredictedSegment>> segments;
    std::int64_t inside = 0;
    for (const auto& [key, mean] : measured) {
        scenarios::PredictedSegment segment;
        segment.plan = words_for(plans[key.first], plans.front());
        for (const int d : key.second) segment.disturbances.push_back(disturbances[static_cast<std::size_t>(d)].name);
        segment.iterations = mean.count;
        segment.measured_ns = mean.sum_ns / mean.count;
        const auto found = predicted.find(key);
        if (found != predicted.end()) segment.simulated_ns = found->second.sum_ns / found->second.count;
        segments.emplace_back(mean.first, std::move(segment));
        inside += mean.count;
    }
    std::sort(segments.begin(), segments.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
    for (auto& [first, segment] : segments) report.segments.push_back(std::move(segment));
    const std::size_t common = std::min(run.iterations().size(), simulated.iterations().size());
    report.iterations = static_cast<std::int64_t>(common);
    for (std::size_t i = 0; i < common; ++i) {
        report.measured_ns += run.iterations()[i].duration_ns;
        report.simulated_ns += simulated.iterations()[i].duration_ns;
    }
    report.changing = std::min(stretches.back().end, static_cast<std::int64_t>(run.iterations().size())) - inside;
    const std::vector<std::int64_t> real_pauses = run.switch_pauses(), simulated_pauses = simulated.switch_pauses();
    for (std::size_t i = 0; i < std::min(real_pauses.size(), simulated_pauses.size()); ++i)
        report.pauses.push_back({"switch " + std::to_string(i + 1), real_pauses[i], simulated_pauses[i]});
    return report;
}

}  // namespace headway::cli
