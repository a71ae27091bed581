#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "backend/telemetry/iteration_measurement.h"
#include "scenarios/language/scenario.h"
#include "scenarios/record/run_events.h"

namespace headway::backend {

/// Tells the sink what happens in a real run, in the order of time. Iterations are explained against the fastest one
/// that the same plan has had so far: compute, bubble and communication are its, what another takes longer is
/// straggling, charged evenly to the disturbances in force. A GPU's speed is what the cost model says of its kernels
/// over what they took: over the declared pace where there is one, else over the best that any GPU of its type showed.
class RunReporter {
  public:
    /// `sink` may be null. `pace`: declared durations over those of the cost model, 0 for none.
    RunReporter(const scenarios::Scenario& scenario, scenarios::RunSink* sink, double pace, bool operations);

    /// Everything as at the beginning; what is known of plans and GPUs stays.
    void start_episode();
    void take_up(const scenarios::Plan& plan);
    /// Of an iteration before the episode: told to nobody, but what healthy iterations look like is learned from it.
    void learn(const std::vector<RankStep>& ranks, const std::vector<RankShares>& shares, scenarios::Duration duration);
    void iteration(std::int64_t index, scenarios::Duration start, scenarios::Duration duration,
                   const std::vector<RankStep>& ranks, const std::vector<RankShares>& shares);
    void pause(const scenarios::PauseEvent& event);
    void log(scenarios::LogEvent::Severity severity, scenarios::Duration time, const std::string& text);

    std::vector<scenarios::GpuSummary> gpu_summaries() const { return summaries_; }

  private:
    struct Mark {
        int disturbance = 0;
        bool begins = true;
    };
    struct Speed {
        double weighted = 0.0;
        double seconds = 0.0;
    };
    void disturbances(scenarios::Duration until);
    std::vector<double> speeds_of(const std::vector<RankShares>& shares, scenarios::Duration duration, bool counts);
    scenarios::TimeShares mean_of(const std::vector<RankShares>& shares, scenarios::Duration duration) const;
    void telemetry(scenarios::Duration now, const std::vector<RankStep>& ranks, const std::vector<double>& speeds);

    const scenarios::Scenario scenario_;
    scenarios::RunSink* sink_;
    double pace_;
    bool operations_;
    scenarios::Plan plan_;
    std::vector<scenarios::Duration> declared_;  ///< [ranks] kernels of an iteration, by the cost model
    std::map<std::string, double> best_;         ///< by GPU type: declared over measured
    scenarios::Duration fastest_;                ///< iteration of this plan; 0: none yet
    scenarios::TimeShares fastest_shares_;
    std::multimap<scenarios::Duration, Mark> marks_;
    std::vector<char> in_force_;  ///< [disturbances]
    std::vector<Speed> speed_;    ///< [GPUs]
    std::vector<scenarios::GpuSummary> summaries_;
    scenarios::Duration next_telemetry_;
};

}  // namespace headway::backend
