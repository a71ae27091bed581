#include "cli/own_ranks.h"

#include <filesystem>

#include "backend/launch/local_launch.h"
#include "cli/standard_output.h"

namespace headway::cli {

int run_as_ranks(const std::vector<std::string>& command_line, int ranks, bool hold_requests) {
    backend::LocalLaunch launch;
    launch.ranks = ranks;
    launch.arguments = {std::filesystem::read_symlink("/proc/self/exe").string()};
    launch.arguments.insert(launch.arguments.end(), command_line.begin(), command_line.end());
    launch.hold_requests = hold_requests;
    launch.tell = [](const std::string& line) { complain(line); };
    return backend::run_local_ranks(launch).exit_code();
}

}  // namespace headway::cli
