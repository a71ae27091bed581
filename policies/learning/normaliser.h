#pragma once

#include <span>
#include <vector>

#include "policies/learning/features.h"
#include "policies/learning/network.h"
#include "policies/learning/trained_policy.h"

namespace headway::policies {

/// A normaliser of no data: leaves features as they are.
Normaliser empty_normaliser(std::size_t features);

/// Sums over rows of a table of features, about the normaliser's present mean: what processes add up before `merge`.
/// [1 + 2 x features]: rows, sums of differences, sums of squared differences.
void add_sums(const Normaliser& about, std::span<const float> rows, std::span<double> sums);
/// Takes the rows behind `sums` in.
void merge(Normaliser& normaliser, std::span<const double> sums);

/// Appends a decision to a batch: (x - mean) / sqrt(variance + 0.001), within -5..5; flags as they are.
void append_decision(const TrainedPolicy& policy, const Features& features, NetworkInput& input);

}  // namespace headway::policies
