#include "cli/simulated_run.h"

#include "cli/interrupt.h"
#include "policies/episode.h"
#include "policies/policy.h"
#include "scenarios/costs/iteration_costs.h"
#include "scenarios/record/run_header.h"
#include "sim/simulated_cluster.h"

namespace headway::cli {

namespace {

class RecordedDecisions final : public policies::EpisodeSink {
  public:
    explicit RecordedDecisions(scenarios::RunSink& sink) : sink_(sink) {}
    bool decided(const policies::Decision& decision) override {
        sink_.decision(policies::decision_event(decision));
        return !interrupted();
    }

  private:
    scenarios::RunSink& sink_;
};

}  // namespace

policies::WorldFactory what_if_worlds(const scenarios::Scenario& scenario) {
    return [scenario]() -> std::unique_ptr<policies::TrainingCluster> {
        sim::SimulationOptions options;
        options.path = sim::Path::kLongestPath;
        return std::make_unique<sim::SimulatedCluster>(scenario, nullptr, options);
    };
}

bool run_simulation(const scenarios::Scenario& scenario, const scenarios::Plan& plan, bool operations,
                    scenarios::RunSink& sink) {
    catch_interrupts();
    policies::EpisodeOptions episode;
    episode.decision_interval = scenario.decision_interval;
    episode.max_iterations = scenario.run.time ? 0 : scenario.run.iterations;
    episode.seed = scenario.seed;
    const std::unique_ptr<policies::Policy> policy =
        policies::make_policy(scenario.policy, {what_if_worlds(scenario), episode});
    sim::SimulationOptions options;
    options.operations = operations;
    sim::SimulatedCluster cluster(scenario, &sink, options);
    catch_interrupts();
    sink.begin(scenarios::make_run_header(scenario, plan, scenario.policy, cluster.healthy_iteration(),
                                          scenarios::iteration_costs(scenario.job, scenario.cluster, plan)));
    policies::CandidateGenerator generator(cluster.facts());
    RecordedDecisions recorded(sink);
    const policies::EpisodeSummary done = policies::run_episode(cluster, generator, *policy, episode, recorded);
    scenarios::RunFooter footer;
    footer.complete = done.complete;
    footer.wall_ns = done.wall.ns();
    footer.decisions = done.decisions;
    footer.switches = done.switches;
    footer.gpus = cluster.gpu_summaries();
    sink.end(footer);
    return done.complete;
}

}  // namespace headway::cli
