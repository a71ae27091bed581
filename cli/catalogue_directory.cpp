#include "cli/catalogue_directory.h"

#include <stdexcept>
#include <system_error>

namespace headway::cli {

namespace fs = std::filesystem;

fs::path catalogue_directory(const std::optional<fs::path>& chosen) {
    std::error_code ignored;  // a place that cannot be read is a place where nothing was found
    if (chosen) {
        if (fs::is_directory(*chosen, ignored)) return *chosen;
        throw std::invalid_argument("--catalogue: " + chosen->string() + " is not a folder");
    }
    const fs::path program = fs::read_symlink("/proc/self/exe", ignored);
    const fs::path installed = program.parent_path().parent_path() / "share" / "headway" / "scenarios";
    if (!program.empty() && fs::is_directory(installed, ignored)) return installed;
    const fs::path source = HEADWAY_SOURCE_SCENARIOS;
    if (fs::is_directory(source, ignored)) return source;
    throw std::invalid_argument("no catalogue found in " + installed.string() + " nor in " + source.string() +
                                " (name one with --catalogue DIR)");
}

}  // namespace headway::cli
