#pragma once

#include <vector>

#include "policies/policy.h"

/// Hand-made decisions for rules.
namespace headway::policies {

/// A plan of `data` replicas of two stages; `flavour` makes plans differ in their shares.
inline scenarios::Plan small_plan(int flavour = 0, int data = 2) {
    scenarios::Plan plan;
    plan.layout.pipeline = 2;
    plan.layout.data = data;
    for (int gpu = 0; gpu < 2 * data; ++gpu) plan.gpu_of_rank.push_back(gpu);
    plan.layers_of_cell = scenarios::same_layers({2, 2}, data);
    plan.micro_batches_of_replica.assign(static_cast<std::size_t>(data), 8);
    plan.micro_batches_of_replica[0] += flavour;
    plan.micro_batches_of_replica[1] -= flavour;
    return plan;
}

inline Candidate offered(Candidate::Kind kind, scenarios::Plan plan, double iteration_s, double pause_s = 0.0) {
    Candidate candidate;
    candidate.kind = kind;
    candidate.plan = std::move(plan);
    candidate.predicted.iteration = Duration::seconds(iteration_s);
    candidate.predicted.pause = Duration::seconds(pause_s);
    candidate.predicted.restart = candidate.predicted.pause;
    return candidate;
}

inline Candidate kept(double iteration_s) {
    return offered(Candidate::Kind::kKeep, small_plan(), iteration_s);
}
inline Candidate shares(double iteration_s, double pause_s = 0.0, int flavour = 1) {
    return offered(Candidate::Kind::kShareMicroBatches, small_plan(flavour), iteration_s, pause_s);
}
inline Candidate layers(double iteration_s, double pause_s) {
    Candidate candidate = offered(Candidate::Kind::kSplitLayers, small_plan(), iteration_s, pause_s);
    candidate.plan.layers_of_cell = scenarios::same_layers({1, 3}, 2);
    return candidate;
}
inline Candidate degrees(double iteration_s, double pause_s) {
    return offered(Candidate::Kind::kChangeDegrees, small_plan(0, 3), iteration_s, pause_s);
}

inline Observation seen_at(double now_s) {
    Observation observation;
    observation.now = Duration::seconds(now_s);
    observation.plan = small_plan();
    return observation;
}

}  // namespace headway::policies
