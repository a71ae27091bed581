#include "backend/checkpoint/state_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "backend/backend_error.h"
#include "scenarios/language/config_error.h"
#include "tests/backend/checkpoint/saved_state.h"

namespace headway::backend {
namespace {

using scenarios::BlockKind;
using ::testing::HasSubstr;

/// Part `i` of element `e` is e + i / 4, from element 1000 on.
StagedPart counted_part(const scenarios::Block& block, std::int64_t elements) {
    StagedPart staged{{block, {1000, 1000 + elements}}, false, {}};
    for (std::size_t i = 0; i < kStateParts; ++i) {
        std::vector<float> values;
        for (std::int64_t e = 0; e < elements; ++e)
            values.push_back(static_cast<float>(1000 + e) + 0.25F * static_cast<float>(i));
        staged.state[i] = HostCopy(elements * 4);
        std::memcpy(staged.state[i].data(), values.data(), values.size() * sizeof(float));
    }
    return staged;
}

class StateFile : public ::testing::Test {
  protected:
    static constexpr std::int64_t kElements = 2 * kChunkElements + 500;

    StateFile() {
        std::vector<StagedPart> parts;
        parts.push_back(counted_part({BlockKind::kHead, -1}, 10));
        parts.push_back(counted_part({BlockKind::kLayerSplit, 3}, kElements));
        saved_ = write_state_file(folder_.path() / "state", parts, [] { return std::string(); });
    }

    ScratchFolder folder_;
    SavedFile saved_;
};

TEST_F(StateFile, IsReadInAnyPart) {
    StateFileReader reader(folder_.path(), saved_, kChunkElements);
    ASSERT_EQ(saved_.parts[1].checksums[0].size(), 3U);
    std::vector<double> values(kElements);
    reader.read(saved_.parts[1], 2, {1000, 1000 + kElements}, values.data());
    for (std::int64_t e = 0; e < kElements; ++e)
        ASSERT_EQ(values[static_cast<std::size_t>(e)], static_cast<float>(1000 + e) + 0.5F);
    std::vector<float> few(2);
    reader.read(saved_.parts[1], 1, {999 + kChunkElements, 1001 + kChunkElements}, few.data());
    EXPECT_EQ(few[0], 999.25F + static_cast<float>(kChunkElements));
    EXPECT_EQ(few[1], 1000.25F + static_cast<float>(kChunkElements));
}

TEST_F(StateFile, IsReadNoFurtherThanItsChunksNeed) {
    StateFileReader reader(folder_.path(), saved_, kChunkElements);
    const std::int64_t header = reader.bytes_read();
    EXPECT_LT(header, 2000);
    float value = 0;
    reader.read(saved_.parts[1], 0, {1000 + kChunkElements, 1001 + kChunkElements}, &value);
    EXPECT_EQ(reader.bytes_read() - header, kChunkElements * 4);
    reader.read(saved_.parts[1], 0, {999 + kElements, 1000 + kElements}, &value);
    EXPECT_EQ(reader.bytes_read() - header, kChunkElements * 4 + 500 * 4);
}

TEST_F(StateFile, DamageIsFoundInTheChunkThatHasIt) {
    std::string text = text_of_file(folder_.path() / "state", 1 << 30);
    text[text.size() - 3] ^= 1;
    replace_file(folder_.path() / "state", text);
    StateFileReader reader(folder_.path(), saved_, kChunkElements);
    std::vector<float> values(kElements);
    reader.read(saved_.parts[1], 2, {1000, 1000 + 2 * kChunkElements}, values.data());
    try {
        reader.read(saved_.parts[1], 2, {1000, 1000 + kElements}, values.data());
        FAIL() << "was not found";
    } catch (const scenarios::ConfigError& error) {
        EXPECT_THAT(error.what(),
                    HasSubstr("tensor 'layer 3 split 1000:2098652 second_moment' is damaged: the checksum of "
                              "elements 2098152 to 2098652 differs"));
    }
}

TEST_F(StateFile, IsGivenUpOnRequest) {
    std::vector<StagedPart> parts;
    parts.push_back(counted_part({BlockKind::kHead, -1}, 10));
    EXPECT_THROW(write_state_file(folder_.path() / "other", parts, [] { return std::string("enough"); }), BackendError);
}

}  // namespace
}  // namespace headway::backend
