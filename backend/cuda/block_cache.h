#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <unordered_map>

namespace headway::backend {

/// Keeps device memory that was given back, for the next who asks: cudaMalloc waits for the device, so a step should
/// not call it. Names no function of CUDA.
class BlockCache {
  public:
    using Take = std::function<void*(std::int64_t bytes)>;  ///< null when there is not enough
    using Give = std::function<void(void* block)>;

    BlockCache(Take take, Give give) : take_(std::move(take)), give_(std::move(give)) {}
    ~BlockCache() { release_kept(); }
    BlockCache(const BlockCache&) = delete;
    BlockCache& operator=(const BlockCache&) = delete;

    /// Multiples of 512 bytes up to 1 MiB, of 2 MiB above.
    static std::int64_t rounded(std::int64_t bytes);

    /// Null when there is not enough memory, also after all that is kept was given away.
    void* take(std::int64_t bytes);
    void give_back(void* block) noexcept;
    void release_kept();

    std::int64_t used_bytes() const;
    std::int64_t kept_bytes() const;

  private:
    void* take_kept(std::int64_t bytes);

    Take take_;
    Give give_;
    mutable std::mutex mutex_;
    std::multimap<std::int64_t, void*> kept_;         // by size
    std::unordered_map<void*, std::int64_t> handed_;  // sizes
    std::int64_t used_bytes_ = 0, kept_bytes_ = 0;
};

}  // namespace headway::backend
