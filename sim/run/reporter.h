#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "scenarios/language/scenario.h"
#include "scenarios/record/run_events.h"
#include "sim/disturbances/timeline.h"
#include "sim/iteration/plan_model.h"
#include "sim/thermal/fleet.h"

namespace headway::sim {

/// Tells the sink what happened, in the order of time; sensors are sampled at iteration boundaries, at most once a
/// telemetry period, and reported where a reading left the band around the last one reported: 4 C, 20 W, two clock
/// steps, 1 % of speed, or other throttle reasons. Without the band every checkpoint of a large job would report every
/// GPU several times.
class Reporter {
  public:
    Reporter(const scenarios::Scenario& scenario, const Timeline& timeline, scenarios::RunSink* sink);

    void start();
    scenarios::RunSink* sink() const { return sink_; }

    /// Begins and ends of disturbances up to `until`.
    void disturbances(Duration until);
    /// A loss is over at `at` (others end by their own timeline).
    void loss_ends(int disturbance, Duration at);

    /// `speed` [GPUs] compute speed over nominal, `busy` [GPUs] below 0 outside the job.
    void sensors(Duration now, const Fleet& fleet, const Environment& environment, const std::vector<double>& busy,
                 const std::vector<double>& speed);
    void links(Duration now, const PlanModel& model, Duration iteration);

  private:
    struct Reading {
        double temperature_c = -1000.0;
        double clock_mhz = -1.0;
        double power_w = -1.0;
        double speed = -1.0;
        std::uint32_t reasons = 0;
    };
    static bool differs(const Reading& now, const Reading& last, double clock_step);
    struct Mark {
        int disturbance = 0;
        bool begins = true;
    };

    scenarios::RunSink* sink_;
    Duration period_;
    int racks_ = 0;
    std::multimap<Duration, Mark> all_marks_;
    std::multimap<Duration, Mark> marks_;
    std::vector<Reading> readings_;
    std::vector<double> clock_step_;  ///< [GPUs]
    std::vector<double> loads_;
    Duration next_sensors_;
    Duration next_links_;
};

}  // namespace headway::sim
