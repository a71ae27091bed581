// Whose fault it was that an iteration of a trajectory took longer than healthy.
#include <algorithm>
#include <bit>
#include <cmath>

#include "sim/run/trajectory.h"

namespace headway::sim {
namespace {

constexpr double kWeightGrid = 256.0;  // paces, so that weights can be used again while clocks drift

std::size_t cause_index(int i) { return static_cast<std::size_t>(i); }

}  // namespace

std::vector<int> Trajectory::causes_between(Duration start, Duration end) {
    std::set<int> causes(lingering_);
    for (Duration at = start; at < end; at = timeline_.next_change(at))
        for (const int cause : timeline_.active(at)) causes.insert(cause);
    return {causes.begin(), causes.end()};
}

void Trajectory::track_lingering(const std::vector<double>& thermal_pace) {
    for (std::size_t i = 0; i < scenario_.disturbances.size(); ++i) {
        const scenarios::Disturbance& d = scenario_.disturbances[i];
        if (!Timeline::thermal(d.cause) || d.start > now_) continue;
        const int index = static_cast<int>(i);
        if (const auto end = timeline_.end_of(index); !end || *end > now_) {
            lingering_.insert(index);
        } else if (lingering_.count(index) > 0) {
            const std::vector<int> gpus = timeline_.gpus_of(index);
            if (std::all_of(gpus.begin(), gpus.end(), [&](int gpu) { return thermal_pace[cause_index(gpu)] >= 1.0; }))
                lingering_.erase(index);
        }
    }
}

void Trajectory::attribute(Prepared& prepared, const IterationTimes& times, Duration start,
                           const std::vector<double>& thermal_pace, std::vector<std::int64_t>& costs_ns) {
    std::int64_t excess = times.duration.ns() - prepared.healthy.duration.ns();
    if (excess <= 0) return;
    // What is drawn anew for every iteration first: its cost is the difference to the iteration without the draw.
    std::vector<int> drawn, steady;
    for (const int cause : causes_between(start, now_)) {
        const scenarios::Cause& c = scenario_.disturbances[cause_index(cause)].cause;
        const bool each_time = std::holds_alternative<scenarios::Jitter>(c) || std::holds_alternative<scenarios::SequenceLengths>(c);
        (each_time ? drawn : steady).push_back(cause);
    }
    PlanModel& model = *prepared.model;
    if (!drawn.empty()) {
        std::int64_t of_draws = excess;
        if (!steady.empty()) {
            const ClusterState base = state_with(timeline_.environment(start), thermal_pace);
            const Duration without = model.steady(base, fleet_.settled() ? nullptr : &base).duration;
            of_draws = std::clamp<std::int64_t>((times.duration - without).ns(), 0, excess);
        }
        attribution_.split(
            of_draws, drawn, {},
            [&](int cause) {
                ClusterState state = state_with(timeline_.environment(start, cause < 0 ? std::vector<int>{} : std::vector<int>{cause}), thermal_pace);
                draw(state, model.plan(), drawn_ - 1);
                return model.longest_path(state);
            },
            costs_ns);
        excess -= of_draws;
    }
    std::vector<double> rough = thermal_pace;
    std::uint64_t hash = 0;
    for (double& pace : rough) {
        pace = std::round(pace * kWeightGrid) / kWeightGrid;
        hash = (hash ^ std::bit_cast<std::uint64_t>(pace)) * 0x100000001b3ULL + 1;
    }
    attribution_.split(
        excess, steady, {static_cast<std::uint64_t>(environment_since_.ns()), hash, prepared.number},
        [&](int cause) {
            std::vector<double> pace = rough;
            if (cause >= 0 && Timeline::thermal(scenario_.disturbances[cause_index(cause)].cause))
                for (const int gpu : timeline_.gpus_of(cause)) pace[cause_index(gpu)] = 1.0;
            const ClusterState state =
                state_with(timeline_.environment(start, cause < 0 ? std::vector<int>{} : std::vector<int>{cause}), pace);
            return model.steady(state, &state).duration;
        },
        costs_ns);
}

}  // namespace headway::sim
