#pragma once

#include <vector>

#include "policies/planning/plan_predictor.h"
#include "scenarios/language/adapt.h"
#include "scenarios/language/plan.h"

namespace headway::policies {

/// Whether `adapt` lets a job go from one plan to another. Where the layout changes, layers and shares are the new
/// layout's own: uneven ones then need what would change them.
bool may_change(const scenarios::Adapt& adapt, const scenarios::Plan& from, const scenarios::Plan& to);

/// Whether the plan needs none of these GPUs (ascending).
bool uses_none(const scenarios::Plan& plan, const std::vector<int>& gpus);

}  // namespace headway::policies
