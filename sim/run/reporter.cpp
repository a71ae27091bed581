#include "sim/run/reporter.h"

#include <cmath>

namespace headway::sim {
namespace {

constexpr double kTemperatureBand = 4.0;  // K
constexpr double kPowerBand = 20.0;       // W
constexpr double kSpeedBand = 0.01;
constexpr double kClockBand = 2.0;  // clock steps

}  // namespace

Reporter::Reporter(const scenarios::Scenario& scenario, const Timeline& timeline, scenarios::RunSink* sink)
    : sink_(sink), period_(scenario.telemetry_period), racks_(scenario.cluster.racks()) {
    for (std::size_t i = 0; i < scenario.disturbances.size(); ++i) {
        const int index = static_cast<int>(i);
        all_marks_.emplace(scenario.disturbances[i].start, Mark{index, true});
        if (const auto end = timeline.end_of(index)) all_marks_.emplace(*end, Mark{index, false});
    }
    readings_.resize(static_cast<std::size_t>(scenario.cluster.gpus()));
    for (const scenarios::NodeGroup& group : scenario.cluster.node_groups)
        clock_step_.insert(clock_step_.end(), static_cast<std::size_t>(group.count * group.node.gpus),
                           group.node.gpu.clock_step.value);
    start();
}

void Reporter::start() {
    if (sink_ == nullptr) return;
    marks_ = all_marks_;
    readings_.assign(readings_.size(), Reading());
    loads_.assign(static_cast<std::size_t>(racks_), -1.0);
    next_sensors_ = next_links_ = Duration();
}

void Reporter::disturbances(Duration until) {
    while (!marks_.empty() && marks_.begin()->first <= until) {
        const auto [at, mark] = *marks_.begin();
        marks_.erase(marks_.begin());
        if (sink_ != nullptr) sink_->disturbance({at.ns(), mark.disturbance, mark.begins});
    }
}

void Reporter::loss_ends(int disturbance, Duration at) {
    if (sink_ != nullptr && disturbance >= 0) marks_.emplace(at, Mark{disturbance, false});
}

bool Reporter::differs(const Reading& now, const Reading& last, double clock_step) {
    return now.reasons != last.reasons || std::abs(now.temperature_c - last.temperature_c) >= kTemperatureBand ||
           std::abs(now.power_w - last.power_w) >= kPowerBand || std::abs(now.speed - last.speed) >= kSpeedBand ||
           std::abs(now.clock_mhz - last.clock_mhz) >= kClockBand * clock_step;
}

void Reporter::sensors(Duration now, const Fleet& fleet, const Environment& environment,
                       const std::vector<double>& busy, const std::vector<double>& speed) {
    if (sink_ == nullptr || now < next_sensors_) return;
    next_sensors_ = now + period_;
    for (std::size_t gpu = 0; gpu < readings_.size(); ++gpu) {
        if (busy[gpu] < 0.0) continue;
        const int number = static_cast<int>(gpu);
        const GpuSurroundings& around = environment.surroundings[gpu];
        Reading reading;
        reading.temperature_c = std::round(fleet.temperature_c(number, around));
        reading.clock_mhz = fleet.clock_mhz(number, around);
        reading.power_w = std::round(fleet.power_w(number, around, busy[gpu]));
        reading.speed = std::round(speed[gpu] * 1000.0) / 1000.0;
        reading.reasons = fleet.throttle_reasons(number, around);
        if (!differs(reading, readings_[gpu], clock_step_[gpu])) continue;
        readings_[gpu] = reading;
        scenarios::TelemetryEvent event;
        event.time_ns = now.ns();
        event.gpu = number;
        event.temperature_c = reading.temperature_c;
        event.sm_clock_mhz = reading.clock_mhz;
        event.power_w = reading.power_w;
        event.speed = reading.speed;
        event.throttle_reasons = reading.reasons;
        sink_->telemetry(event);
    }
}

void Reporter::links(Duration now, const PlanModel& model, Duration iteration) {
    if (sink_ == nullptr || now < next_links_ || racks_ < 2) return;
    next_links_ = now + period_;
    for (int rack = 0; rack < racks_; ++rack) {
        const double load = model.uplink_load(rack, iteration);
        double& last = loads_[static_cast<std::size_t>(rack)];
        if (std::abs(load - last) < 0.01) continue;
        last = load;
        sink_->link_load({now.ns(), "rack " + std::to_string(rack) + " uplink", load});
    }
}

}  // namespace headway::sim
