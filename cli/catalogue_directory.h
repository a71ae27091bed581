#pragma once

#include <filesystem>
#include <optional>

namespace headway::cli {

/// Folder with the catalogues (`gpus/`, `fabrics/`, `stacks/`, `clusters/`, `models/`, `measured/`) and the ready
/// scenarios. The first that exists of: `chosen` (the --catalogue option), the installed `../share/headway/scenarios`
/// beside the running program, the source tree that the program was built from. A `chosen` folder that does not exist
/// is never replaced by another. Throws std::invalid_argument with the places that were tried.
std::filesystem::path catalogue_directory(const std::optional<std::filesystem::path>& chosen);

}  // namespace headway::cli
