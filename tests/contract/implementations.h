#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "policies/training_cluster.h"
#include "scenarios/language/scenario.h"

namespace headway::tests {

/// One implementation of the seam that the contract holds for.
struct Implementation {
    std::string name;
    std::function<std::unique_ptr<policies::TrainingCluster>(const scenarios::Scenario&)> make;
    bool several_at_a_time = true;  ///< made independently of each other, in one process
};

/// All of them. A new one is added here and nowhere else.
std::vector<Implementation> implementations();

}  // namespace headway::tests
