#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "scenarios/language/plan.h"
#include "scenarios/language/units.h"
#include "scenarios/record/run_events.h"

namespace headway::policies {

/// What the planner expects of a candidate, under the speeds and bandwidths seen now.
struct Prediction {
    scenarios::Duration iteration;
    scenarios::Duration pause;  ///< until training goes on under the plan: switch, or recovery after a loss
    scenarios::Duration
        restart;              ///< the same change by save and restart; equal to `pause` where nothing faster is legal
    scenarios::Bytes moved;   ///< state that changes owner
    scenarios::Bytes memory;  ///< of the fullest rank, over the switch too
    scenarios::Duration way_back = {};  ///< of a restart: pause of the way back to the plan before the loss
    bool operator==(const Prediction&) const = default;
};

/// One thing the job could do next. Candidate 0 is "keep the plan": free and always legal; after a loss that makes it
/// impossible it is "restart the same plan when a spare or the repaired part arrives", charged its real time.
struct Candidate {
    enum class Kind {
        kKeep,
        kWaitForReplacement,
        kShareMicroBatches,  ///< other shares of the replicas
        kSplitLayers,        ///< other layers of the stages
        kSplitAndShare,      ///< both
        kPlaceRanks,         ///< GPUs change places, or with idle ones
        kChangeDegrees,      ///< tensor, pipeline, data, context
        kDropGpus,           ///< GPUs, nodes or replicas are left out
        kBringBack,          ///< GPUs that were left out or have returned are used again
        kReturn,             ///< to the plan before, or to the initial one
        kRestart,            ///< after a loss: at once, without the lost parts, from the last checkpoint
        kFurther,            ///< a plan that the policy asked for
    } kind = Kind::kKeep;
    scenarios::Plan plan;
    Prediction predicted;
    std::string why;
};

/// "keep", "wait-for-replacement", "share-micro-batches", ...
const char* name_of(Candidate::Kind kind);

/// Index into the legal candidates: an illegal action cannot be expressed.
struct Action {
    /// Who chose: the policy itself or a guard around it (policies/guardrails.h).
    using By = scenarios::DecisionEvent::By;

    std::size_t candidate = 0;
    By by = By::kPolicy;
};

}  // namespace headway::policies
