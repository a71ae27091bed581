#pragma once

#include <string>
#include <vector>

#include "policies/planning/rebalance.h"
#include "scenarios/language/plan.h"

/// One plain sentence, with figures, that says why a candidate is offered.
namespace headway::policies {

/// "2.5", "1.07", "12": as sentences need it.
std::string short_number(double value);
/// "GPU 3", "GPUs 3, 4 and 7", "GPUs 3, 4, 5 and 13 more".
std::string gpus_text(std::vector<int> gpus);

/// "replica 3 takes 2.5 times as long: 13 instead of 32 micro-batches".
std::string why_shared(Rebalancer& rebalancer, const scenarios::Plan& from, const scenarios::Plan& to);
/// "stage 0 of replica 3 takes 2.5 times as long a layer: 9 instead of 20 layers".
std::string why_split(Rebalancer& rebalancer, const scenarios::Plan& from, const scenarios::Plan& to);

}  // namespace headway::policies
