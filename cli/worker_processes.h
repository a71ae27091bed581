#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "scenarios/record/summary.h"

namespace headway::cli {

struct ProcessOptions {
    std::size_t at_a_time = 0;  ///< 0: as many as there are processors
    std::function<bool()> end_asked;
    bool abandon = false;  ///< an end that was asked for ends what runs at once, instead of asking it to end
    std::function<void(std::size_t finished)> progress;  ///< may be empty; called often
};

/// Calls `run(0)` to `run(count - 1)`, each in a process of its own (SimGrid has one engine a process), and returns
/// what they answered, by index: the result does not depend on how many run at a time. After `end_asked` nothing
/// further is started, and what did not finish is absent. Throws std::runtime_error with the message of the first run
/// that failed.
std::vector<std::optional<std::string>> answers_of_processes(std::size_t count,
                                                             const std::function<std::string(std::size_t)>& run,
                                                             const ProcessOptions& options);

/// The same for summaries, with progress on a terminal. Only what has finished is returned, still in order.
std::vector<scenarios::RunSummary> summaries_of_processes(std::size_t count,
                                                          const std::function<scenarios::RunSummary(std::size_t)>& run,
                                                          const std::function<bool()>& end_asked);

}  // namespace headway::cli
