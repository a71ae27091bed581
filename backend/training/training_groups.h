#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "backend/communicator/communicator.h"
#include "backend/training/plan_place.h"
#include "scenarios/language/job.h"
#include "scenarios/language/plan.h"
#include "scenarios/transfer/ownership.h"

namespace headway::backend {

/// What flows between stages.
enum class Flow : std::uint8_t { kActivation, kGradient };

/// The groups of ranks that talk in a plan, made by all processes at once, and those of this process.
///
/// Who holds a layer in each replica decides who reduces its gradient: one group for each distinct set of holders, so
/// with equal replicas one a stage. Groups of one are left out but for `world`.
class TrainingGroups {
  public:
    TrainingGroups(const scenarios::Job& job, const scenarios::Plan& plan, const PlanPlace& place,
                   CommunicatorMaker& communicators);

    /// All ranks of the plan.
    Communicator& world() const { return *made_[world_]; }
    /// Null where the degree is 1.
    Communicator* tensor() const { return own(tensor_); }
    /// The holders of a block of this rank in all replicas, rank in the group = replica; null with one replica.
    Communicator* replicas(const scenarios::Block& block) const;
    /// First and last stage, which both hold a tied embedding; null on other ranks, and where they are one.
    Communicator* tied() const { return own(tied_); }
    /// The stages of this rank's replica, rank in the group = stage. Messages between two members of one group come up
    /// in the same order at both ends; where that of activations and gradients, or of those around the ring of an
    /// interleaved schedule, differs, they have groups of their own.
    Communicator& messages(Flow flow, bool around) const;

    void abort(const std::string& reason) noexcept;

  private:
    static constexpr int kNone = -1;
    Communicator* own(int index) const {
        return index == kNone ? nullptr : made_[static_cast<std::size_t>(index)].get();
    }
    int add(const std::string& name, std::vector<int> members);
    void add_tensor(const scenarios::Plan& plan);
    void add_messages(const scenarios::Plan& plan);
    void add_replicas(const scenarios::Job& job, const scenarios::Plan& plan);
    void add_tied(const scenarios::Plan& plan);

    PlanPlace place_;
    std::vector<GroupSpec> specs_;
    std::size_t world_ = 0;
    int tensor_ = kNone;
    int tied_ = kNone;
    int messages_[2][2] = {{kNone, kNone}, {kNone, kNone}};  // [flow][around]
    std::vector<int> replicas_of_layer_;                     // [layers], kNone where this rank does not hold it
    int replicas_of_stage_ = kNone;                          // of blocks that are no layer's
    std::vector<std::unique_ptr<Communicator>> made_;        // [specs_]
};

}  // namespace headway::backend
