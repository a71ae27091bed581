#pragma once

#include <cstdint>
#include <map>
#include <vector>

namespace headway::backend {

/// Memory that is asked for again and again in the same sizes: what comes back is kept and handed out again. Sizes are
/// rounded up to one of four between two powers of two, so at most a fifth of a block is unused.
class MemoryPool {
  public:
    /// `most_bytes`: handed out and kept together never exceed it.
    explicit MemoryPool(std::int64_t most_bytes) : most_bytes_(most_bytes) {}
    ~MemoryPool();
    MemoryPool(const MemoryPool&) = delete;
    MemoryPool& operator=(const MemoryPool&) = delete;

    /// Aligned to 256 bytes. Null for 0 bytes. Throws BackendError when there is not enough memory: in this pool or,
    /// for a large block, on the machine.
    void* take(std::int64_t bytes);
    void give_back(void* block);

    std::int64_t used_bytes() const { return used_bytes_; }
    std::int64_t kept_bytes() const { return kept_bytes_; }
    std::int64_t most_bytes() const { return most_bytes_; }

  private:
    void release_kept();

    std::int64_t most_bytes_;
    std::int64_t used_bytes_ = 0;
    std::int64_t kept_bytes_ = 0;
    std::map<std::int64_t, std::vector<void*>> kept_;  ///< by size
    std::map<void*, std::int64_t> sizes_;              ///< of blocks handed out
};

/// What this process may use: memory of the machine, less where a control group limits it.
std::int64_t usable_memory_bytes();
/// What the machine could hand out now without swapping. Usable memory where the system does not say.
std::int64_t available_memory_bytes();

}  // namespace headway::backend
