#include "policies/rules/oracle_policy.h"

#include <algorithm>

#include "policies/rules/plan_progress.h"
#include "policies/rules/schedule_search.h"

namespace headway::policies {

namespace {

/// Who shows the oracle around. Static first: its episode says how long the others may last.
constexpr const char* kGuides[] = {"static", "greedy", "hysteresis", "ski-rental", "best-static"};
constexpr int kRounds = 2;
constexpr std::int64_t kMostSteps = 400;

}  // namespace

OraclePolicy::OraclePolicy(RuleParameters parameters, const PolicyResources& resources)
    : RehearsedPolicy(parameters.text(), resources), pool_size_(parameters.count("plans", 12, 1, 100)) {
    parameters.expect_all_known();
}

void OraclePolicy::rehearse(Rehearsal& rehearsal, const ClusterFacts& facts, std::uint64_t seed) {
    PlanPool pool;
    EpisodeSummary nothing_done;
    for (const char* guide : kGuides) {
        const EpisodeSummary done = rehearsal.play(*make_policy(guide, resources()), &pool);
        if (guide == kGuides[0]) nothing_done = done;
    }

    ScheduleProblem problem;
    problem.end = nothing_done.wall;
    problem.iterations = resources().episode.max_iterations;
    problem.step = std::max(facts.healthy_iteration * resources().episode.decision_interval,
                            Duration::nanoseconds(problem.end.ns() / kMostSteps + 1));
    const auto consider = [&](const scenarios::Plan& plan) {
        if (std::find(problem.plans.begin(), problem.plans.end(), plan) != problem.plans.end()) return;
        auto progress =
            PlanProgress::measure(rehearsal.world(), seed, plan, resources().episode.decision_interval, problem.end);
        if (!progress) return;
        problem.plans.push_back(plan);
        problem.progress.push_back(std::move(*progress));
    };
    consider(facts.initial_plan);
    for (int round = 0; round < kRounds && !problem.plans.empty() && problem.end > Duration(); ++round) {
        const std::size_t known = problem.plans.size();
        for (const scenarios::Plan& plan : pool.best(static_cast<std::size_t>(pool_size_))) consider(plan);
        if (problem.plans.size() == known) break;
        ScheduleFollower follower(best_schedule(facts, problem));
        pool = PlanPool();
        rehearsal.play(follower, &pool);
    }
}

}  // namespace headway::policies
