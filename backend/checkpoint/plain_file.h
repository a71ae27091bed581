#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>

/// Files and folders that survive a crash of the machine: what is written is on the disk when a call says so.
namespace headway::backend {

/// An open file. Not copied; closed when it goes.
class PlainFile {
  public:
    /// Throws ConfigError naming the file: missing, a folder, not readable.
    static PlainFile open(const std::filesystem::path& file);
    /// New and empty; what was there is gone. Throws BackendError.
    static PlainFile create(const std::filesystem::path& file);
    PlainFile(PlainFile&& other) noexcept;
    PlainFile& operator=(PlainFile&& other) noexcept;
    ~PlainFile();

    const std::filesystem::path& path() const { return path_; }
    std::int64_t size() const { return size_; }  ///< of an opened file

    /// Exactly `bytes` from `offset` on. Throws ConfigError where the file ends before, or cannot be read.
    void read(std::int64_t offset, std::span<std::byte> bytes) const;
    /// Appends. Throws BackendError (disk full, ...).
    void write(std::span<const std::byte> bytes);
    void write(const std::string& text) { write(std::as_bytes(std::span(text))); }
    /// Returns when everything written is on the disk. Throws BackendError.
    void sync();

  private:
    PlainFile(int descriptor, std::filesystem::path path, std::int64_t size);
    int descriptor_ = -1;
    std::filesystem::path path_;
    std::int64_t size_ = 0;
};

/// Names made, renamed or removed in the folder are on the disk. Throws BackendError.
void sync_folder(const std::filesystem::path& folder);

/// The whole file as text. Throws ConfigError; also beyond `limit` bytes.
std::string text_of_file(const std::filesystem::path& file, std::int64_t limit);

/// Writes under a temporary name beside `file`, syncs and renames: the name never shows a half-written file, whatever
/// happens. Throws BackendError.
void replace_file(const std::filesystem::path& file, const std::string& text);
/// The same without sync: another process sees all or nothing, but after a crash of the machine it may be gone.
void place_file(const std::filesystem::path& file, const std::string& text);

/// Another name beside `file`, for writing before a rename.
std::filesystem::path temporary_name(const std::filesystem::path& file);

}  // namespace headway::backend
