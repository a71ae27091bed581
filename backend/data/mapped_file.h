#pragma once

#include <cstddef>
#include <filesystem>
#include <span>

namespace headway::backend {

/// A file in memory, read by the system as it is needed and shared by the processes that map it.
class MappedFile {
  public:
    /// Throws ConfigError naming the file: missing, a folder, not readable.
    explicit MappedFile(const std::filesystem::path& file);
    MappedFile(const MappedFile&) = delete;
    MappedFile& operator=(const MappedFile&) = delete;
    ~MappedFile();

    std::span<const std::byte> bytes() const { return bytes_; }

  private:
    std::span<const std::byte> bytes_;
};

}  // namespace headway::backend
