#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "policies/action.h"
#include "policies/observation.h"
#include "policies/training_cluster.h"

namespace headway::policies {

/// Changes whenever a feature comes, goes, moves or is computed otherwise: a policy is bound to the set it was trained
/// on.
inline constexpr int kFeatureSet = 1;

struct FeatureName {
    std::string_view name;
    bool normalised = true;  ///< false: a flag, which the network takes as it is
};

/// [columns of Features::global] and [columns of Features::candidates].
std::span<const FeatureName> global_features();
std::span<const FeatureName> candidate_features();

/// What the network is shown of one decision. Ratios, shares and logarithms of ratios only, so that one network serves
/// any cluster, model and number of candidates. One feature alone knows what a second is: "minutes_of_interval", the
/// logarithm of the decision interval over one minute, because how long a fault lasts is a matter of minutes and not
/// of iterations.
struct Features {
    std::vector<float> global;      ///< [global_features().size()]
    std::vector<float> candidates;  ///< [count() x candidate_features().size()], candidate by candidate
    /// [count()] Speed under the candidate minus speed under candidate 0, each over the healthy initial plan's: what
    /// it earns per unit of time.
    std::vector<float> gain;
    /// [count()] Work that its pause costs beyond that of candidate 0, in decision intervals of the healthy plan: over
    /// H intervals the candidate does gain x H - cost more than candidate 0.
    std::vector<float> cost;

    std::size_t count() const { return gain.size(); }
};

/// How long something has been so, decision by decision.
class Spell {
  public:
    void see(bool so);
    double age() const { return static_cast<double>(age_); }        ///< decisions in a row, this one included
    double spells() const { return static_cast<double>(spells_); }  ///< that are over
    double mean_length() const {
        return spells_ > 0 ? static_cast<double>(total_) / static_cast<double>(spells_) : 0.0;
    }

  private:
    std::int64_t age_ = 0;
    std::int64_t spells_ = 0;
    std::int64_t total_ = 0;
};

/// Builds features, decision by decision of one episode, and remembers what trends need. What was decided it sees from
/// the next observation's plan, so that it does not matter who decided.
class FeatureBuilder {
  public:
    void start_episode(const ClusterFacts& facts);
    /// Valid until the next call. `candidates` is not empty.
    const Features& build(const Observation& observation, const std::vector<Candidate>& candidates);

  private:
    struct Left {
        std::int64_t decision = 0;  ///< when the plan was left
        double miss = 0.0;          ///< log of measured over predicted iteration time while it was in use
    };
    struct GpuFacts {
        double boost_clock_mhz;
        double max_temperature_c;
        double power_limit_w;
        int node;
    };

    void follow(const Observation& observation, const std::vector<Candidate>& candidates);
    void write_state();
    void write_ranks(const Observation& observation);
    void write_groups(const Observation& observation);
    void write_plan(const Observation& observation);
    void write_choice(const Observation& observation, const std::vector<Candidate>& candidates);
    void write_candidates(const Observation& observation, const std::vector<Candidate>& candidates);
    void remember(const std::vector<Candidate>& candidates);
    void put(double value);

    ClusterFacts facts_;
    std::vector<GpuFacts> gpus_;
    double slowest_type_ = 1.0;       ///< peak of the slowest GPU type over that of the fastest
    std::uint64_t initial_plan_ = 0;  ///< plans are known by their hash

    std::int64_t decision_ = 0;
    Duration previous_now_;
    std::uint64_t plan_ = 0;
    scenarios::Layout layout_;
    std::int64_t plan_since_ = 0;
    bool just_switched_ = false;
    double iteration_s_ = 0.0;
    double healthy_s_ = 0.0;
    double iterations_per_interval_ = 0.0;
    double slowdown_ = 0.0;   ///< log of iteration time over healthy
    double predicted_ = 0.0;  ///< the same, as predicted for the plan in use when it was chosen
    bool has_prediction_ = false;
    double miss_ = 0.0;
    double fast_mean_ = 0.0;
    double slow_mean_ = 0.0;
    double best_slowdown_ = 0.0;
    double best_exposed_ = 1.0;
    double best_gain_ = 0.0;
    double gain_mean_ = 0.0;
    std::array<double, 3> best_bandwidth_{};  ///< by kind of group: best median seen under this layout
    std::array<double, 12> gain_of_kind_{};   ///< by kind of candidate: running mean of its best gain
    Spell slow_, compute_slow_, link_slow_, throttled_, gain_offered_;
    std::vector<double> slowdowns_;          ///< latest last
    std::vector<double> headroom_;           ///< least, latest last
    std::vector<std::int64_t> switched_at_;  ///< decisions at which another plan was found in use
    std::unordered_map<std::uint64_t, Left> left_;
    std::unordered_map<std::uint64_t, double> offered_;  ///< plan: predicted log of iteration time over healthy
    std::vector<float> score_of_gpu_;                    ///< relative; 1 where nothing was measured
    std::vector<std::uint8_t> gpu_used_;
    std::vector<double> scratch_;
    Features features_;
};

}  // namespace headway::policies
