#include "backend/training/trainer.h"

#include <optional>
#include <stdexcept>

#include "backend/training/plan_place.h"
#include "backend/training/plan_rank.h"
#include "backend/training/training_groups.h"

namespace headway::backend {

namespace {

PlanPlace checked_place(const scenarios::Job& job, const scenarios::Plan& plan, int process) {
    check_trainable(job, plan);
    return place_in_plan(plan, process);
}

}  // namespace

class Trainer::Impl {
  public:
    Impl(const scenarios::Job& job, const scenarios::Plan& plan, int process, Device& device,
         CommunicatorMaker& communicators, const TokenSource& tokens)
        : job_(job),
          plan_(plan),
          device_(device),
          place_(checked_place(job, plan, process)),
          groups_(job, plan, place_, communicators) {
        guarded([&] {
            if (!place_.idle()) rank_.emplace(job_, plan_, place_, groups_, device, tokens);
        });
    }

    /// When it fails the other ranks are told, and nobody waits for this one.
    template <class Action>
    void guarded(const Action& action) {
        try {
            action();
        } catch (const std::exception& error) {
            groups_.abort(error.what());
            throw;
        }
    }

    const scenarios::Job job_;
    scenarios::Plan plan_;
    Device& device_;
    const PlanPlace place_;
    TrainingGroups groups_;
    std::optional<PlanRank> rank_;
};

Trainer::Trainer(const scenarios::Job& job, const scenarios::Plan& plan, int process, Device& device,
                 CommunicatorMaker& communicators, const TokenSource& tokens)
    : impl_(std::make_unique<Impl>(job, plan, process, device, communicators, tokens)) {}
Trainer::~Trainer() = default;

int Trainer::rank() const {
    return impl_->place_.rank;
}

void Trainer::initialise(std::uint64_t seed) {
    if (impl_->rank_) impl_->guarded([&] { impl_->rank_->initialise(seed); });
}

void Trainer::state_changed() {
    if (impl_->rank_) impl_->guarded([&] { impl_->rank_->state_changed(); });
}

void Trainer::share(const scenarios::Plan& plan) {
    check_trainable(impl_->job_, plan);
    scenarios::Plan same = plan;
    same.micro_batches_of_replica = impl_->plan_.micro_batches_of_replica;
    if (same != impl_->plan_) throw std::invalid_argument("the plan differs in more than the shares of the replicas");
    impl_->plan_.micro_batches_of_replica = plan.micro_batches_of_replica;
    if (impl_->rank_) impl_->guarded([&] { impl_->rank_->share(impl_->plan_); });
}

std::span<StateSlice> Trainer::state() {
    return impl_->rank_ ? impl_->rank_->state() : std::span<StateSlice>();
}

StepResult Trainer::step(std::int64_t step, std::uint64_t seed, Pace* pace) {
    StepResult result;
    if (impl_->rank_) impl_->guarded([&] { result = impl_->rank_->step(step, seed, pace); });
    return result;
}

scenarios::Bytes Trainer::memory() const {
    return impl_->device_.memory_used();
}

}  // namespace headway::backend
