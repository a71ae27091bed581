#include "sim/telemetry/telemetry.h"

#include <algorithm>
#include <utility>

#include "scenarios/language/random.h"

namespace headway::sim {
namespace {

constexpr double kLowestFactor = 0.1;

}  // namespace

Telemetry::Telemetry(const scenarios::Sensors& sensors) : sensors_(sensors) {}

void Telemetry::start(std::uint64_t seed) {
    seed_ = seed;
    passes_ = 0;
    first_plan_ = true;
    under_way_.clear();
}

void Telemetry::plan_changed() {
    first_plan_ = false;
    under_way_.clear();
}

void Telemetry::disturb(policies::Measurements& measured) const {
    if (sensors_.time_noise > 0.0) {
        scenarios::RandomStream stream(seed_, "time sensors", passes_);
        const auto factor = [&] { return std::max(kLowestFactor, 1.0 + sensors_.time_noise * stream.normal()); };
        for (policies::RankMeasurement& rank : measured.ranks) {
            rank.compute = rank.compute.scaled(factor());
            rank.exposed_communication = rank.exposed_communication.scaled(factor());
            rank.idle = rank.idle.scaled(factor());
        }
        for (policies::GroupMeasurement& group : measured.groups) group.bus_bytes_per_second *= factor();
    }
    if (sensors_.temperature_noise > 0.0) {
        scenarios::RandomStream stream(seed_, "temperature sensors", passes_);
        for (policies::RankMeasurement& rank : measured.ranks)
            rank.temperature_c += sensors_.temperature_noise * stream.normal();
    }
}

void Telemetry::pass(policies::Measurements& measured) {
    disturb(measured);
    ++passes_;
    const auto delay = static_cast<std::size_t>(std::max(0, sensors_.delay_intervals));
    if (delay == 0) return;
    under_way_.push_back({std::move(measured.ranks), std::move(measured.groups)});
    measured.ranks.clear();
    measured.groups.clear();
    if (under_way_.size() > delay + 1) under_way_.pop_front();
    if (under_way_.size() <= delay && !first_plan_) return;
    measured.ranks = under_way_.front().ranks;
    measured.groups = under_way_.front().groups;
}

}  // namespace headway::sim
