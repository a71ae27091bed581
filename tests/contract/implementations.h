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
    bool real = false;              ///< times and sensors are measured: no two episodes are alike to the nanosecond
    std::string no_recovery = "";   ///< why a job does not go on after a loss; empty: it does
};

/// All of them. A new one is added here and nowhere else.
std::vector<Implementation> implementations();

}  // namespace headway::tests
