#include "policies/planning/plan_predictor.h"

#include <algorithm>
#include <list>
#include <stdexcept>
#include <utility>

#include "scenarios/language/plan_check.h"

namespace headway::policies {

using scenarios::Bytes;
using scenarios::Duration;
using scenarios::Plan;
using scenarios::ReplicaPrograms;

namespace {

constexpr std::size_t kRememberedPlacements = 24;
constexpr std::size_t kRememberedLayouts = 24;

}  // namespace

class PlanPredictor::Impl {
  public:
    Impl(scenarios::Job the_job, scenarios::Cluster the_cluster)
        : job(std::move(the_job)),
          cluster(std::move(the_cluster)),
          memory_of_gpu_(scenarios::memory_of_gpus(cluster)) {}

    std::shared_ptr<LayoutPredictor>& of_layout(const Plan& plan) {
        const auto found = std::find_if(placed_.begin(), placed_.end(), [&](const auto& known) {
            return known->layout() == plan.layout && known->gpu_of_rank() == plan.gpu_of_rank;
        });
        if (found != placed_.end()) {
            placed_.splice(placed_.begin(), placed_, found);
            return placed_.front();
        }
        placed_.push_front(std::make_shared<LayoutPredictor>(job, cluster, memory_of_gpu_, plan, shared(plan.layout)));
        if (placed_.size() > kRememberedPlacements) placed_.pop_back();
        return placed_.front();
    }

    const scenarios::Job job;
    const scenarios::Cluster cluster;

  private:
    LayoutPredictor::Shared shared(const scenarios::Layout& layout) {
        const auto found = std::find_if(shared_.begin(), shared_.end(),
                                        [&](const auto& known) { return known.programs->layout() == layout; });
        if (found != shared_.end()) {
            shared_.splice(shared_.begin(), shared_, found);
            return shared_.front();
        }
        shared_.push_front({std::make_shared<ReplicaPrograms>(layout, ReplicaPrograms::Counts::kGrid),
                            std::make_shared<scenarios::MemoryTable>(job, layout)});
        if (shared_.size() > kRememberedLayouts) shared_.pop_back();
        return shared_.front();
    }

    const std::vector<Bytes> memory_of_gpu_;
    std::list<std::shared_ptr<LayoutPredictor>> placed_;  // the last used first
    std::list<LayoutPredictor::Shared> shared_;           // the last used first
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
        LayoutPredictor& layout = *impl_->of_layout(plan);
        return layout.can_be_scheduled(plan) && layout.fits_memory(plan);
    } catch (const std::invalid_argument&) {
        return false;
    }
}

Duration PlanPredictor::iteration(const Plan& plan, const scenarios::Conditions& conditions) {
    LayoutPredictor& layout = *impl_->of_layout(plan);
    layout.set(conditions);
    return layout.iteration(plan);
}

scenarios::Evaluation PlanPredictor::evaluate(const Plan& plan, const scenarios::Conditions& conditions) {
    LayoutPredictor& layout = *impl_->of_layout(plan);
    layout.set(conditions);
    return layout.evaluate(plan);
}

Bytes PlanPredictor::memory(const Plan& plan) {
    return impl_->of_layout(plan)->memory(plan);
}

const scenarios::IterationCosts& PlanPredictor::costs(const Plan& plan) {
    return impl_->of_layout(plan)->costs(plan);
}

std::shared_ptr<LayoutPredictor> PlanPredictor::of_layout(const Plan& plan) {
    return impl_->of_layout(plan);
}

}  // namespace headway::policies
