// Whose fault it was that an iteration of a trajectory took longer than healthy.
#include <algorithm>
#include <bit>
#include <cmath>

#include "sim/run/time_shares.h"
#include "sim/run/trajectory.h"

namespace headway::sim {
namespace {

constexpr double kUsualSwing = 0.002;  // of the pace of a GPU that a warm facility slows down anyway
constexpr double kWeightGrid = 256.0;  // paces, so that weights can be used again while clocks drift

constexpr std::size_t kPartsOfIteration = 8;  // further ones are left to the first

bool is_drawn(const scenarios::Cause& cause) {
    return std::holds_alternative<scenarios::Jitter>(cause) ||
           std::holds_alternative<scenarios::SequenceLengths>(cause);
}

std::size_t cause_index(int i) {
    return static_cast<std::size_t>(i);
}

}  // namespace

std::vector<int> Trajectory::causes_at(Duration at, bool drawn) const {
    std::set<int> causes(lingering_);
    for (const int cause : timeline_.active(at)) causes.insert(cause);
    std::erase_if(causes,
                  [&](int cause) { return is_drawn(scenario_.disturbances[cause_index(cause)].cause) != drawn; });
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
            const std::vector<double>& healthy = current_->pace;
            const auto recovered = [&](int gpu) {
                const double usual = healthy[cause_index(gpu)];
                return thermal_pace[cause_index(gpu)] >= (usual < 1.0 ? usual - kUsualSwing : 1.0);
            };
            if (std::all_of(gpus.begin(), gpus.end(), recovered)) lingering_.erase(index);
        }
    }
}

void Trajectory::attribute(const IterationTimes& times, Duration start, const std::vector<double>& thermal_pace,
                           std::vector<std::int64_t>& costs_ns) {
    std::int64_t excess = times.duration.ns() - current_->healthy.duration.ns();
    if (excess <= 0) return;
    excess -= attribute_draws(*current_->model, excess, times, start, thermal_pace, costs_ns);

    // Parts of the iteration between changes; each bears what it would make a whole iteration longer, by its length.
    struct Part {
        Duration at;
        std::vector<int> causes;
        double weight = 0.0;
    };
    std::vector<double> rough = thermal_pace;
    std::uint64_t hash = 0;
    for (double& pace : rough) {
        pace = std::round(pace * kWeightGrid) / kWeightGrid;
        hash = (hash ^ std::bit_cast<std::uint64_t>(pace)) * 0x100000001b3ULL + 1;
    }
    const auto time_at = [&](Duration at, const std::vector<int>& without, const std::vector<double>& pace) {
        const ClusterState state = state_with(timeline_.environment(at, without), pace);
        return current_->model->steady(state, &state).duration;
    };
    std::vector<Part> parts;
    double sum = 0.0;
    for (Duration at = start; at < now_ && parts.size() < kPartsOfIteration;) {
        const Duration next = std::min(timeline_.next_change(at), now_);
        Part part{at, causes_at(at, false), 0.0};
        if (!part.causes.empty()) {
            const bool only = next - at == times.duration;
            part.weight =
                only ? 1.0
                     : (next - at).s() * std::max(1e-9, (time_at(at, {}, rough) - current_->healthy.duration).s());
            sum += part.weight;
            parts.push_back(std::move(part));
        }
        at = next;
    }
    double before = 0.0;
    for (std::size_t i = 0; i < parts.size(); ++i) {
        const Part& part = parts[i];
        const double after = i + 1 == parts.size() ? 1.0 : before + part.weight / sum;
        const std::int64_t share =
            std::llround(static_cast<double>(excess) * after) - std::llround(static_cast<double>(excess) * before);
        before = after;
        attribution_.split(
            share, part.causes, {timeline_.fingerprint(part.at), hash, current_->number},
            [&](int cause) {
                std::vector<double> pace = rough;
                if (cause >= 0 && Timeline::thermal(scenario_.disturbances[cause_index(cause)].cause))
                    for (const int gpu : timeline_.gpus_of(cause))
                        pace[cause_index(gpu)] = std::max(pace[cause_index(gpu)], current_->pace[cause_index(gpu)]);
                return time_at(part.at, cause < 0 ? std::vector<int>{} : std::vector<int>{cause}, pace);
            },
            costs_ns);
    }
}

std::int64_t Trajectory::attribute_draws(PlanModel& model, std::int64_t excess_ns, const IterationTimes& times,
                                         Duration start, const std::vector<double>& thermal_pace,
                                         std::vector<std::int64_t>& costs_ns) {
    // What is drawn anew for every iteration costs the difference to the iteration without the draw.
    const std::vector<int> drawn = causes_at(start, true);
    if (drawn.empty()) return 0;
    std::int64_t share = excess_ns;
    if (!causes_at(start, false).empty()) {
        const Duration without = model.steady(state_with(timeline_.environment(start), thermal_pace)).duration;
        share = std::clamp<std::int64_t>((times.duration - without).ns(), 0, excess_ns);
    }
    attribution_.split(
        share, drawn, {},
        [&](int cause) {
            ClusterState state = state_with(
                timeline_.environment(start, cause < 0 ? std::vector<int>{} : std::vector<int>{cause}), thermal_pace);
            draw(state, model.plan(), drawn_ - 1);
            return model.longest_path(state);
        },
        costs_ns);
    return share;
}

void Trajectory::report(const IterationTimes& times, Duration start, const std::vector<double>& thermal_pace) {
    if (reporter_.sink() == nullptr) return;
    scenarios::IterationEvent event;
    event.index = completed_;
    event.start_ns = start.ns();
    event.duration_ns = times.duration.ns();
    event.repeats = completed_ < furthest_;
    event.shares = shares_of(current_->shares, times.duration.ns());
    event.disturbance_cost_ns.assign(scenario_.disturbances.size(), 0);
    attribute(times, start, thermal_pace, event.disturbance_cost_ns);
    reporter_.sink()->iteration(event);
    if (site_->options.operations && reporter_.sink()->wants_operations())
        reporter_.sink()->operations(event.index, event.start_ns, current_->model->timeline(last_states_));
    track_lingering(thermal_pace);
}

}  // namespace headway::sim
