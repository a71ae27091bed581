#pragma once

namespace headway::benchmarks {

/// How far predicted iterations are from simulated ones, by kind of candidate: every candidate of `jobs` random
/// disturbed jobs (tests/property/disturbed_jobs.h) is tried in a world of its own, contention and heat included.
/// Prints mean and worst error of each kind.
void print_prediction_errors(int jobs);

}  // namespace headway::benchmarks
