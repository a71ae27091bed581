#include "policies/learning/comparison.h"

#include <algorithm>
#include <optional>
#include <stdexcept>
#include <utility>

#include "policies/learning/byte_stream.h"
#include "policies/learning/scorer.h"
#include "policies/reward.h"

namespace headway::policies {

namespace {

using scenarios::portable_exp;
using scenarios::portable_log;

constexpr std::uint32_t kComparisonFormat = 1;

struct DeviationAt {
    std::size_t decision;
    int candidate;
};

/// Takes the network's best candidate, but for one decision; before that what was chosen the first time.
class DeviatingPolicy final : public Policy {
  public:
    struct Seen {
        Features features;
        std::vector<double> logits;
        int chosen = 0;
    };

    DeviatingPolicy(Scorer& scorer, std::vector<Seen>* record, const std::vector<Seen>* before,
                    std::optional<DeviationAt> deviation)
        : scorer_(scorer), record_(record), before_(before), deviation_(deviation) {}

    std::string_view name() const override { return "comparing"; }
    void start_episode(const ClusterFacts& facts, std::uint64_t) override {
        features_.start_episode(facts);
        decision_ = 0;
    }
    Action decide(const Observation& observation, const std::vector<Candidate>& candidates) override {
        const Features& features = features_.build(observation, candidates);
        const std::size_t now = decision_++;
        std::size_t chosen = 0;
        if (deviation_ && now <= deviation_->decision) {
            chosen =
                static_cast<std::size_t>(now < deviation_->decision ? (*before_)[now].chosen : deviation_->candidate);
        } else {
            scorer_.score(features);
            chosen = scorer_.best();
        }
        if (record_) {
            record_->push_back(
                {features, {scorer_.logits().begin(), scorer_.logits().end()}, static_cast<int>(chosen)});
        }
        return {chosen};
    }

  private:
    Scorer& scorer_;
    std::vector<Seen>* record_;
    const std::vector<Seen>* before_;
    std::optional<DeviationAt> deviation_;
    FeatureBuilder features_;
    std::size_t decision_ = 0;
};

/// Work that is lost against a healthy cluster, as it adds up with wall time; times in healthy intervals.
class LossOverTime final : public EpisodeSink {
  public:
    LossOverTime(const ClusterFacts& facts, int interval) : healthy_(facts.healthy_iteration), interval_(interval) {}
    bool decided(const Decision& decision) override {
        begin_.push_back(intervals(decision.observation.now));
        return true;
    }
    void earned(const Interval& interval) override {
        end_.push_back(begin_.back() + intervals(interval.wall));
        rate_.push_back(1.0 - reward(interval, healthy_));
    }
    double begin(std::size_t decision) const { return begin_[decision]; }
    double end() const { return end_.empty() ? 0.0 : end_.back(); }
    /// From a decision until `until`, discounted from the decision's time.
    double lost(std::size_t decision, double until, double discount) const {
        double sum = 0.0;
        for (std::size_t i = decision; i < end_.size() && begin_[i] < until; ++i) {
            const double length = std::min(end_[i], until) - begin_[i];
            const double middle = begin_[i] + 0.5 * length - begin_[decision];
            sum += rate_[i] * length * portable_exp(std::max(portable_log(discount) * middle, -700.0));
        }
        return sum;
    }

  private:
    double intervals(Duration time) const { return healthy_ > Duration() ? time / (healthy_ * interval_) : 0.0; }
    Duration healthy_;
    int interval_;
    std::vector<double> begin_, end_, rate_;  ///< [decisions]
};

/// `count` different ones of `from`, without order.
template <class T>
std::vector<T> drawn_of(std::vector<T> from, std::size_t count, scenarios::RandomStream& stream) {
    count = std::min(count, from.size());
    for (std::size_t i = 0; i < count; ++i) {
        const auto left = static_cast<std::int64_t>(from.size() - i);
        std::swap(from[i], from[i + static_cast<std::size_t>(stream.below(left))]);
    }
    from.resize(count);
    return from;
}

/// Others than the chosen one: by the network's opinion or by chance, half and half.
std::vector<int> alternatives_to(const DeviatingPolicy::Seen& seen, const ComparisonOptions& options,
                                 scenarios::RandomStream& stream) {
    std::vector<int> others;
    for (int i = 0; i < static_cast<int>(seen.logits.size()); ++i) {
        if (i != seen.chosen) others.push_back(i);
    }
    std::vector<int> result;
    while (!others.empty() && static_cast<int>(result.size()) < options.alternatives) {
        std::size_t pick = 0;
        if (stream.uniform() < 0.5) {
            pick = static_cast<std::size_t>(stream.below(static_cast<std::int64_t>(others.size())));
        } else {  // the highest of logits with Gumbel noise is a draw from their softmax
            double highest = 0.0;
            for (std::size_t i = 0; i < others.size(); ++i) {
                const double noise = -portable_log(std::max(stream.exponential(), 1e-300));
                const double score = seen.logits[static_cast<std::size_t>(others[i])] / options.spread + noise;
                if (i == 0 || score > highest) {
                    highest = score;
                    pick = i;
                }
            }
        }
        result.push_back(others[pick]);
        others.erase(others.begin() + static_cast<std::ptrdiff_t>(pick));
    }
    return result;
}

}  // namespace

std::vector<Comparison> compare_choices(TrainingCluster& cluster, CandidateGenerator& generator,
                                        const TrainedPolicy& policy, const ComparisonOptions& options,
                                        scenarios::RandomStream& stream, double* goodput) {
    Scorer scorer(policy);
    const int interval = options.episode.decision_interval;
    std::vector<DeviatingPolicy::Seen> seen;
    DeviatingPolicy first(scorer, &seen, nullptr, std::nullopt);
    LossOverTime base(cluster.facts(), interval);
    const EpisodeSummary summary = run_episode(cluster, generator, first, options.episode, base);
    if (goodput) {
        *goodput = summary.wall > Duration()
                       ? static_cast<double>(summary.iterations) * (cluster.facts().healthy_iteration / summary.wall)
                       : 0.0;
    }

    std::vector<std::size_t> open;
    for (std::size_t i = 0; i < seen.size(); ++i) {
        if (seen[i].logits.size() > 1) open.push_back(i);
    }
    open = drawn_of(std::move(open), static_cast<std::size_t>(std::max(0, options.decisions)), stream);
    std::sort(open.begin(), open.end());
    std::vector<Comparison> result;
    for (const std::size_t decision : open) {
        Comparison comparison;
        comparison.features = seen[decision].features;
        comparison.chosen = seen[decision].chosen;
        for (const int candidate : alternatives_to(seen[decision], options, stream)) {
            DeviatingPolicy other(scorer, nullptr, &seen, DeviationAt{decision, candidate});
            LossOverTime branch(cluster.facts(), interval);
            run_episode(cluster, generator, other, options.episode, branch);
            const double until = std::min(base.end(), branch.end());
            comparison.tried.push_back(candidate);
            comparison.advantage.push_back(base.lost(decision, until, options.discount) -
                                           branch.lost(decision, until, options.discount));
        }
        if (!comparison.tried.empty()) result.push_back(std::move(comparison));
    }
    return result;
}

ComparisonTerms comparison_terms(std::span<const double> logits, const Comparison& comparison,
                                 std::span<double> by_logits) {
    constexpr double kMost = 20.0;
    constexpr double kEntropy = 0.05;  // intervals: or a few lucky draws settle the matter
    std::vector<std::size_t> candidates = {static_cast<std::size_t>(comparison.chosen)};
    std::vector<double> advantage = {0.0};
    for (std::size_t i = 0; i < comparison.tried.size(); ++i) {
        candidates.push_back(static_cast<std::size_t>(comparison.tried[i]));
        advantage.push_back(std::clamp(comparison.advantage[i], -kMost, kMost));
    }
    std::vector<double> compared, probability(candidates.size()), worth(candidates.size());
    for (const std::size_t candidate : candidates) compared.push_back(logits[candidate]);
    log_softmax(compared, {}, probability);
    ComparisonTerms terms;
    double expected = 0.0;
    std::size_t best = 0;
    for (std::size_t i = 0; i < candidates.size(); ++i) {
        const double log_probability = std::max(probability[i], -700.0);
        probability[i] = portable_exp(log_probability);
        // The derivative of the entropy is that of an advantage of -log probability.
        worth[i] = advantage[i] - kEntropy * log_probability;
        expected += probability[i] * worth[i];
        terms.most = std::max(terms.most, advantage[i]);
        if (compared[i] > compared[best]) best = i;
    }
    for (std::size_t i = 0; i < candidates.size(); ++i) {
        by_logits[candidates[i]] -= probability[i] * (worth[i] - expected);
    }
    terms.reached = advantage[best];
    terms.loss = -expected;
    return terms;
}

std::string comparison_bytes(const std::vector<Comparison>& comparisons) {
    ByteWriter out;
    out.number(kComparisonFormat);
    out.number<std::uint64_t>(comparisons.size());
    for (const Comparison& comparison : comparisons) {
        out.numbers(comparison.features.global);
        out.numbers(comparison.features.candidates);
        out.numbers(comparison.features.gain);
        out.numbers(comparison.features.cost);
        out.number<std::int32_t>(comparison.chosen);
        out.numbers(comparison.tried);
        out.numbers(comparison.advantage);
    }
    return out.take();
}

std::vector<Comparison> comparisons_from_bytes(std::string_view bytes) {
    ByteReader in(bytes);
    if (in.number<std::uint32_t>() != kComparisonFormat) throw std::runtime_error("comparisons of another format");
    std::vector<Comparison> comparisons;
    const auto count = in.number<std::uint64_t>();
    for (std::uint64_t i = 0; i < count; ++i) {
        Comparison comparison;
        comparison.features.global = in.numbers<float>();
        comparison.features.candidates = in.numbers<float>();
        comparison.features.gain = in.numbers<float>();
        comparison.features.cost = in.numbers<float>();
        comparison.chosen = in.number<std::int32_t>();
        comparison.tried = in.numbers<int>();
        comparison.advantage = in.numbers<double>();
        comparisons.push_back(std::move(comparison));
    }
    if (!in.at_end()) throw std::runtime_error("comparisons with bytes after their end");
    return comparisons;
}

}  // namespace headway::policies
