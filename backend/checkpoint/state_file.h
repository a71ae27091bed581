#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "backend/checkpoint/manifest.h"
#include "backend/checkpoint/safetensors.h"
#include "backend/checkpoint/write_shares.h"

/// One file of a checkpoint: safetensors with the state of some parts of blocks, checked chunk by chunk.
namespace headway::backend {

/// Elements that share a checksum: what is read of a file at least.
constexpr std::int64_t kChunkElements = std::int64_t{1} << 20;

/// Host memory that is not cleared first: with gigabytes of state that is time the training waits.
class HostCopy {
  public:
    HostCopy() = default;
    explicit HostCopy(std::int64_t bytes)
        : bytes_(bytes), data_(std::make_unique_for_overwrite<std::byte[]>(static_cast<std::size_t>(bytes))) {}
    std::byte* data() { return data_.get(); }
    std::span<const std::byte> bytes() const { return {data_.get(), static_cast<std::size_t>(bytes_)}; }

  private:
    std::int64_t bytes_ = 0;
    std::unique_ptr<std::byte[]> data_;
};

/// Host copy of what one process writes.
struct StagedPart {
    BlockPart part;
    bool wide = false;                        ///< float64, else float32
    std::array<HostCopy, kStateParts> state;  ///< of part.elements
};

/// Writes, syncs and closes. `given_up` is asked between chunks; where it has a reason to stop, the file stays
/// unfinished and BackendError is thrown, as for a full disk.
SavedFile write_state_file(const std::filesystem::path& file, std::span<const StagedPart> parts,
                           const std::function<std::string()>& given_up);

/// Reads a state file and checks what it reads: size and header on opening, checksums of the chunks read.
class StateFileReader {
  public:
    /// Throws ConfigError naming the file.
    StateFileReader(const std::filesystem::path& folder, const SavedFile& saved, std::int64_t chunk_elements);

    /// Elements `wanted`, all in `part` (one of the file's), of state part `state_part`; converted to T (float or
    /// double). Throws ConfigError for what differs from its checksum.
    template <typename T>
    void read(const SavedPart& part, std::size_t state_part, const scenarios::Interval& wanted, T* to);

    std::int64_t bytes_read() const { return bytes_read_; }

  private:
    PlainFile file_;
    std::int64_t chunk_elements_;
    SafetensorsHeader header_;
    std::vector<std::byte> chunk_;
    std::int64_t bytes_read_ = 0;
};

}  // namespace headway::backend
