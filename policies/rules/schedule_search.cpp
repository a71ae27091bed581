#include "policies/rules/schedule_search.h"

#include <algorithm>
#include <limits>

#include "scenarios/transfer/switch_costs.h"

namespace headway::policies {

namespace {

constexpr double kUnreached = -std::numeric_limits<double>::infinity();

struct Reached {
    enum class By : std::uint8_t { kStay, kSwitch, kRestart } by = By::kStay;
    double iterations = kUnreached;
    int from_step = -1;
    int from_plan = -1;
};

class ScheduleProgramme {
  public:
    ScheduleProgramme(const ClusterFacts& facts, const ScheduleProblem& problem)
        : problem_(problem),
          plans_(static_cast<int>(problem.plans.size())),
          steps_(static_cast<int>((problem.end.ns() + problem.step.ns() - 1) / problem.step.ns())),
          table_(static_cast<std::size_t>((steps_ + 1) * plans_)),
          trained_(table_.size()) {
        for (const scenarios::Plan& from : problem.plans) {
            scenarios::SwitchEstimate estimate(facts.job, facts.cluster, from);
            for (const scenarios::Plan& to : problem.plans) costs_.push_back(estimate.to(to));
        }
        live_ = facts.adapt.live;
        for (int step = 0; step <= steps_; ++step) {
            for (int plan = 0; plan < plans_; ++plan) trained_[cell(step, plan)] = trained(plan, time(step));
        }
    }

    Schedule solve() {
        table_[cell(0, 0)].iterations = 0.0;
        int last = steps_;
        for (int step = 0; step < steps_; ++step) {
            for (int plan = 0; plan < plans_; ++plan) {
                if (at(step, plan).iterations != kUnreached) leave(step, plan);
            }
            if (problem_.iterations <= 0) continue;
            const auto wanted = static_cast<double>(problem_.iterations);
            if (at(step + 1, best_plan(step + 1)).iterations < wanted) continue;
            last = step + 1;
            break;
        }
        return trace_back(last, best_plan(last));
    }

  private:
    std::size_t cell(int step, int plan) const { return static_cast<std::size_t>(step * plans_ + plan); }
    const Reached& at(int step, int plan) const { return table_[cell(step, plan)]; }
    Duration time(int step) const { return std::min(problem_.step * step, problem_.end); }
    const PlanProgress& progress(int plan) const { return problem_.progress[static_cast<std::size_t>(plan)]; }
    double trained(int plan, Duration when) const { return progress(plan).iterations_at(when); }

    int best_plan(int step) const {
        int best = 0;
        for (int plan = 1; plan < plans_; ++plan) {
            if (at(step, plan).iterations > at(step, best).iterations) best = plan;
        }
        return best;
    }

    void reach(int step, int plan, const Reached& way) {
        Reached& there = table_[cell(step, plan)];
        if (way.iterations > there.iterations) there = way;
    }

    Duration pause(int from, int to, Duration when) const {
        const scenarios::SwitchCosts& costs = costs_[static_cast<std::size_t>(from * plans_ + to)];
        if (!live_ || !costs.fits_live) return costs.restart_pause;
        return std::min(costs.live_pause_behind(progress(from).iteration_at(when)), costs.restart_pause);
    }

    /// To `to`, ready to train at `ready` with `iterations` behind it.
    void arrive(int to, Duration ready, Reached way) {
        const auto step = static_cast<int>((ready.ns() + problem_.step.ns() - 1) / problem_.step.ns());
        if (step > steps_ || progress(to).outage_at(ready) != nullptr) return;
        way.iterations += trained_[cell(step, to)] - trained(to, ready);
        reach(step, to, way);
    }

    void leave(int step, int plan) {
        const double here = at(step, plan).iterations;
        const Duration now = time(step);
        reach(step + 1, plan,
              {Reached::By::kStay, here + trained_[cell(step + 1, plan)] - trained_[cell(step, plan)], step, plan});
        if (const auto* outage = progress(plan).outage_between(now, time(step + 1))) {
            // One iteration before, so that the rollback at that very moment is not counted yet.
            const double until =
                trained(plan, outage->broken_off - Duration::nanoseconds(1)) - trained_[cell(step, plan)];
            for (int to = 0; to < plans_; ++to) {
                if (to == plan || progress(to).outage_at(outage->noticed) != nullptr) continue;
                const Duration ready =
                    outage->noticed + costs_[static_cast<std::size_t>(plan * plans_ + to)].restart_pause;
                arrive(to, ready, {Reached::By::kRestart, here + until - outage->iterations_lost, step, plan});
            }
        }
        // The first decision comes after the first interval; while it waits for a replacement there is none.
        if (step == 0 || progress(plan).outage_at(now) != nullptr) return;
        for (int to = 0; to < plans_; ++to) {
            if (to == plan || progress(to).outage_at(now) != nullptr) continue;
            arrive(to, now + pause(plan, to, now), {Reached::By::kSwitch, here, step, plan});
        }
    }

    Schedule trace_back(int step, int plan) const {
        Schedule schedule;
        while (step > 0) {
            const Reached& way = at(step, plan);
            if (way.from_step < 0) break;
            const Duration when = time(way.from_step);
            if (way.by == Reached::By::kSwitch) {
                schedule.moves.push_back({when, problem_.plans[static_cast<std::size_t>(plan)]});
            } else if (const auto* outage = progress(way.from_plan).outage_between(when, time(way.from_step + 1))) {
                Schedule::LossChoice& choice = schedule.losses.emplace_back();
                choice.at = outage->noticed;
                if (way.by == Reached::By::kRestart) choice.restart = problem_.plans[static_cast<std::size_t>(plan)];
            }
            step = way.from_step;
            plan = way.from_plan;
        }
        std::reverse(schedule.moves.begin(), schedule.moves.end());
        std::reverse(schedule.losses.begin(), schedule.losses.end());
        return schedule;
    }

    const ScheduleProblem& problem_;
    int plans_;
    int steps_;
    std::vector<Reached> table_;                 ///< [steps + 1, plans]
    std::vector<double> trained_;                ///< [steps + 1, plans] by the plan alone
    std::vector<scenarios::SwitchCosts> costs_;  ///< [from, to]
    bool live_ = true;
};

}  // namespace

Schedule best_schedule(const ClusterFacts& facts, const ScheduleProblem& problem) {
    return ScheduleProgramme(facts, problem).solve();
}

}  // namespace headway::policies
