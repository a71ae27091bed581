#include "policies/planning/candidate_generator.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "policies/planning/conditions.h"
#include "policies/planning/corrections.h"
#include "policies/planning/placement_plans.h"
#include "policies/planning/plan_predictor.h"
#include "policies/planning/proposal.h"
#include "policies/planning/reasons.h"
#include "policies/planning/rebalance.h"
#include "policies/planning/recovery_plans.h"
#include "policies/planning/relayout.h"
#include "scenarios/costs/checkpoint.h"

namespace headway::policies {

using scenarios::Duration;
using scenarios::Plan;
using Kind = Candidate::Kind;

namespace {

constexpr double kWorthOffering = 0.002;  ///< of the iteration: what a change has to promise
constexpr std::size_t kOfAKind = 4;
constexpr double kHardlySlower = 1.03;  ///< than the initial plan on a healthy cluster

}  // namespace

class CandidateGenerator::Impl {
  public:
    explicit Impl(const ClusterFacts& facts)
        : facts_(facts),
          predictor_(facts.job, facts.cluster),
          conditions_(facts_.cluster),
          spares_(facts_.cluster),
          mixed_(scenarios::gpu_types_of(facts_.cluster).size() > 1),
          layouts_(mixed_) {
        if (facts_.healthy_iteration > Duration())
            model_error_ = facts_.healthy_iteration / predictor_.iteration(facts_.initial_plan);
        predictor_.of_layout(facts_.initial_plan)->prepare(facts_.initial_plan);
        start_episode();
        faster_when_healthy_ = faster_when_healthy();
    }

    void start_episode() {
        conditions_.start_episode(model_error_);
        spares_.start_episode();
        last_plan_.reset();
        plan_before_.reset();
        last_.clear();
        corrections_.start_episode(model_error_);
    }

    std::vector<Candidate> propose(const Observation& observation, std::span<const Plan> further) {
        const Plan& plan = observation.plan;
        if (!last_plan_ || !(*last_plan_ == plan)) {
            plan_before_ = std::exchange(last_plan_, plan);
            last_.clear();
        }
        conditions_.update(observation, predictor_.costs(plan), [&](const scenarios::Conditions& conditions) {
            return predictor_.iteration(plan, conditions);
        });
        if (observation.iteration > Duration())
            corrections_.observe(plan, conditions_.iteration() / predictor_.iteration(plan, conditions_.conditions()),
                                 conditions_.current());
        if (observation.loss) {
            last_.clear();
            return recover(observation, further);
        }
        if (unchanged(observation, further)) {
            for (std::size_t i = 0; i < last_.size(); ++i)
                last_[i].predicted.iteration =
                    last_[i].predicted.iteration.scaled(corrections_.of(last_[i].plan) / last_corrections_[i]);
            last_.front().predicted.iteration = conditions_.iteration();
            remember_corrections();
            return last_;
        }
        last_ = rebalance(observation, further);
        last_version_ = conditions_.version();
        remember_corrections();
        last_unavailable_ = observation.unavailable_gpus;
        last_further_.assign(further.begin(), further.end());
        return last_;
    }

  private:
    void remember_corrections() {
        last_corrections_.clear();
        for (const Candidate& candidate : last_) last_corrections_.push_back(corrections_.of(candidate.plan));
    }

    bool unchanged(const Observation& observation, std::span<const Plan> further) const {
        return !last_.empty() && last_version_ == conditions_.version() &&
               last_unavailable_ == observation.unavailable_gpus &&
               std::equal(further.begin(), further.end(), last_further_.begin(), last_further_.end());
    }

    /// The initial plan may not be the best one there is: layouts that are faster with everything healthy.
    std::vector<Plan> faster_when_healthy() {
        const scenarios::Conditions healthy;
        const std::vector<int> nothing_lost;
        Proposal proposal(facts_, predictor_, healthy, nothing_lost, corrections_);
        proposal.start(keep(facts_.initial_plan, proposal.iteration(facts_.initial_plan)));
        return layouts_.offer(proposal);
    }

    /// Searching layouts takes longest: only where all that was found so far leaves something to gain.
    bool worth_a_new_layout(const Proposal& proposal, const Plan& plan) {
        if (mixed_ && plan == facts_.initial_plan) return true;
        const Duration healthy = predictor_.iteration(facts_.initial_plan).scaled(corrections_.common());
        return proposal.fastest() > healthy.scaled(kHardlySlower);
    }

    void offer_layouts(Proposal& proposal, const Plan& plan) {
        if (plan == facts_.initial_plan) layouts_.offer_again(proposal, faster_when_healthy_);
        if (worth_a_new_layout(proposal, plan)) layouts_.offer(proposal);
    }

    Candidate keep(const Plan& plan, Duration iteration) {
        Candidate candidate{Kind::kKeep, plan, {}, "keep the plan"};
        candidate.predicted.iteration = iteration;
        candidate.predicted.memory = predictor_.memory(plan);
        return candidate;
    }

    std::vector<Candidate> recover(const Observation& observation, std::span<const Plan> further) {
        const Plan& plan = observation.plan;
        std::vector<int> gone = observation.unavailable_gpus;
        gone.insert(gone.end(), observation.loss->gpus.begin(), observation.loss->gpus.end());
        std::sort(gone.begin(), gone.end());
        Proposal proposal(facts_, predictor_, conditions_.conditions(), gone, corrections_);
        Candidate wait{Kind::kWaitForReplacement, plan, {}, ""};
        const Duration until = spares_.until_replaced(*observation.loss, observation.now);
        wait.predicted.iteration = proposal.iteration(plan);
        wait.predicted.pause = until + scenarios::checkpoint_costs(facts_.job, facts_.cluster, plan).restart;
        wait.predicted.restart = wait.predicted.pause;
        wait.predicted.memory = predictor_.memory(plan);
        wait.why = gpus_text(observation.loss->gpus) + (observation.loss->gpus.size() == 1 ? " is" : " are") +
                   " lost: restart the same plan when a spare or the repaired part arrives, in about " +
                   short_number(until.s() / 60.0) + " minutes";
        proposal.start(std::move(wait));
        offer_recoveries(proposal, facts_, observation);
        if (!(facts_.initial_plan == plan))
            proposal.offer_restart(facts_.initial_plan,
                                   "restart at once under the initial plan, all of whose GPUs are there");
        layouts_.offer_after_loss(proposal);
        for (const Plan& wanted : further) proposal.offer_restart(wanted, "a plan that the policy asked for");
        return proposal.finish(kOfAKind);
    }

    std::vector<Candidate> rebalance(const Observation& observation, std::span<const Plan> further) {
        const Plan& plan = observation.plan;
        Proposal proposal(facts_, predictor_, conditions_.conditions(), observation.unavailable_gpus, corrections_);
        proposal.start(
            keep(plan, observation.iteration > Duration() ? conditions_.iteration() : proposal.iteration(plan)));

        const auto layout = predictor_.of_layout(plan);
        layout->set(conditions_.conditions());
        Rebalancer rebalancer(*layout, facts_.job, facts_.adapt);
        if (const auto shared = rebalancer.share(plan))
            proposal.offer(Kind::kShareMicroBatches, *shared, why_shared(rebalancer, plan, *shared), kWorthOffering);
        for (const bool apart : {false, true}) {
            if (const auto split = rebalancer.split(plan, apart))
                proposal.offer(Kind::kSplitLayers, *split, why_split(rebalancer, plan, *split), kWorthOffering);
            if (const auto both = rebalancer.split_and_share(plan, apart))
                proposal.offer(Kind::kSplitAndShare, *both,
                               why_split(rebalancer, plan, *both) + "; " + why_shared(rebalancer, plan, *both),
                               kWorthOffering);
        }
        offer_placements(proposal, *layout);
        offer_other_sizes(proposal, *layout);
        offer_layouts(proposal, plan);
        if (!(facts_.initial_plan == plan))
            proposal.offer(Kind::kReturn, facts_.initial_plan, "back to the initial plan", 0.0);
        if (plan_before_ && !(*plan_before_ == plan))
            proposal.offer(Kind::kReturn, *plan_before_, "back to the plan before", 0.0);
        for (const Plan& wanted : further)
            proposal.offer(Kind::kFurther, wanted, "a plan that the policy asked for", 0.0);
        return proposal.finish(kOfAKind);
    }

    const ClusterFacts facts_;
    PlanPredictor predictor_;
    ConditionsEstimator conditions_;
    Corrections corrections_;
    SpareParts spares_;
    bool mixed_ = false;  ///< the cluster has several types of GPUs
    LayoutOffers layouts_;
    std::vector<Plan> faster_when_healthy_;  ///< than the initial plan
    double model_error_ = 1.0;

    std::optional<Plan> last_plan_, plan_before_;
    std::vector<Candidate> last_;           ///< what was proposed last under the current plan
    std::vector<double> last_corrections_;  ///< of these
    int last_version_ = 0;
    std::vector<int> last_unavailable_;
    std::vector<Plan> last_further_;
};

CandidateGenerator::CandidateGenerator(const ClusterFacts& facts) : impl_(std::make_unique<Impl>(facts)) {}
CandidateGenerator::~CandidateGenerator() = default;
CandidateGenerator::CandidateGenerator(CandidateGenerator&&) noexcept = default;
CandidateGenerator& CandidateGenerator::operator=(CandidateGenerator&&) noexcept = default;

void CandidateGenerator::start_episode() {
    impl_->start_episode();
}

std::vector<Candidate> CandidateGenerator::propose(const Observation& observation,
                                                   std::span<const scenarios::Plan> further) {
    return impl_->propose(observation, further);
}

}  // namespace headway::policies
