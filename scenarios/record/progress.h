#pragma once

#include <chrono>
#include <cstdio>
#include <functional>
#include <string>

#include "scenarios/record/run_events.h"

namespace headway::scenarios {

/// Progress of a run on a terminal: one line that changes in place, at most ten times a second. Silent when `stream` is
/// no terminal. The line is wiped at the end, so that it never mixes with a report.
class ProgressBar final : public RunSink {
  public:
    /// Wall clock of the person who waits; tests pass their own.
    using Clock = std::function<std::chrono::steady_clock::time_point()>;

    explicit ProgressBar(std::FILE* stream = stderr);
    /// For tests: draws although `stream` may be no terminal.
    ProgressBar(std::FILE* stream, int columns, Clock clock);
    ~ProgressBar() override;

    void begin(const RunHeader& header) override;
    void iteration(const IterationEvent& event) override;
    void pause(const PauseEvent& event) override;
    void end(const RunFooter& footer) override;
    bool wants_operations() const override { return false; }

  private:
    void draw();
    void wipe();

    std::FILE* stream_;
    int columns_ = 0;  ///< 0: silent
    Clock clock_;
    std::string name_;
    std::int64_t planned_iterations_ = 0;
    std::int64_t planned_ns_ = 0;
    std::int64_t iterations_ = 0;
    std::int64_t reached_ns_ = 0;
    bool drawn_ = false;
    std::chrono::steady_clock::time_point begun_{};
    std::chrono::steady_clock::time_point last_drawn_{};
};

/// What a command is doing, where there is no run to tell it: one line of text on a terminal that changes in place, at
/// most ten times a second, and is wiped at the end. Silent when `stream` is no terminal.
class ProgressLine {
  public:
    explicit ProgressLine(std::FILE* stream = stderr);
    /// For tests: draws although `stream` may be no terminal.
    ProgressLine(std::FILE* stream, int columns, ProgressBar::Clock clock);
    ~ProgressLine();
    ProgressLine(const ProgressLine&) = delete;
    ProgressLine& operator=(const ProgressLine&) = delete;

    void show(const std::string& text);

  private:
    std::FILE* stream_;
    int columns_ = 0;  ///< 0: silent
    ProgressBar::Clock clock_;
    bool drawn_ = false;
    std::chrono::steady_clock::time_point last_drawn_{};
};

}  // namespace headway::scenarios
