#include "policies/rules/schedule.h"

#include <utility>

#include "policies/rules/judgement.h"

namespace headway::policies {

bool ScheduleRecorder::decided(const Decision& decision) {
    schedule_.played = true;
    const Candidate& chosen = decision.candidates[decision.chosen.candidate];
    if (after_loss(decision.candidates)) {
        Schedule::LossChoice& choice = schedule_.losses.emplace_back();
        choice.at = decision.observation.now;
        if (chosen.kind == Candidate::Kind::kRestart) choice.restart = chosen.plan;
    } else if (chosen.plan != decision.observation.plan) {
        schedule_.moves.push_back({decision.observation.now, chosen.plan});
    }
    return true;
}

ScheduleFollower::ScheduleFollower(Schedule schedule, std::string name)
    : name_(std::move(name)), schedule_(std::move(schedule)) {}

void ScheduleFollower::start_episode(const ClusterFacts&, std::uint64_t) {
    next_move_ = 0;
    next_loss_ = 0;
    target_.reset();
    decided_at_ = Duration();
    as_played_ = schedule_.played;
    offer_next();
}

void ScheduleFollower::offer_next() {
    further_.clear();
    if (target_) further_.push_back(*target_);
    if (next_move_ < schedule_.moves.size()) further_.push_back(schedule_.moves[next_move_].plan);
    if (next_loss_ < schedule_.losses.size() && schedule_.losses[next_loss_].restart) {
        further_.push_back(*schedule_.losses[next_loss_].restart);
    }
}

std::size_t ScheduleFollower::after_a_loss(Duration now, const std::vector<Candidate>& candidates) {
    // Losses come when they come, whatever the plan: the choice nearest in time is meant.
    const auto& losses = schedule_.losses;
    const auto distance = [&](std::size_t i) { return losses[i].at > now ? losses[i].at - now : now - losses[i].at; };
    while (next_loss_ + 1 < losses.size() && distance(next_loss_ + 1) < distance(next_loss_)) ++next_loss_;
    if (next_loss_ >= losses.size()) return least_lost_time(candidates);
    if (losses[next_loss_].at != now) as_played_ = false;
    const auto& restart = losses[next_loss_++].restart;
    target_.reset();
    if (!restart) return 0;
    for (std::size_t i = 1; i < candidates.size(); ++i) {
        if (candidates[i].plan == *restart) return i;
    }
    return least_lost_time(candidates);
}

Action ScheduleFollower::decide(const Observation& observation, const std::vector<Candidate>& candidates) {
    // The interval behind says how long the next one will be, unless a recovery or a switch stretched it.
    if (next_move_ < schedule_.moves.size() && schedule_.moves[next_move_].at < observation.now) as_played_ = false;
    const Duration slack = as_played_ ? Duration() : Duration::nanoseconds((observation.now - decided_at_).ns() / 2);
    decided_at_ = observation.now;
    std::size_t chosen = 0;
    if (after_loss(candidates)) {
        chosen = after_a_loss(observation.now, candidates);
    } else {
        while (next_move_ < schedule_.moves.size() && schedule_.moves[next_move_].at <= observation.now + slack) {
            target_ = schedule_.moves[next_move_++].plan;
        }
        if (target_ && *target_ == observation.plan) target_.reset();
        for (std::size_t i = 1; target_ && i < candidates.size(); ++i) {
            if (candidates[i].plan == *target_) chosen = i;
        }
        if (chosen != 0) target_.reset();
    }
    offer_next();
    return {chosen};
}

}  // namespace headway::policies
