#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "scenarios/record/run_events.h"

/// Lines of sensors and links. Samples are thinned twice. A value is written when it moved by at least the resolution
/// below since it was last written. And each time an eighth of the byte budget is used up, the sample period doubles;
/// every line states the period it was taken at.
namespace headway::scenarios {

/// Least change worth a new value, and the grid that values are rounded to.
struct SampleResolution {
    double least_change;
    double grid_per_unit;  ///< 10: tenths
};
inline constexpr SampleResolution kTemperatureResolution{0.5, 10.0};  ///< C; NVML reports whole degrees
inline constexpr SampleResolution kClockResolution{5.0, 1.0};         ///< MHz; clocks move in steps of 7.5 or 15
inline constexpr SampleResolution kPowerResolution{5.0, 1.0};         ///< W; NVML states +-5 W
inline constexpr SampleResolution kSpeedResolution{0.005, 1000.0};    ///< of nominal
inline constexpr SampleResolution kLoadResolution{0.01, 1000.0};      ///< of the link's bandwidth

/// Which moments are sampled, shared by all kinds of sample.
class SampleClock {
  public:
    SampleClock(std::int64_t period_ns, std::int64_t budget_bytes);
    std::int64_t period_ns() const { return period_ns_; }
    /// True when the moment belongs to a sample: it is the last one's, or a period has passed since.
    static bool due(std::int64_t time_ns, std::int64_t last_ns, std::int64_t period_ns) {
        return last_ns < 0 || time_ns == last_ns || time_ns >= last_ns + period_ns;
    }
    void used(std::int64_t bytes);

  private:
    std::int64_t period_ns_;
    std::int64_t eighth_bytes_;
    std::int64_t used_bytes_ = 0;
};

/// Collects the telemetry of one moment; `line` is what has changed, or empty.
class TelemetrySampler {
  public:
    void add(const TelemetryEvent& event);
    bool pending() const { return !touched_.empty(); }
    std::int64_t time_ns() const { return time_ns_; }
    /// Empty when the moment is not due or nothing moved; what is not due is compared again at the next moment.
    std::string line(const SampleClock& clock);

  private:
    struct Gpu {
        TelemetryEvent latest;
        TelemetryEvent written;
        bool known = false;
        bool touched = false;
    };
    std::vector<Gpu> gpus_;
    std::vector<int> touched_;  ///< GPUs with news since their values were last compared
    std::int64_t time_ns_ = 0;
    std::int64_t last_ns_ = -1;
};

/// The same for links, which are named at their first line and numbered from then on.
class LinkLoadSampler {
  public:
    void add(const LinkLoadEvent& event);
    bool pending() const { return !touched_.empty(); }
    std::int64_t time_ns() const { return time_ns_; }
    std::string line(const SampleClock& clock);

  private:
    struct Link {
        std::string name;
        double latest = 0.0;
        double written = 0.0;
        bool known = false;
        bool touched = false;
    };
    std::vector<Link> links_;
    std::map<std::string, int, std::less<>> numbers_;
    std::vector<int> touched_;
    std::int64_t time_ns_ = 0;
    std::int64_t last_ns_ = -1;
    std::size_t named_ = 0;  ///< links whose names were written
};

}  // namespace headway::scenarios
