#include "backend/cuda/block_cache.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <map>

namespace headway::tests {
namespace {

using backend::BlockCache;

constexpr std::int64_t kMiB = 1 << 20;

/// A device with so much memory.
struct SmallDevice {
    std::int64_t left_bytes;
    int calls = 0;
    std::map<void*, std::int64_t> handed = {};

    BlockCache cache() {
        return BlockCache(
            [this](std::int64_t bytes) -> void* {
                ++calls;
                if (bytes > left_bytes) return nullptr;
                left_bytes -= bytes;
                void* block = std::malloc(1);
                handed[block] = bytes;
                return block;
            },
            [this](void* block) {
                left_bytes += handed.at(block);
                handed.erase(block);
                std::free(block);
            });
    }
};

TEST(BlockCache, HandsOutAgainWhatCameBack) {
    SmallDevice device{100 * kMiB};
    BlockCache cache = device.cache();
    void* const first = cache.take(3000);
    cache.give_back(first);
    EXPECT_EQ(cache.take(2900), first);
    EXPECT_EQ(device.calls, 1);
    cache.give_back(first);
}

TEST(BlockCache, CountsWhatIsHandedOutInWholeBlocks) {
    SmallDevice device{100 * kMiB};
    BlockCache cache = device.cache();
    void* const small = cache.take(1);
    void* const large = cache.take(3 * kMiB);
    EXPECT_EQ(cache.used_bytes(), 512 + 4 * kMiB);
    cache.give_back(small);
    cache.give_back(large);
    EXPECT_EQ(cache.used_bytes(), 0);
    EXPECT_EQ(cache.kept_bytes(), 512 + 4 * kMiB);
}

TEST(BlockCache, DoesNotWasteALargeBlockOnASmallRequest) {
    SmallDevice device{100 * kMiB};
    BlockCache cache = device.cache();
    void* const large = cache.take(40 * kMiB);
    cache.give_back(large);
    void* const small = cache.take(10 * kMiB);
    EXPECT_NE(small, large);
    void* const again = cache.take(34 * kMiB);
    EXPECT_EQ(again, large) << "a quarter more is not waste";
    cache.give_back(small);
    cache.give_back(again);
}

TEST(BlockCache, GivesWhatItKeepsBackBeforeItSaysThatThereIsNoMemory) {
    SmallDevice device{100 * kMiB};
    BlockCache cache = device.cache();
    void* const large = cache.take(60 * kMiB);
    cache.give_back(large);
    void* const other = cache.take(90 * kMiB);
    ASSERT_NE(other, nullptr);
    EXPECT_EQ(cache.kept_bytes(), 0);
    EXPECT_EQ(cache.take(20 * kMiB), nullptr);
    cache.give_back(other);
}

TEST(BlockCache, LeavesNothingBehind) {
    SmallDevice device{100 * kMiB};
    {
        BlockCache cache = device.cache();
        cache.give_back(cache.take(5 * kMiB));
    }
    EXPECT_EQ(device.left_bytes, 100 * kMiB);
}

}  // namespace
}  // namespace headway::tests
