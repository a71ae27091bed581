#include <limits>

#include "policies/learning/feature_math.h"
#include "policies/learning/features.h"

/// Features of ranks, groups and plan: the part of FeatureBuilder that pools over the cluster.
namespace headway::policies {

namespace {

constexpr double kSlowRank = 0.92;
constexpr double kSlowLink = -0.15;  // log: down by about 14 %
constexpr std::uint32_t kPowerBits = 0x4;
constexpr std::uint32_t kHeatBits = 0x20;
constexpr std::uint32_t kHardwareBits = 0x8 | 0x40 | 0x80;
constexpr double kHeadroomScale = 20.0;  // kelvins

/// Running sums over the ranks.
struct Pool {
    double sum = 0.0;
    double least = std::numeric_limits<double>::infinity();
    double most = -std::numeric_limits<double>::infinity();
    void add(double value) {
        sum += value;
        least = std::min(least, value);
        most = std::max(most, value);
    }
};

}  // namespace

void FeatureBuilder::write_ranks(const Observation& observation) {
    const std::vector<RankObservation>& ranks = observation.ranks;
    const auto count = static_cast<double>(ranks.size());
    score_of_gpu_.assign(gpus_.size(), 1.0f);
    if (ranks.empty()) {  // a loss before anything was measured: scores 1, nothing throttles
        compute_slow_.see(false);
        throttled_.see(false);
        for (int i = 0; i < 7; ++i) put(1.0);
        for (int i = 0; i < 5; ++i) put(0.0);
        for (int i = 0; i < 3; ++i) put(1.0);
        for (int i = 0; i < 19; ++i) put(0.0);
        put(1.0);
        return;
    }
    Pool relative, individual, clock, headroom, power, exposed, idle, compute, memory;
    double slow = 0.0, throttle_power = 0.0, throttle_heat = 0.0, throttle_hardware = 0.0;
    std::size_t slowest = 0;
    const auto gpu_of = [&](std::size_t rank) {
        const auto gpu = static_cast<std::size_t>(ranks[rank].measured.gpu);
        return gpu < gpus_.size() ? gpus_[gpu] : GpuFacts{0.0, 0.0, 0.0, -1};
    };
    const auto clock_of = [&](std::size_t rank) {
        return share(ranks[rank].measured.sm_clock_mhz, gpu_of(rank).boost_clock_mhz, 1.0);
    };
    const auto headroom_of = [&](std::size_t rank) {
        return (gpu_of(rank).max_temperature_c - ranks[rank].measured.temperature_c) / kHeadroomScale;
    };
    const auto score_of = [&](std::size_t rank) {
        return std::min(ranks[rank].relative_score, ranks[rank].individual_score);
    };
    for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
        const RankMeasurement& measured = ranks[rank].measured;
        const GpuFacts gpu = gpu_of(rank);
        relative.add(ranks[rank].relative_score);
        individual.add(ranks[rank].individual_score);
        clock.add(clock_of(rank));
        headroom.add(headroom_of(rank));
        power.add(share(measured.power_w, gpu.power_limit_w));
        exposed.add(share(measured.exposed_communication.s(), iteration_s_));
        idle.add(share(measured.idle.s(), iteration_s_));
        compute.add(share(measured.compute.s(), iteration_s_));
        if (static_cast<std::size_t>(measured.gpu) < gpus_.size()) {
            score_of_gpu_[static_cast<std::size_t>(measured.gpu)] = static_cast<float>(score_of(rank));
            const double capacity = static_cast<double>(facts_.cluster.gpu_type(measured.gpu).memory.count());
            memory.add(share(static_cast<double>(measured.memory_used_bytes), capacity));
        }
        slow += score_of(rank) < kSlowRank ? 1.0 : 0.0;
        throttle_power += (measured.throttle_reasons & kPowerBits) ? 1.0 : 0.0;
        throttle_heat += (measured.throttle_reasons & kHeatBits) ? 1.0 : 0.0;
        throttle_hardware += (measured.throttle_reasons & kHardwareBits) ? 1.0 : 0.0;
        if (score_of(rank) < score_of(slowest)) slowest = rank;
    }
    double slow_near = 0.0;
    for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
        if (score_of(rank) < kSlowRank && gpu_of(rank).node == gpu_of(slowest).node) slow_near += 1.0;
    }
    scratch_.clear();
    for (const RankObservation& rank : ranks) scratch_.push_back(rank.relative_score);
    const double relative_low = quantile_of(scratch_, 0.05);
    const double relative_quarter = quantile_of(scratch_, 0.25);
    scratch_.clear();
    for (const RankObservation& rank : ranks) scratch_.push_back(rank.individual_score);
    const double individual_quarter = quantile_of(scratch_, 0.25);
    compute_slow_.see(slow > 0.0);
    throttled_.see(throttle_heat + throttle_hardware > 0.0);
    headroom_.push_back(headroom.least);
    if (headroom_.size() > 4) headroom_.erase(headroom_.begin());
    best_exposed_ = std::min(best_exposed_, exposed.sum / count);
    const std::uint32_t reasons = ranks[slowest].measured.throttle_reasons;

    put(relative.least);
    put(relative_low);
    put(relative_quarter);
    put(relative.sum / count);
    put(individual.least);
    put(individual_quarter);
    put(individual.sum / count);
    put(slow / count);
    put(share(slow_near, slow));
    put(signed_log(compute_slow_.age()));
    put(signed_log(compute_slow_.spells()));
    put(signed_log(compute_slow_.mean_length()));
    put(clock.least);
    put(clock.sum / count);
    put(clock_of(slowest));
    put(headroom.least);
    put(headroom.sum / count);
    put(headroom_of(slowest));
    put(headroom_.back() - headroom_.front());
    put(throttle_power / count);
    put(throttle_heat / count);
    put(throttle_hardware / count);
    put((reasons & kPowerBits) ? 1.0 : 0.0);
    put((reasons & kHeatBits) ? 1.0 : 0.0);
    put((reasons & kHardwareBits) ? 1.0 : 0.0);
    put(signed_log(throttled_.age()));
    put(power.sum / count);
    put(exposed.sum / count);
    put(exposed.most);
    put(exposed.sum / count - best_exposed_);
    put(idle.sum / count);
    put(idle.least);
    put(compute.most);
    put(std::max(0.0, memory.most));
    put(0.0);
}

void FeatureBuilder::write_groups(const Observation& observation) {
    std::array<double, 3> worst{};
    std::array<double, 3> median{};
    for (std::size_t kind = 0; kind < 3; ++kind) {
        scratch_.clear();
        for (const GroupMeasurement& group : observation.groups) {
            if (static_cast<std::size_t>(group.kind) == kind && group.bus_bytes_per_second > 0.0) {
                scratch_.push_back(group.bus_bytes_per_second);
            }
        }
        if (scratch_.empty()) continue;
        const double middle = quantile_of(scratch_, 0.5);
        best_bandwidth_[kind] = std::max(best_bandwidth_[kind], middle);
        worst[kind] = log_ratio(*std::min_element(scratch_.begin(), scratch_.end()), middle);
        median[kind] = log_ratio(middle, best_bandwidth_[kind]);
    }
    bool slow = false;
    for (std::size_t kind = 0; kind < 3; ++kind) slow = slow || worst[kind] + median[kind] < kSlowLink;
    link_slow_.see(slow);
    for (const double value : worst) put(value);
    for (const double value : median) put(value);
    put(signed_log(link_slow_.age()));
    put(signed_log(link_slow_.spells()));
    put(signed_log(link_slow_.mean_length()));
}

void FeatureBuilder::write_plan(const Observation& observation) {
    const scenarios::Plan& plan = observation.plan;
    const scenarios::Layout& layout = plan.layout;
    const auto gpus = static_cast<double>(gpus_.size());
    const auto unavailable = static_cast<double>(observation.unavailable_gpus.size());
    put(observation.loss ? 1.0 : 0.0);
    put(plan_ == initial_plan_ ? 1.0 : 0.0);
    put(share(unavailable, gpus));
    put(std::max(0.0, share(gpus - unavailable - static_cast<double>(plan.gpu_of_rank.size()), gpus)));
    put(log_ratio(layout.world_size(), 64.0) / 2.0);
    put(log_ratio(layout.tensor, 1.0));
    put(log_ratio(layout.pipeline, 1.0));
    put(log_ratio(layout.data, 1.0));
    double micro_batches = 0.0;
    for (const int share_of_replica : plan.micro_batches_of_replica) micro_batches += share_of_replica;
    put(log_ratio(micro_batches, static_cast<double>(layout.data) * layout.pipeline));
    put(imbalance(plan.micro_batches_of_replica.data(), plan.micro_batches_of_replica.size()));
    put(imbalance(plan.layers_of_cell.data(), plan.layers_of_cell.size()));
    put(slowest_type_);
}

}  // namespace headway::policies
