#include "backend/host/memory_pool.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <fstream>
#include <limits>
#include <string>

#include "backend/backend_error.h"

namespace headway::backend {

namespace {

constexpr std::int64_t kAlignment = 256;
/// From this size on blocks are made of huge pages where the system has them: rows of a large matrix are pages apart,
/// and a core remembers few pages.
constexpr std::int64_t kHugeBlock = std::int64_t{8} << 20, kHugePage = std::int64_t{2} << 20;
/// The system grants more than it has; from this size on it is asked first what it has.
constexpr std::int64_t kLarge = std::int64_t{64} << 20;

std::int64_t pool_size_of(std::int64_t bytes) {
    const std::int64_t power = static_cast<std::int64_t>(std::bit_floor(static_cast<std::uint64_t>(bytes)));
    const std::int64_t step = std::max(power / 4, kAlignment);  // whole huge pages from kHugeBlock on
    return (bytes + step - 1) / step * step;
}

void* new_block(std::int64_t size) {
    const bool huge = size >= kHugeBlock;
    void* block =
        std::aligned_alloc(static_cast<std::size_t>(huge ? kHugePage : kAlignment), static_cast<std::size_t>(size));
    if (huge && block != nullptr) madvise(block, static_cast<std::size_t>(size), MADV_HUGEPAGE);  // a wish
    return block;
}

/// A whole number in a file of the system; `otherwise` where there is none ("max").
std::int64_t number_in(const char* path, std::int64_t otherwise) {
    std::ifstream file(path);
    std::int64_t value = 0;
    return file >> value ? value : otherwise;
}

}  // namespace

MemoryPool::~MemoryPool() {
    release_kept();
}

void* MemoryPool::take(std::int64_t bytes) {
    if (bytes <= 0) return nullptr;
    const auto refuse = [&](std::int64_t free_bytes) {
        throw BackendError("host", "allocation of " + std::to_string(bytes) + " bytes: only " +
                                       std::to_string(std::max<std::int64_t>(free_bytes, 0)) + " are free");
    };
    if (bytes > most_bytes_ - used_bytes_) refuse(most_bytes_ - used_bytes_);
    const std::int64_t size = pool_size_of(bytes);
    void* block = nullptr;
    if (auto found = kept_.find(size); found != kept_.end() && !found->second.empty()) {
        block = found->second.back();
        found->second.pop_back();
        kept_bytes_ -= size;
    } else {
        if (size > most_bytes_ - used_bytes_ - kept_bytes_) release_kept();
        if (size >= kLarge && size > available_memory_bytes()) {
            release_kept();
            if (const std::int64_t available = available_memory_bytes(); size > available) refuse(available);
        }
        block = new_block(size);
        if (block == nullptr) refuse(available_memory_bytes());
    }
    sizes_.emplace(block, size);
    used_bytes_ += size;
    return block;
}

void MemoryPool::give_back(void* block) {
    const auto found = sizes_.find(block);
    const std::int64_t size = found->second;
    sizes_.erase(found);
    used_bytes_ -= size;
    kept_bytes_ += size;
    kept_[size].push_back(block);
}

void MemoryPool::release_kept() {
    for (const auto& [size, blocks] : kept_)
        for (void* block : blocks) std::free(block);
    kept_.clear();
    kept_bytes_ = 0;
}

std::int64_t usable_memory_bytes() {
    const std::int64_t pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
    constexpr std::int64_t kUnlimited = std::numeric_limits<std::int64_t>::max();
    std::int64_t bytes = pages > 0 && page > 0 ? pages * page : kUnlimited;
    bytes = std::min(bytes, number_in("/sys/fs/cgroup/memory.max", kUnlimited));
    return std::min(bytes, number_in("/sys/fs/cgroup/memory/memory.limit_in_bytes", kUnlimited));
}

std::int64_t available_memory_bytes() {
    const std::int64_t usable = usable_memory_bytes();
    std::ifstream file("/proc/meminfo");
    std::string name;
    for (std::int64_t value = 0; file >> name >> value; file.ignore(std::numeric_limits<std::streamsize>::max(), '\n'))
        if (name == "MemAvailable:") return std::min(usable, value * 1024);
    return usable;
}

}  // namespace headway::backend
