#pragma once

#include <functional>
#include <memory>

#include "policies/training_cluster.h"

namespace headway::policies {

/// Makes a further cluster with the same scenario, in which nothing done counts: for policies that look ahead (oracle,
/// random search). Who runs the policy passes it in; policies/ knows no simulator. Several may live at a time.
using WorldFactory = std::function<std::unique_ptr<TrainingCluster>()>;

}  // namespace headway::policies
