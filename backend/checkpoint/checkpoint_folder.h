#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

/// The folder that holds checkpoints: step-0000120, or step-0000120-2 where that step is saved again. One that is being
/// written has a name that begins with a dot.
namespace headway::backend {

struct CheckpointName {
    std::int64_t step = 0;
    int attempt = 1;
    auto operator<=>(const CheckpointName&) const = default;

    std::string text() const;
    static std::optional<CheckpointName> parse(const std::string& text);
};

/// Complete checkpoints in `folder`, oldest first; none where there is no such folder. Throws ConfigError where it
/// cannot be read.
std::vector<CheckpointName> complete_checkpoints(const std::filesystem::path& folder);

/// Makes `folder` where it is missing, takes away what was left half-written in it, and makes a new folder to write in.
/// Throws ConfigError.
std::filesystem::path begin_writing(const std::filesystem::path& folder, std::int64_t step);

/// Gives the written folder its name, and then removes the oldest others, so that `keep` checkpoints stay. Throws
/// BackendError.
void end_writing(const std::filesystem::path& folder, const std::filesystem::path& written, std::int64_t step,
                 int keep);

}  // namespace headway::backend
