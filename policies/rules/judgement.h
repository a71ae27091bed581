#pragma once

#include <cstddef>
#include <vector>

#include "policies/action.h"
#include "scenarios/language/units.h"

/// How rules read predictions; all of them read them alike.
namespace headway::policies {

/// Differences below this share of an iteration are within what measurements and predictions resolve: no rule moves a
/// job for less.
inline constexpr double kLeastGain = 0.005;

/// Share of the kept plan's predicted iteration that the candidate is predicted to save; negative when it is slower,
/// 0 where one of them has no prediction.
double predicted_gain(const Candidate& candidate, const Candidate& kept);

/// Candidate with the least predicted iteration, the first of equals; 0 unless it gains at least `least_gain`.
std::size_t fastest_candidate(const std::vector<Candidate>& candidates, double least_gain);

/// Whether the job stands still after a loss, so that keeping means waiting.
bool after_loss(const std::vector<Candidate>& candidates);

/// Training time that a choice after a loss is predicted to lose until the replacement would be there and the job has
/// gone back to the kept plan: its pause, what it trains slower than that plan would have in the rest of the time, and
/// the way back, where the plan is slower.
scenarios::Duration predicted_lost_time(const Candidate& candidate, const Candidate& waiting);

/// Candidate with the least predicted lost time, the first of equals.
std::size_t least_lost_time(const std::vector<Candidate>& candidates);

}  // namespace headway::policies
