#include "scenarios/record/progress.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "scenarios/record/figures.h"

namespace headway::scenarios {

namespace {

/// Columns of the terminal behind `stream`; 0 when it is none.
int terminal_columns(std::FILE* stream) {
    const int descriptor = ::fileno(stream);
    if (descriptor < 0 || ::isatty(descriptor) == 0) return 0;
    winsize size{};
    if (::ioctl(descriptor, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return 80;
    return size.ws_col;
}

constexpr auto kRedrawPeriod = std::chrono::milliseconds(100);

}  // namespace

ProgressBar::ProgressBar(std::FILE* stream)
    : ProgressBar(stream, terminal_columns(stream), [] { return std::chrono::steady_clock::now(); }) {}

ProgressBar::ProgressBar(std::FILE* stream, int columns, Clock clock)
    : stream_(stream), columns_(columns), clock_(std::move(clock)) {}

ProgressBar::~ProgressBar() {
    wipe();
}

void ProgressBar::begin(const RunHeader& header) {
    if (columns_ == 0) return;
    name_ = header.scenario;
    planned_iterations_ = header.planned_iterations;
    planned_ns_ = header.planned_ns;
    iterations_ = 0;
    reached_ns_ = 0;
    begun_ = clock_();
    last_drawn_ = begun_ - kRedrawPeriod;
    draw();
}

void ProgressBar::iteration(const IterationEvent& event) {
    if (columns_ == 0) return;
    iterations_ = event.index + 1;  // falls back after a rollback, as the job does
    reached_ns_ = event.start_ns + event.duration_ns;
    draw();
}

void ProgressBar::pause(const PauseEvent& event) {
    if (columns_ == 0) return;
    reached_ns_ = event.start_ns + event.duration_ns;
    draw();
}

void ProgressBar::end(const RunFooter&) {
    wipe();
}

void ProgressBar::draw() {
    const auto now = clock_();
    if (now - last_drawn_ < kRedrawPeriod) return;
    last_drawn_ = now;
    const double done = planned_iterations_ > 0
                            ? static_cast<double>(iterations_) / static_cast<double>(planned_iterations_)
                        : planned_ns_ > 0 ? static_cast<double>(reached_ns_) / static_cast<double>(planned_ns_)
                                          : 0.0;
    const double fraction = std::clamp(done, 0.0, 1.0);
    std::string figures = " " + pad_left(std::to_string(static_cast<int>(fraction * 100.0)) + " %", 5) + "  " +
                          count_text(static_cast<double>(iterations_)) + " iterations, " + duration_text(reached_ns_);
    if (fraction > 0.0 && fraction < 1.0) {
        const double waited = std::chrono::duration<double>(now - begun_).count();
        const auto left = static_cast<std::int64_t>(waited * (1.0 / fraction - 1.0));
        figures +=
            ", " + std::to_string(left / 60) + ":" + (left % 60 < 10 ? "0" : "") + std::to_string(left % 60) + " left";
    }
    // The last column stays free: some terminals break the line there.
    const auto room = static_cast<std::size_t>(std::max(columns_ - 1, 1));
    const std::string name = pad_right(name_, std::min<std::size_t>(text_width(name_), 20)) + " ";
    const std::size_t used = text_width(name) + text_width(figures);
    std::string line = name;
    if (used + 6 <= room) {
        const std::size_t width = std::min<std::size_t>(room - used, 30);
        const std::string bar = bar_text(fraction, width);
        line += bar + std::string(width - text_width(bar), ' ');
    }
    line = pad_right(line + figures, room);
    std::fputs(("\r" + line).c_str(), stream_);
    std::fflush(stream_);
    drawn_ = true;
}

void ProgressBar::wipe() {
    if (!drawn_) return;
    std::fputs("\r\033[K", stream_);
    std::fflush(stream_);
    drawn_ = false;
}

ProgressLine::ProgressLine(std::FILE* stream)
    : ProgressLine(stream, terminal_columns(stream), [] { return std::chrono::steady_clock::now(); }) {}

ProgressLine::ProgressLine(std::FILE* stream, int columns, ProgressBar::Clock clock)
    : stream_(stream), columns_(columns), clock_(std::move(clock)) {}

ProgressLine::~ProgressLine() {
    if (!drawn_) return;
    std::fputs("\r\033[K", stream_);
    std::fflush(stream_);
}

void ProgressLine::show(const std::string& text) {
    if (columns_ == 0) return;
    const auto now = clock_();
    if (drawn_ && now - last_drawn_ < kRedrawPeriod) return;
    last_drawn_ = now;
    drawn_ = true;
    std::fputs(("\r" + pad_right(text, static_cast<std::size_t>(std::max(columns_ - 1, 1)))).c_str(), stream_);
    std::fflush(stream_);
}

}  // namespace headway::scenarios
