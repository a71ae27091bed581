#include "policies/planning/plan_predictor.h"

#include <algorithm>
#include <list>
#include <stdexcept>
#include <utility>

#include "scenarios/costs/memory.h"
#include "scenarios/language/plan_check.h"
#include "scenarios/timing/replica_programs.h"

namespace headway::policies {

using scenarios::Bytes;
using scenarios::Duration;
using scenarios::Plan;
using scenarios::ReplicaPrograms;

namespace {

constexpr std::size_t kRememberedPlans = 96;
constexpr std::size_t kRememberedLayouts = 24;

}  // namespace

class PlanPredictor::Impl {
  public:
    Impl(scenarios::Job the_job, scenarios::Cluster the_cluster)
        : job(std::move(the_job)), cluster(std::move(the_cluster)) {}

    struct Prepared {
        Plan plan;
        scenarios::IterationCosts costs;
        scenarios::StepTimer timer;
        scenarios::Evaluator evaluator;
    };

    Prepared& prepared(const Plan& plan) {
        const auto found =
            std::find_if(plans_.begin(), plans_.end(), [&](const Prepared& p) { return p.plan == plan; });
        if (found != plans_.end()) {
            plans_.splice(plans_.begin(), plans_, found);
            return plans_.front();
        }
        scenarios::IterationCosts costs = scenarios::iteration_costs(job, cluster, plan);
        scenarios::StepTimer timer(costs, plan, cluster);
        scenarios::Evaluator evaluator(plan, job.model.tied_embedding, programs_of(plan.layout));
        plans_.push_front({plan, std::move(costs), std::move(timer), std::move(evaluator)});
        if (plans_.size() > kRememberedPlans) plans_.pop_back();
        return plans_.front();
    }

    const scenarios::Job job;
    const scenarios::Cluster cluster;

  private:
    std::shared_ptr<ReplicaPrograms> programs_of(const scenarios::Layout& layout) {
        const auto found = std::find_if(programs_.begin(), programs_.end(),
                                        [&](const auto& programs) { return programs->layout() == layout; });
        if (found != programs_.end()) {
            programs_.splice(programs_.begin(), programs_, found);
            return programs_.front();
        }
        programs_.push_front(std::make_shared<ReplicaPrograms>(layout, ReplicaPrograms::Counts::kGrid));
        if (programs_.size() > kRememberedLayouts) programs_.pop_back();
        return programs_.front();
    }

    std::list<Prepared> plans_;                             // the last used first
    std::list<std::shared_ptr<ReplicaPrograms>> programs_;  // the last used first
};

PlanPredictor::PlanPredictor(scenarios::Job job, scenarios::Cluster cluster)
    : impl_(std::make_unique<Impl>(std::move(job), std::move(cluster))) {}
PlanPredictor::~PlanPredictor() = default;
PlanPredictor::PlanPredictor(PlanPredictor&&) noexcept = default;
PlanPredictor& PlanPredictor::operator=(PlanPredictor&&) noexcept = default;

const scenarios::Job& PlanPredictor::job() const {
    return impl_->job;
}
const scenarios::Cluster& PlanPredictor::cluster() const {
    return impl_->cluster;
}

bool PlanPredictor::fits(const Plan& plan) {
    try {
        scenarios::check_plan(impl_->job, impl_->cluster, plan);
        impl_->prepared(plan);
    } catch (const std::invalid_argument&) {
        return false;
    }
    return scenarios::memory_shortages(impl_->job, impl_->cluster, plan).empty();
}

Duration PlanPredictor::iteration(const Plan& plan, const scenarios::Conditions& conditions) {
    Impl::Prepared& prepared = impl_->prepared(plan);
    return prepared.evaluator.iteration_time(prepared.timer.at(conditions));
}

scenarios::Evaluation PlanPredictor::evaluate(const Plan& plan, const scenarios::Conditions& conditions) {
    Impl::Prepared& prepared = impl_->prepared(plan);
    return prepared.evaluator.evaluate(prepared.timer.at(conditions));
}

Bytes PlanPredictor::memory(const Plan& plan) {
    Bytes most;
    for (const scenarios::StageMemory& stage : scenarios::stage_memory(impl_->job, plan))
        most = std::max(most, stage.total());
    return most;
}

const scenarios::IterationCosts& PlanPredictor::costs(const Plan& plan) {
    return impl_->prepared(plan).costs;
}

}  // namespace headway::policies
