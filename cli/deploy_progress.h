#pragma once

#include <cstdint>
#include <cstdio>

#include "scenarios/record/run_events.h"

namespace headway::cli {

/// What a job that really trains tells while it does, on standard error: a line with loss and tokens a second every
/// `interval` iterations, and what happens to it.
class DeployProgress final : public scenarios::RunSink {
  public:
    explicit DeployProgress(int interval, std::FILE* stream = stderr) : interval_(interval), stream_(stream) {}
    void begin(const scenarios::RunHeader& header) override;
    void iteration(const scenarios::IterationEvent& event) override;
    void disturbance(const scenarios::DisturbanceEvent& event) override;
    void pause(const scenarios::PauseEvent& event) override;
    void log(const scenarios::LogEvent& event) override;
    bool wants_operations() const override { return false; }

  private:
    int interval_;
    std::FILE* stream_;
    scenarios::RunHeader header_;
    std::int64_t since_ns_ = 0;
    std::int64_t iterations_ = 0;  ///< since then
};

}  // namespace headway::cli
