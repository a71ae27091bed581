#pragma once

#include <string>
#include <vector>

namespace headway::cli {

/// Runs the command that this process was given once more, as `ranks` processes of this machine, and returns the exit
/// code of the whole. `command_line`: what stood behind the program's name. `hold_requests`: as in
/// backend::LocalLaunch.
int run_as_ranks(const std::vector<std::string>& command_line, int ranks, bool hold_requests);

}  // namespace headway::cli
