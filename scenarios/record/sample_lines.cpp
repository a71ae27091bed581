#include "scenarios/record/sample_lines.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>

#include "scenarios/record/json_text.h"

namespace headway::scenarios {

namespace {

double on_grid(double value, SampleResolution resolution) {
    return std::round(value * resolution.grid_per_unit) / resolution.grid_per_unit;
}

/// True, and `written` follows, when the value is new or moved far enough.
bool sample_moved(double latest, double& written, bool known, SampleResolution resolution) {
    if (!std::isfinite(latest)) throw std::invalid_argument("telemetry: a number that is not finite");
    if (known && std::abs(latest - written) < resolution.least_change) return false;
    const double rounded = on_grid(latest, resolution);
    if (known && rounded == written) return false;
    written = rounded;
    return true;
}

struct SampleColumn {
    std::vector<int> of;
    std::vector<double> values;
    void add(int item, double value) {
        of.push_back(item);
        values.push_back(value);
    }
};

void write_sample_column(JsonText& json, const char* key, const SampleColumn& column) {
    if (column.of.empty()) return;
    json.key(key).begin_object().field("gpu", column.of).field("value", column.values).end_object();
}

}  // namespace

SampleClock::SampleClock(std::int64_t period_ns, std::int64_t budget_bytes)
    : period_ns_(std::max<std::int64_t>(period_ns, 1)), eighth_bytes_(std::max<std::int64_t>(budget_bytes / 8, 1)) {}

void SampleClock::used(std::int64_t bytes) {
    used_bytes_ += bytes;
    while (used_bytes_ >= eighth_bytes_ && period_ns_ <= std::numeric_limits<std::int64_t>::max() / 4) {
        used_bytes_ -= eighth_bytes_;
        period_ns_ *= 2;
    }
}

void TelemetrySampler::add(const TelemetryEvent& event) {
    if (event.gpu < 0) throw std::invalid_argument("telemetry: GPU " + std::to_string(event.gpu) + " does not exist");
    const auto index = static_cast<std::size_t>(event.gpu);
    if (index >= gpus_.size()) gpus_.resize(index + 1);
    gpus_[index].latest = event;
    if (!gpus_[index].touched) {
        gpus_[index].touched = true;
        touched_.push_back(event.gpu);
    }
    time_ns_ = event.time_ns;
}

std::string TelemetrySampler::line(const SampleClock& clock) {
    if (touched_.empty() || !SampleClock::due(time_ns_, last_ns_, clock.period_ns())) return {};
    std::sort(touched_.begin(), touched_.end());
    SampleColumn temperature, sm_clock, power, speed, throttle;
    for (const int number : touched_) {
        Gpu& gpu = gpus_[static_cast<std::size_t>(number)];
        TelemetryEvent& written = gpu.written;
        const TelemetryEvent& latest = gpu.latest;
        if (sample_moved(latest.temperature_c, written.temperature_c, gpu.known, kTemperatureResolution))
            temperature.add(number, written.temperature_c);
        if (sample_moved(latest.sm_clock_mhz, written.sm_clock_mhz, gpu.known, kClockResolution))
            sm_clock.add(number, written.sm_clock_mhz);
        if (sample_moved(latest.power_w, written.power_w, gpu.known, kPowerResolution))
            power.add(number, written.power_w);
        if (sample_moved(latest.speed, written.speed, gpu.known, kSpeedResolution)) speed.add(number, written.speed);
        if (!gpu.known || latest.throttle_reasons != written.throttle_reasons) {
            written.throttle_reasons = latest.throttle_reasons;
            throttle.add(number, latest.throttle_reasons);
        }
        gpu.known = true;
        gpu.touched = false;
    }
    touched_.clear();
    last_ns_ = time_ns_;
    if (temperature.of.empty() && sm_clock.of.empty() && power.of.empty() && speed.of.empty() && throttle.of.empty())
        return {};

    JsonText json;
    json.begin_object().field("record", "telemetry").field("time_ns", time_ns_).field("period_ns", clock.period_ns());
    write_sample_column(json, "temperature_c", temperature);
    write_sample_column(json, "sm_clock_mhz", sm_clock);
    write_sample_column(json, "power_w", power);
    write_sample_column(json, "speed", speed);
    write_sample_column(json, "throttle_reasons", throttle);
    return json.end_object().take();
}

void LinkLoadSampler::add(const LinkLoadEvent& event) {
    auto found = numbers_.find(event.link);
    if (found == numbers_.end()) {
        found = numbers_.emplace(event.link, static_cast<int>(links_.size())).first;
        links_.emplace_back().name = event.link;
    }
    Link& link = links_[static_cast<std::size_t>(found->second)];
    link.latest = event.utilisation;
    if (!link.touched) {
        link.touched = true;
        touched_.push_back(found->second);
    }
    time_ns_ = event.time_ns;
}

std::string LinkLoadSampler::line(const SampleClock& clock) {
    if (touched_.empty() || !SampleClock::due(time_ns_, last_ns_, clock.period_ns())) return {};
    std::sort(touched_.begin(), touched_.end());
    SampleColumn load;
    for (const int number : touched_) {
        Link& link = links_[static_cast<std::size_t>(number)];
        if (sample_moved(link.latest, link.written, link.known, kLoadResolution)) load.add(number, link.written);
        link.known = true;
        link.touched = false;
    }
    touched_.clear();
    last_ns_ = time_ns_;
    if (load.of.empty()) return {};

    JsonText json;
    json.begin_object().field("record", "link_load").field("time_ns", time_ns_).field("period_ns", clock.period_ns());
    json.key("new_links").begin_array();
    for (; named_ < links_.size(); ++named_) json.value(links_[named_].name);
    return json.end_array().field("link", load.of).field("utilisation", load.values).end_object().take();
}

}  // namespace headway::scenarios
