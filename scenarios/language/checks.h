#pragma once

#include "scenarios/language/read.h"

namespace headway::scenarios {

/// Fills in what follows from other keys (`head_dim`, `kv_heads`, `data: auto`, names of disturbances) and checks what
/// no single key can tell: degrees against GPUs and shapes, shares and placements, disturbances against the cluster and
/// the run. Throws ConfigError at the key's place.
void complete_and_check(Scenario& scenario, const KeyPlaces& places);

/// The part of it that concerns one disturbance list: parts that exist, times, overlapping losses, files.
void check_disturbances(const Scenario& scenario, const KeyPlaces& places);

/// Shape of a model and of a cluster on their own (`path` is where they stand). Fills in `head_dim` and `kv_heads`.
void complete_and_check_model(Model& model, const KeyPlaces& places, const std::string& path);
void check_cluster(const Cluster& cluster, const KeyPlaces& places, const std::string& path);

}  // namespace headway::scenarios
