#include "tests/benchmark/decisions.h"

#include <ctime>
#include <random>
#include <string>

#include "policies/planning/candidate_generator.h"
#include "scenarios/language/read.h"
#include "sim/simulated_cluster.h"
#include "tests/paths.h"

namespace headway::benchmarks {

namespace {

constexpr int kIntervals = 8, kIterations = 10;

double thread_seconds() {
    timespec now{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

std::string scenario_text(int nodes, const std::string& disturbances) {
    const bool small = nodes <= 8;
    const int replicas = small ? nodes : nodes / 16;
    return std::string("name: decisions\njob: {model: ") + (small ? "gpt3-1.3b" : "gpt3-175b") +
           ", precision: bf16, micro_batch: 1, stack: megatron-lm-2022, global_batch: " +
           std::to_string(replicas * (small ? 16 : 96)) + "}\ncluster: {base: selene, nodes: " + std::to_string(nodes) +
           "}\nstrategy: {tensor: " + (small ? "2, pipeline: 4" : "8, pipeline: 16, distributed_optimizer: true") +
           ", data: " + std::to_string(replicas) + ", sequence_parallel: true, recompute: selective}\ndisturbances: [" +
           disturbances + "]\nrun: {iterations: 100000}\n";
}

scenarios::Scenario scenario_of(int nodes, const std::string& disturbances) {
    const auto root = tests::source_directory() / "scenarios";
    return scenarios::parse_scenario(scenario_text(nodes, disturbances), "decisions.yaml", root, {root});
}

std::string random_causes(int nodes, double iteration_s, std::uint64_t seed) {
    std::mt19937_64 random(seed);
    const auto pick = [&](int low, int high) { return std::uniform_int_distribution<int>(low, high)(random); };
    const auto share = [&](double low, double high) {
        return std::to_string(std::uniform_real_distribution<double>(low, high)(random));
    };
    std::string causes;
    const int count = pick(1, 3);
    for (int i = 0; i < count; ++i) {
        const double start = iteration_s * kIterations * pick(0, kIntervals / 2);
        causes += (i == 0 ? "{start: " : ", {start: ") + std::to_string(start) + " s, ";
        const std::string gpu = std::to_string(pick(0, nodes * 8 - 1)), node = std::to_string(pick(0, nodes - 1));
        switch (pick(0, 5)) {
            case 0:
                causes += "speed_factor: {gpu: " + gpu + ", factor: " + share(0.35, 0.9);
                break;
            case 1:
                causes += "speed_factor: {node: " + node + ", factor: " + share(0.5, 0.9);
                break;
            case 2:
                causes += "co_tenant: {gpu: " + gpu + ", compute_share: " + share(0.1, 0.5) +
                          ", memory_share: " + share(0.05, 0.4);
                break;
            case 3:
                causes += "link_bandwidth: {node_network: " + node + ", factor: " + share(0.1, 0.7);
                break;
            case 4:
                causes += "airflow: {gpu: " + gpu + ", resistance_factor: " + share(2.0, 4.0);
                break;
            default:
                causes += "gpu_loss: {gpu: " + gpu;
        }
        causes += "}}";
    }
    return causes;
}

}  // namespace

class DecisionCosts::Impl {
  public:
    explicit Impl(int nodes)
        : nodes_(nodes),
          iteration_s_(sim::SimulatedCluster(scenario_of(nodes, ""), nullptr, sim::SimulationOptions::quick())
                           .healthy_iteration()
                           .s()) {}

    std::vector<Decision> episode(std::uint64_t seed) const {
        const scenarios::Scenario scenario = scenario_of(nodes_, random_causes(nodes_, iteration_s_, seed));
        sim::SimulatedCluster cluster(scenario, nullptr, sim::SimulationOptions::quick());
        policies::CandidateGenerator generator(cluster.facts());
        cluster.start_episode(seed);
        generator.start_episode();
        policies::ObservationBuilder builder;
        builder.start_episode();
        scenarios::Plan plan = cluster.facts().initial_plan;
        std::vector<Decision> made;
        std::vector<policies::Candidate> before;
        for (int interval = 0; interval < kIntervals; ++interval) {
            const policies::Measurements measured = cluster.run(plan, kIterations);
            const policies::Observation seen = builder.build(cluster.facts(), plan, measured, cluster.now());
            const double start = thread_seconds();
            const std::vector<policies::Candidate> candidates = generator.propose(seen);
            Decision& decision = made.emplace_back();
            decision.seconds = thread_seconds() - start;
            decision.candidates = candidates.size();
            decision.first = interval == 0;
            decision.fresh = !same_plans(before, candidates);
            before = candidates;
            const policies::Candidate* best = &candidates.front();
            for (const policies::Candidate& candidate : candidates)
                if (candidate.predicted.iteration < best->predicted.iteration ||
                    (seen.loss && best == &candidates.front()))
                    best = &candidate;
            if (seen.loss) {
                using Kind = policies::Recovery::Kind;
                const bool restart = best->kind == policies::Candidate::Kind::kRestart;
                plan = cluster.recover({restart ? Kind::kRestart : Kind::kWaitForReplacement, best->plan}).plan;
            } else if (interval % 2 == 1 && !(best->plan == plan)) {
                plan = best->plan;
                cluster.move_to(plan);
            }
        }
        return made;
    }

  private:
    static bool same_plans(const std::vector<policies::Candidate>& a, const std::vector<policies::Candidate>& b) {
        if (a.size() != b.size()) return false;
        for (std::size_t i = 0; i < a.size(); ++i)
            if (a[i].kind != b[i].kind || !(a[i].plan == b[i].plan)) return false;
        return true;
    }

    int nodes_;
    double iteration_s_;
};

DecisionCosts::DecisionCosts(int nodes) : impl_(std::make_unique<Impl>(nodes)) {}
DecisionCosts::~DecisionCosts() = default;

std::vector<DecisionCosts::Decision> DecisionCosts::episode(std::uint64_t seed) {
    return impl_->episode(seed);
}

}  // namespace headway::benchmarks
