#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "policies/episode.h"
#include "policies/learning/features.h"
#include "policies/learning/trained_policy.h"
#include "scenarios/language/random.h"

namespace headway::policies {

/// A decision in which other choices were tried out: the episode was run again with the same disturbances, was left as
/// it was up to this decision, and went on under the policy after the other choice. So the difference is the choice's
/// own doing, and not the disturbances'.
struct Comparison {
    Features features;
    int chosen = 0;          ///< by the policy
    std::vector<int> tried;  ///< candidates
    /// [tried] What the candidate earned more than `chosen`, until the end of the episode, in healthy decision
    /// intervals of work, discounted with wall time.
    std::vector<double> advantage;
};

struct ComparisonOptions {
    EpisodeOptions episode;
    int decisions = 6;        ///< at most so many of an episode; such with more than one candidate
    int alternatives = 2;     ///< at most so many others of each
    double discount = 0.985;  ///< per healthy decision interval
    double spread = 1.0;      ///< others are drawn by the softmax of logits / spread, mixed evenly with chance
};

/// Comparisons in one episode under `policy`, which takes its best candidate everywhere else. `goodput`, where given,
/// becomes that of the episode.
std::vector<Comparison> compare_choices(TrainingCluster& cluster, CandidateGenerator& generator,
                                        const TrainedPolicy& policy, const ComparisonOptions& options,
                                        scenarios::RandomStream& stream, double* goodput = nullptr);

struct ComparisonTerms {
    double loss = 0.0;     ///< minus expected advantage and entropy, intervals
    double most = 0.0;     ///< advantage of the best candidate, the chosen one (0) included
    double reached = 0.0;  ///< advantage of the one that scores best
};

/// Loss of one decision: minus the advantage that is expected when one of the compared candidates (the chosen one is
/// one of them, with advantage 0) is drawn by the softmax of their logits, less 0.05 times the entropy of that. Its
/// derivatives are added to `by_logits`.
/// So candidates that turned out alike stay as they are, and noise of what they earned cannot be mistaken for a reason
/// to move, as in a regression on it. Advantages count up to 20 intervals.
ComparisonTerms comparison_terms(std::span<const double> logits, const Comparison& comparison,
                                 std::span<double> by_logits);

/// For the pipe between processes; `comparisons_from_bytes` throws std::runtime_error for bytes of another kind.
std::string comparison_bytes(const std::vector<Comparison>& comparisons);
std::vector<Comparison> comparisons_from_bytes(std::string_view bytes);

}  // namespace headway::policies
