#include "policies/rules/plan_progress.h"

#include <algorithm>
#include <stdexcept>

namespace headway::policies {

std::optional<PlanProgress> PlanProgress::measure(TrainingCluster& world, std::uint64_t seed,
                                                  const scenarios::Plan& plan, int interval, Duration end) {
    PlanProgress progress;
    world.start_episode(seed);
    try {
        world.move_to(plan);
    } catch (const std::invalid_argument&) {
        return std::nullopt;  // it needs a part that is gone from the first moment on
    }
    double useful = 0.0;
    progress.samples_.push_back({world.now(), 0.0});
    while (world.now() < end) {
        const Duration begun = world.now();
        const Measurements measured = world.run(plan, interval);
        Duration trained = begun;
        for (const Duration iteration : measured.iterations) trained += iteration;
        useful += static_cast<double>(measured.iterations.size());
        if (!measured.iterations.empty()) progress.samples_.push_back({std::min(trained, world.now()), useful});
        if (measured.ended) break;
        if (measured.loss) {
            Outage outage{std::min(trained, world.now()), world.now(), {}, 0.0};
            const RecoveryOutcome outcome = world.recover({Recovery::Kind::kWaitForReplacement, {}});
            outage.resumed = world.now();
            outage.iterations_lost = outcome.iterations_lost;
            useful -= outage.iterations_lost;
            progress.samples_.push_back({outage.broken_off, useful});
            progress.samples_.push_back({outage.resumed, useful});
            progress.outages_.push_back(outage);
            if (outcome.plan != plan) break;
        } else if (measured.iterations.empty()) {
            break;
        } else if (world.now() > trained) {
            progress.samples_.push_back({world.now(), useful});  // a checkpoint was saved
        }
    }
    if (progress.samples_.size() < 2) return std::nullopt;
    return progress;
}

double PlanProgress::iterations_at(Duration time) const {
    const auto after = std::upper_bound(samples_.begin() + 1, samples_.end() - 1, time,
                                        [](Duration t, const Sample& sample) { return t < sample.time; });
    const Sample& b = *after;
    const Sample& a = *(after - 1);
    if (b.time <= a.time) return b.iterations;
    return a.iterations + (b.iterations - a.iterations) * ((time - a.time) / (b.time - a.time));
}

Duration PlanProgress::iteration_at(Duration time) const {
    auto after = std::upper_bound(samples_.begin() + 1, samples_.end() - 1, time,
                                  [](Duration t, const Sample& sample) { return t < sample.time; });
    // Pauses train nothing: the last stretch before them tells.
    while (after > samples_.begin() + 1 && after->iterations <= (after - 1)->iterations) --after;
    const double trained = after->iterations - (after - 1)->iterations;
    return trained > 0.0 ? (after->time - (after - 1)->time).scaled(1.0 / trained) : Duration();
}

const PlanProgress::Outage* PlanProgress::outage_at(Duration time) const {
    for (const Outage& outage : outages_) {
        if (outage.broken_off <= time && time < outage.resumed) return &outage;
    }
    return nullptr;
}

const PlanProgress::Outage* PlanProgress::outage_between(Duration from, Duration to) const {
    for (const Outage& outage : outages_) {
        if (outage.broken_off >= from && outage.broken_off < to) return &outage;
    }
    return nullptr;
}

}  // namespace headway::policies
