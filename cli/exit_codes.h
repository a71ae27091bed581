#pragma once

namespace headway::cli {

/// Exit codes of the program; the launcher adds 3, missing packages.
constexpr int kSucceeded = 0;
constexpr int kFailed = 1;         ///< the run failed, or output could not be written
constexpr int kBadInput = 2;       ///< arguments, scenario or table; one message, nothing half-written
constexpr int kInterrupted = 130;  ///< Ctrl-C; records are closed as interrupted

}  // namespace headway::cli
