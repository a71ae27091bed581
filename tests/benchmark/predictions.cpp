#include "tests/benchmark/predictions.h"

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

#include "policies/observation.h"
#include "policies/planning/candidate_generator.h"
#include "sim/simulated_cluster.h"
#include "tests/property/disturbed_jobs.h"

namespace headway::benchmarks {

namespace {

using policies::Candidate;

constexpr int kIterations = 10, kIntervals = 6;

struct Error {
    int kind = 0;
    double relative = 0.0;  ///< predicted over simulated, less 1
};

double mean_seconds(const policies::Measurements& measured) {
    double sum = 0.0;
    for (const scenarios::Duration iteration : measured.iterations) sum += iteration.s();
    return sum / static_cast<double>(measured.iterations.size());
}

std::vector<Error> errors_of(std::uint64_t seed) {
    sim::SimulatedCluster cluster(tests::disturbed_job(seed), nullptr, {.heat_together = true});
    const scenarios::Plan& plan = cluster.facts().initial_plan;
    policies::CandidateGenerator generator(cluster.facts());
    cluster.start_episode(seed);
    policies::ObservationBuilder builder;
    builder.start_episode();
    std::vector<Candidate> candidates;
    for (int i = 0; i < kIntervals; ++i) {
        const policies::Measurements measured = cluster.run(plan, kIterations);
        candidates = generator.propose(builder.build(cluster.facts(), plan, measured, cluster.now()));
    }
    std::vector<Error> errors;
    for (const Candidate& candidate : candidates) {
        const auto world = cluster.another();
        world->start_episode(seed);
        world->run(plan, kIterations * kIntervals);
        world->move_to(candidate.plan);
        world->run(candidate.plan, kIterations);  // heat settles
        const double took = mean_seconds(world->run(candidate.plan, kIterations));
        errors.push_back({static_cast<int>(candidate.kind), candidate.predicted.iteration.s() / took - 1.0});
    }
    return errors;
}

/// SimGrid has one engine a process: each job gets a process.
std::vector<Error> errors_in_a_process(std::uint64_t seed) {
    int ends[2];
    if (::pipe(ends) != 0) throw std::runtime_error("no pipe");
    const pid_t child = ::fork();
    if (child < 0) throw std::runtime_error("no process");
    if (child == 0) {
        ::close(ends[0]);
        const std::vector<Error> errors = errors_of(seed);
        const auto bytes = static_cast<ssize_t>(errors.size() * sizeof(Error));
        ::_exit(::write(ends[1], errors.data(), static_cast<std::size_t>(bytes)) == bytes ? 0 : 1);
    }
    ::close(ends[1]);
    std::vector<Error> errors;
    Error one;
    while (::read(ends[0], &one, sizeof one) == static_cast<ssize_t>(sizeof one)) errors.push_back(one);
    ::close(ends[0]);
    int status = 0;
    ::waitpid(child, &status, 0);
    if (status != 0) throw std::runtime_error("job " + std::to_string(seed) + " failed");
    return errors;
}

}  // namespace

void print_prediction_errors(int jobs) {
    struct Sum {
        int count = 0;
        double absolute = 0.0, worst = 0.0;
    };
    std::map<int, Sum> by_kind;
    Sum all;
    for (int seed = 1; seed <= jobs; ++seed)
        for (const Error& error : errors_in_a_process(static_cast<std::uint64_t>(seed)))
            for (Sum* sum : {&by_kind[error.kind], &all}) {
                ++sum->count;
                sum->absolute += std::abs(error.relative);
                if (std::abs(error.relative) > std::abs(sum->worst)) sum->worst = error.relative;
            }
    std::printf("%-20s %10s %10s %10s\n", "candidate", "tried", "mean", "worst");
    const auto print = [](const char* name, const Sum& sum) {
        std::printf("%-20s %10d %8.2f %% %+8.2f %%\n", name, sum.count, 100.0 * sum.absolute / std::max(1, sum.count),
                    100.0 * sum.worst);
    };
    for (const auto& [kind, sum] : by_kind) print(policies::name_of(static_cast<Candidate::Kind>(kind)), sum);
    print("all", all);
}

}  // namespace headway::benchmarks
