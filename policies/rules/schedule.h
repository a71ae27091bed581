#pragma once

#include <optional>
#include <string>
#include <vector>

#include "policies/episode.h"
#include "policies/policy.h"

namespace headway::policies {

/// What to do in an episode whose future is known.
struct Schedule {
    struct Move {
        Duration at;  ///< time of the decision
        scenarios::Plan plan;
    };
    struct LossChoice {
        Duration at;                             ///< time of the decision
        std::optional<scenarios::Plan> restart;  ///< absent: wait for the replacement
    };
    std::vector<Move> moves;         ///< ascending
    std::vector<LossChoice> losses;  ///< ascending
    bool played = false;             ///< times are those of decisions in an episode, not of a grid
};

/// Writes down what was decided in an episode, so that it can be done again.
class ScheduleRecorder : public EpisodeSink {
  public:
    bool decided(const Decision& decision) override;
    const Schedule& schedule() const { return schedule_; }

  private:
    Schedule schedule_;
};

/// Does what a schedule says, at the decision nearest to the time it says; a schedule that was played, at that very
/// time as long as every decision comes when it did. A plan that is not offered then is taken as soon as it is; a
/// restart that is not offered gives way to the least predicted lost time.
class ScheduleFollower final : public Policy {
  public:
    explicit ScheduleFollower(Schedule schedule, std::string name = "schedule");
    std::string_view name() const override { return name_; }
    void start_episode(const ClusterFacts& facts, std::uint64_t seed) override;
    Action decide(const Observation& observation, const std::vector<Candidate>& candidates) override;
    /// The plan it is on the way to and the one after.
    std::span<const scenarios::Plan> further_plans() const override { return further_; }

  private:
    std::size_t after_a_loss(Duration now, const std::vector<Candidate>& candidates);
    void offer_next();

    std::string name_;
    Schedule schedule_;
    std::size_t next_move_ = 0;
    std::size_t next_loss_ = 0;
    std::optional<scenarios::Plan> target_;
    Duration decided_at_;
    bool as_played_ = false;  ///< all that was to be done so far came at its very time
    std::vector<scenarios::Plan> further_;
};

}  // namespace headway::policies
