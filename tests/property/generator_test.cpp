#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>

#include "policies/observation.h"
#include "policies/planning/candidate_generator.h"
#include "policies/planning/plan_predictor.h"
#include "scenarios/costs/memory.h"
#include "scenarios/language/plan_check.h"
#include "scenarios/language/read.h"
#include "sim/simulated_cluster.h"
#include "tests/paths.h"

/// The candidate generator on what small simulated clusters measure.
namespace headway::sim {
namespace {

using policies::Candidate;
using policies::CandidateGenerator;
using policies::Observation;
using scenarios::Plan;
using Kind = Candidate::Kind;

constexpr int kWatched = 10;

scenarios::Scenario small_job(const std::string& strategy, const std::string& disturbances,
                              const std::string& more = "", int nodes = 2, int global_batch = 32) {
    const std::string text =
        "name: generator\njob: {model: gpt3-1.3b, precision: bf16, micro_batch: 1, stack: "
        "megatron-lm-2022, global_batch: " +
        std::to_string(global_batch) + "}\ncluster: {base: selene, nodes: " + std::to_string(nodes) + "}\nstrategy: {" +
        strategy + "}\ndisturbances: [" + disturbances + "]\n" + more + "\nrun: {iterations: 100000}\n";
    const auto root = ::headway::tests::source_directory() / "scenarios";
    return scenarios::parse_scenario(text, "generator.yaml", root, {root});
}

/// A job that is watched, interval by interval.
class Watched {
  public:
    explicit Watched(const scenarios::Scenario& scenario, std::uint64_t seed = 1)
        : cluster_(scenario, nullptr, SimulationOptions::quick()), plan_(cluster_.facts().initial_plan) {
        cluster_.start_episode(seed);
        builder_.start_episode();
    }
    const policies::ClusterFacts& facts() const { return cluster_.facts(); }
    Observation next() {
        const policies::Measurements measured = cluster_.run(plan_, kWatched);
        return builder_.build(cluster_.facts(), plan_, measured, cluster_.now());
    }
    void move_to(const Plan& plan) {
        cluster_.move_to(plan);
        plan_ = plan;
    }
    void recover(const policies::Recovery& choice) { plan_ = cluster_.recover(choice).plan; }

  private:
    SimulatedCluster cluster_;
    policies::ObservationBuilder builder_;
    Plan plan_;
};

const Candidate& fastest(const std::vector<Candidate>& candidates) {
    return *std::min_element(candidates.begin(), candidates.end(), [](const Candidate& a, const Candidate& b) {
        return a.predicted.iteration < b.predicted.iteration;
    });
}

void expect_equal(const std::vector<Candidate>& a, const std::vector<Candidate>& b) {
    ASSERT_EQ(a.size(), b.size());
    for (std::size_t i = 0; i < a.size(); ++i) {
        EXPECT_EQ(a[i].kind, b[i].kind);
        EXPECT_EQ(a[i].plan, b[i].plan);
        EXPECT_EQ(a[i].predicted, b[i].predicted);
        EXPECT_EQ(a[i].why, b[i].why);
    }
}

const char* const kSlowGpu = "{start: 0 s, speed_factor: {gpu: 5, factor: 0.6}}";

/// Every split of every replica with every share, tried out one by one.
TEST(Generator, FindsWhatTryingAllSplitsAndSharesFinds) {
    const scenarios::Scenario scenario =
        small_job("tensor: 4, pipeline: 2, data: 2, adapt: {placement: false, degrees: false, drop: false}", kSlowGpu);
    Watched job(scenario);
    CandidateGenerator generator(job.facts());
    std::vector<Candidate> candidates;
    for (int i = 0; i < 4; ++i) candidates = generator.propose(job.next());

    scenarios::Conditions slow;
    slow.gpus.resize(16);
    slow.gpus[5].compute = slow.gpus[5].memory = 0.6;
    policies::PlanPredictor predictor(scenario.job, scenario.cluster);
    const Plan initial = job.facts().initial_plan;
    Plan best = initial;
    scenarios::Duration least = predictor.iteration(initial, slow);
    const scenarios::Duration before = least;
    const int layers = scenario.job.model.layers, micro_batches = 32;
    for (int a = 1; a < layers; ++a)
        for (int b = 1; b < layers; ++b)
            for (int share = 4; share <= micro_batches - 4; ++share) {
                Plan plan = initial;
                plan.layers_of_cell = {a, layers - a, b, layers - b};
                plan.micro_batches_of_replica = {share, micro_batches - share};
                const scenarios::Duration took = predictor.iteration(plan, slow);
                if (took >= least || !predictor.fits(plan)) continue;
                least = took;
                best = plan;
            }
    const Plan& found = fastest(candidates).plan;
    ASSERT_EQ(found.layout, initial.layout);
    EXPECT_LT(least / before, 0.9);
    EXPECT_LT(predictor.iteration(found, slow) / least, 1.01)
        << found.micro_batches_of_replica[0] << " instead of " << best.micro_batches_of_replica[0];
}

TEST(Generator, KeepsToWhatMayChange) {
    const char* const ways[] = {"micro_batches", "layers", "layers_apart", "placement", "degrees", "drop"};
    for (int mask = 0; mask < 64; mask += 3) {
        std::string adapt;
        for (int i = 0; i < 6; ++i)
            adapt += std::string(i > 0 ? ", " : "") + ways[i] + ": " + ((mask >> i & 1) != 0 ? "true" : "false");
        const scenarios::Scenario scenario =
            small_job("tensor: 2, pipeline: 2, data: 4, adapt: {" + adapt + "}", kSlowGpu);
        Watched job(scenario);
        CandidateGenerator generator(job.facts());
        std::vector<Candidate> candidates;
        for (int i = 0; i < 3; ++i) candidates = generator.propose(job.next());
        const Plan& initial = job.facts().initial_plan;
        for (const Candidate& candidate : candidates) {
            const Plan& plan = candidate.plan;
            const scenarios::Adapt& may = job.facts().adapt;
            const bool same_layout = plan.layout == initial.layout;
            if (same_layout && !may.micro_batches) {
                EXPECT_EQ(plan.micro_batches_of_replica, initial.micro_batches_of_replica) << adapt;
            }
            if (same_layout && !may.layers) {
                EXPECT_EQ(plan.layers_of_cell, initial.layers_of_cell) << adapt;
            }
            if (!may.layers || !may.layers_apart) {
                EXPECT_TRUE(plan.same_layers_everywhere()) << adapt;
            }
            if (same_layout && !may.placement && !may.drop) {
                EXPECT_EQ(plan.gpu_of_rank, initial.gpu_of_rank) << adapt;
            }
            if (!may.drop) {
                EXPECT_EQ(plan.layout.world_size(), initial.layout.world_size()) << adapt;
            }
            if (!may.degrees) {
                EXPECT_EQ(plan.layout.tensor, initial.layout.tensor) << adapt;
                EXPECT_EQ(plan.layout.pipeline, initial.layout.pipeline) << adapt;
            }
        }
        if (mask == 0) {
            EXPECT_EQ(candidates.size(), 1u) << "nothing may change";
        }
    }
}

/// What is promised on a healthy cluster is what the plan's own imbalance leaves, whatever the sensors' noise.
TEST(Generator, PromisesNothingThatAHealthyClusterDoesNotHave) {
    for (const char* sensors : {"", "sensors: {time_noise: 0.03}"})
        for (const char* strategy : {"tensor: 2, pipeline: 4, data: 2", "tensor: 4, pipeline: 1, data: 4",
                                     "tensor: 2, pipeline: 2, data: 4"}) {
            const scenarios::Scenario scenario = small_job(strategy, "", sensors);
            Watched job(scenario);
            CandidateGenerator generator(job.facts());
            policies::PlanPredictor healthy(scenario.job, scenario.cluster);
            for (int i = 0; i < 8; ++i)
                for (const Candidate& candidate : generator.propose(job.next())) {
                    const Plan& initial = job.facts().initial_plan;
                    const double real = healthy.iteration(candidate.plan) / healthy.iteration(initial);
                    const double promised = candidate.predicted.iteration / job.facts().healthy_iteration;
                    EXPECT_GT(promised, real * 0.98) << strategy << ": " << candidate.why;
                }
        }
}

TEST(Generator, IsTheSameTwiceAndForgetsAnEpisode) {
    const scenarios::Scenario slow =
        small_job("tensor: 2, pipeline: 2, data: 4",
                  std::string(kSlowGpu) + ", {start: 20 s, link_bandwidth: {node_network: 1, factor: 0.2}}");
    const scenarios::Scenario healthy = small_job("tensor: 2, pipeline: 2, data: 4", "");
    Watched first(slow), again(slow), then(healthy), fresh_job(healthy);
    CandidateGenerator generator(first.facts()), twin(first.facts()), fresh(first.facts());
    for (int i = 0; i < 6; ++i) {
        const std::vector<Candidate> candidates = generator.propose(first.next());
        expect_equal(candidates, twin.propose(again.next()));
        if (i == 2 && candidates.size() > 1) {
            first.move_to(candidates[1].plan);
            again.move_to(candidates[1].plan);
        }
    }
    generator.start_episode();
    for (int i = 0; i < 4; ++i) expect_equal(generator.propose(then.next()), fresh.propose(fresh_job.next()));
}

/// From a loss on until the repair is done.
TEST(Generator, UsesNoGpuThatIsGone) {
    for (std::uint64_t seed = 1; seed <= 12; ++seed) {
        std::mt19937_64 random(seed);
        const int gpu = static_cast<int>(random() % 32);
        const bool node = seed % 3 == 0;
        const scenarios::Scenario scenario =
            small_job("tensor: 2, pipeline: 4, data: 4",
                      node ? "{start: 5 s, node_loss: {node: " + std::to_string(gpu / 8) + "}}"
                           : "{start: 5 s, gpu_loss: {gpu: " + std::to_string(gpu) + "}}",
                      "", 4, 64);
        Watched job(scenario);
        CandidateGenerator generator(job.facts());
        bool lost = false;
        int after = 0;
        for (int i = 0; i < 60 && after < 5; ++i) {
            const Observation seen = job.next();
            const std::vector<Candidate> candidates = generator.propose(seen);
            std::vector<int> gone = seen.unavailable_gpus;
            if (seen.loss) gone.insert(gone.end(), seen.loss->gpus.begin(), seen.loss->gpus.end());
            for (std::size_t c = 0; c < candidates.size(); ++c) {
                const Plan& plan = candidates[c].plan;
                EXPECT_NO_THROW(scenarios::check_plan(scenario.job, scenario.cluster, plan));
                EXPECT_TRUE(scenarios::memory_shortages(scenario.job, scenario.cluster, plan).empty());
                EXPECT_EQ(
                    std::accumulate(plan.micro_batches_of_replica.begin(), plan.micro_batches_of_replica.end(), 0), 64);
                for (std::size_t d = 0; d < c; ++d) EXPECT_FALSE(candidates[d].plan == plan);
                if (candidates[c].kind == Kind::kWaitForReplacement) continue;
                for (const int g : gone)
                    EXPECT_EQ(std::count(plan.gpu_of_rank.begin(), plan.gpu_of_rank.end(), g), 0)
                        << policies::name_of(candidates[c].kind) << ": " << candidates[c].why;
            }
            if (!seen.loss) {
                if (lost) ++after;
                continue;
            }
            lost = true;
            EXPECT_EQ(candidates.front().kind, Kind::kWaitForReplacement);
            ASSERT_GT(candidates.size(), 1u) << "seed " << seed;
            EXPECT_EQ(candidates[1].kind, Kind::kRestart);
            job.recover({policies::Recovery::Kind::kRestart, fastest({candidates.begin() + 1, candidates.end()}).plan});
        }
        EXPECT_TRUE(lost);
    }
}

/// Three nodes are left of four: other degrees leave fewer GPUs idle than whole replicas of the old ones do.
TEST(Generator, OffersOtherDegreesWhereALossWouldLeaveGpusIdle) {
    const scenarios::Scenario scenario =
        small_job("tensor: 4, pipeline: 4, data: 2", "{start: 5 s, node_loss: {node: 1}}", "", 4, 48);
    Watched job(scenario);
    CandidateGenerator generator(job.facts());
    Observation seen = job.next();
    for (int i = 0; i < 60 && !seen.loss; ++i) {
        generator.propose(seen);
        seen = job.next();
    }
    ASSERT_TRUE(seen.loss);
    const std::vector<Candidate> candidates = generator.propose(seen);
    int most_gpus = 0;
    for (const Candidate& candidate : candidates)
        if (candidate.kind == Kind::kRestart) most_gpus = std::max(most_gpus, candidate.plan.layout.world_size());
    EXPECT_EQ(most_gpus, 24);
}

}  // namespace
}  // namespace headway::sim
