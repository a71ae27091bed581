#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "backend/checkpoint/manifest.h"
#include "backend/checkpoint/state_file.h"

namespace headway::backend {

/// A complete checkpoint, from which any elements are read, whatever the plan that wrote them. Files are opened as they
/// are needed, and no more of them is read than the chunks that hold what is asked for.
class CheckpointReader {
  public:
    /// `folder`: one checkpoint. Throws ConfigError for a manifest that is missing, damaged or of another version.
    explicit CheckpointReader(const std::filesystem::path& folder);
    /// The same, of a manifest that was read already.
    CheckpointReader(std::filesystem::path folder, Manifest manifest);
    ~CheckpointReader();

    const Manifest& manifest() const { return manifest_; }
    /// Elements of a block, in block order, of state part 0 (master), 1 or 2 (moments), as T (float or double). Padding
    /// rows, which no checkpoint has, are 0. Throws ConfigError naming file and reason: missing, cut, damaged.
    template <typename T>
    std::vector<T> read(const scenarios::Block& block, const scenarios::Interval& elements, std::size_t state_part);

    std::int64_t bytes_read() const;

  private:
    struct Place {
        std::size_t file = 0;
        const SavedPart* part = nullptr;
    };
    std::filesystem::path folder_;
    Manifest manifest_;
    std::map<std::pair<scenarios::BlockKind, int>, std::vector<Place>> places_;  ///< in the order of their elements
    std::vector<std::unique_ptr<StateFileReader>> files_;
};

/// `path`: one checkpoint, or the folder of several, of which the newest is taken. Throws ConfigError.
std::filesystem::path find_checkpoint(const std::filesystem::path& path);

}  // namespace headway::backend
