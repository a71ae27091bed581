#include "backend/slowdown/slowed_pace.h"

#include <time.h>

#include <algorithm>
#include <cerrno>
#include <cmath>

#include "scenarios/language/random.h"

namespace headway::backend {

using scenarios::Duration;

namespace {

/// Log-normal with mean 1 and this coefficient of variation: the simulator's draws, from the same streams.
std::vector<double> pace_draws(scenarios::RandomStream stream, double variation, std::size_t count) {
    const double variance = scenarios::portable_log(1.0 + variation * variation);
    const double deviation = std::sqrt(variance);
    std::vector<double> values(count);
    for (double& value : values) value = deviation * stream.normal() - 0.5 * variance;
    scenarios::portable_exp(values);
    return values;
}

}  // namespace

SlowedPace::SlowedPace(const scenarios::Job& job, const scenarios::Cluster& cluster, const scenarios::Plan& plan,
                       int rank, std::optional<double> factor, const PhysicalDisturbances& disturbances,
                       const EpisodeClock& clock)
    : costs_(scenarios::iteration_costs(job, cluster, plan), cluster, plan, rank),
      factor_(factor),
      disturbances_(disturbances),
      clock_(clock),
      gpu_(plan.gpu_of_rank[static_cast<std::size_t>(rank)]),
      rank_(rank),
      ranks_(plan.gpu_of_rank.size()) {
    const int replica = rank / plan.layout.ranks_per_worker() % plan.layout.data;
    for (int r = 0; r < plan.layout.data; ++r) {
        const auto many = static_cast<std::size_t>(plan.micro_batches_of_replica[static_cast<std::size_t>(r)]);
        if (r < replica) first_micro_batch_ += many;
        micro_batches_ += many;
    }
}

void SlowedPace::begin_iteration(std::uint64_t seed, std::int64_t execution) {
    const Duration now = clock_.now();
    const auto index = static_cast<std::uint64_t>(execution);
    jitter_ = 1.0;
    sequence_.clear();
    if (!factor_) return;
    if (const double spread = disturbances_.jitter_spread(now); spread > 0.0)
        jitter_ = pace_draws({seed, "jitter", index}, spread, ranks_)[static_cast<std::size_t>(rank_)];
    if (const double spread = disturbances_.sequence_spread(now); spread > 0.0) {
        sequence_ = pace_draws({seed, "sequence lengths", index}, spread, micro_batches_);
        double sum = 0.0;
        for (const double factor : sequence_) sum += factor;
        for (double& factor : sequence_) factor *= static_cast<double>(micro_batches_) / sum;
    }
}

Duration SlowedPace::due(const scenarios::Instruction& instruction, Duration spent) const {
    scenarios::GpuPace pace = disturbances_.gpu(gpu_, clock_.now());
    if (!factor_) return spent.scaled(1.0 / std::min(pace.compute, pace.memory));
    pace.compute /= jitter_;
    pace.memory /= jitter_;
    Duration declared = costs_.of(instruction).at(pace).scaled(*factor_);
    if (!sequence_.empty() && scenarios::is_compute(instruction.op))
        declared = declared.scaled(sequence_[first_micro_batch_ + static_cast<std::size_t>(instruction.micro_batch)]);
    return declared;
}

void SlowedPace::finish(const scenarios::Instruction& instruction, Duration spent) {
    ++overrun_.operations;
    const Duration declared = due(instruction, spent);
    const Duration lacking = declared - spent;
    if (lacking < Duration()) {
        ++overrun_.late;
        overrun_.time += Duration() - lacking;
        owed_ = std::min(owed_ - lacking, declared);
        return;
    }
    pass(lacking);
}

void SlowedPace::pass(Duration time) {
    const Duration shortened = time - std::min(owed_, time);
    owed_ -= time - shortened;
    if (shortened <= Duration()) return;
    timespec until{};
    ::clock_gettime(CLOCK_MONOTONIC, &until);
    const std::int64_t begin = until.tv_sec * 1'000'000'000 + until.tv_nsec;
    const std::int64_t end = begin + shortened.ns();
    until.tv_sec = end / 1'000'000'000;
    until.tv_nsec = end % 1'000'000'000;
    while (::clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, nullptr) == EINTR) {
    }
    ::clock_gettime(CLOCK_MONOTONIC, &until);
    owed_ += Duration::nanoseconds(until.tv_sec * 1'000'000'000 + until.tv_nsec - end);
}

SlowedPace::Overrun SlowedPace::take_overrun() {
    const Overrun taken = overrun_;
    overrun_ = {};
    return taken;
}

}  // namespace headway::backend
