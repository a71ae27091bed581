#pragma once

#include <cstddef>
#include <functional>
#include <vector>

#include "scenarios/record/summary.h"

namespace headway::cli {

/// Calls `run(0)` to `run(count - 1)`, each in a process of its own (SimGrid has one engine a process), as many at a
/// time as there are processors, and returns their summaries in order of the index: the result does not depend on how
/// many run at a time. After `end_asked` nothing further is started, and only what has finished is returned, still in
/// order. Throws std::runtime_error with the message of the first run that failed.
std::vector<scenarios::RunSummary> summaries_of_processes(std::size_t count,
                                                          const std::function<scenarios::RunSummary(std::size_t)>& run,
                                                          const std::function<bool()>& end_asked);

}  // namespace headway::cli
