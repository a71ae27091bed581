#include "backend/cuda/block_cache.h"

#include <algorithm>

namespace headway::backend {

namespace {

constexpr std::int64_t kMiB = 1 << 20;

}  // namespace

std::int64_t BlockCache::rounded(std::int64_t bytes) {
    const std::int64_t step = bytes <= kMiB ? 512 : 2 * kMiB;
    return std::max<std::int64_t>(1, (bytes + step - 1) / step) * step;
}

/// The smallest that is large enough, if it does not waste more than a quarter (of small ones, half).
void* BlockCache::take_kept(std::int64_t bytes) {
    const auto found = kept_.lower_bound(bytes);
    if (found == kept_.end()) return nullptr;
    const std::int64_t most = bytes <= kMiB ? 2 * bytes : bytes + bytes / 4;
    if (found->first > most) return nullptr;
    void* const block = found->second;
    handed_[block] = found->first;
    used_bytes_ += found->first;
    kept_bytes_ -= found->first;
    kept_.erase(found);
    return block;
}

void* BlockCache::take(std::int64_t bytes) {
    const std::int64_t size = rounded(bytes);
    {
        const std::lock_guard lock(mutex_);
        if (void* const block = take_kept(size)) return block;
    }
    void* block = take_(size);
    if (block == nullptr) {
        release_kept();
        block = take_(size);
    }
    if (block == nullptr) return nullptr;
    const std::lock_guard lock(mutex_);
    handed_[block] = size;
    used_bytes_ += size;
    return block;
}

void BlockCache::give_back(void* block) noexcept {
    const std::lock_guard lock(mutex_);
    const auto found = handed_.find(block);
    if (found == handed_.end()) return;
    kept_.emplace(found->second, block);
    used_bytes_ -= found->second;
    kept_bytes_ += found->second;
    handed_.erase(found);
}

void BlockCache::release_kept() {
    std::multimap<std::int64_t, void*> blocks;
    {
        const std::lock_guard lock(mutex_);
        blocks.swap(kept_);
        kept_bytes_ = 0;
    }
    for (const auto& [size, block] : blocks) give_(block);
}

std::int64_t BlockCache::used_bytes() const {
    const std::lock_guard lock(mutex_);
    return used_bytes_;
}

std::int64_t BlockCache::kept_bytes() const {
    const std::lock_guard lock(mutex_);
    return kept_bytes_;
}

}  // namespace headway::backend
