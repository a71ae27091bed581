#include "backend/data/token_source.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <numeric>
#include <set>
#include <stdexcept>

#include "scenarios/language/config_error.h"
#include "tests/backend/data/token_files.h"
#include "tests/paths.h"

namespace headway::backend {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::StartsWith;

std::vector<std::int32_t> sample_of(const TokenSource& source, std::uint64_t seed, std::int64_t sample, int size) {
    std::vector<std::int32_t> sequence(static_cast<std::size_t>(size));
    source.read(seed, sample, sequence);
    return sequence;
}

std::string token_error(const std::filesystem::path& file, int sequence_length, int vocabulary) {
    try {
        open_tokens(file, sequence_length, vocabulary);
    } catch (const scenarios::ConfigError& error) {
        EXPECT_THAT(error.what(), StartsWith(file.string() + ": "));
        return error.what();
    }
    return "no error";
}

std::vector<std::uint16_t> counting(int count) {
    std::vector<std::uint16_t> tokens(static_cast<std::size_t>(count));
    std::iota(tokens.begin(), tokens.end(), std::uint16_t{0});
    return tokens;
}

TEST(TokenSource, ReadsPlainTextAsBytes) {
    const TokenFiles files;
    const auto source = open_tokens(files.text("caf\xc3\xa9"), 4, 50257);
    EXPECT_EQ(source->tokens(), 5);
    EXPECT_EQ(source->vocabulary(), 256);
    EXPECT_EQ(sample_of(*source, 1, 0, 5), (std::vector<std::int32_t>{'c', 'a', 'f', 0xc3, 0xa9}));
}

TEST(TokenSource, ReadsShardsOfGpt2Tokens) {
    const TokenFiles files;
    const auto source = open_tokens(files.shard<std::uint16_t>(20240520, 1, 4, {50256, 0, 65535, 7}), 3, 65536);
    EXPECT_EQ(source->tokens(), 4);
    EXPECT_EQ(source->vocabulary(), 65536);
    EXPECT_EQ(sample_of(*source, 1, 0, 4), (std::vector<std::int32_t>{50256, 0, 65535, 7}));
}

TEST(TokenSource, ReadsShardsOfLlama3Tokens) {
    const TokenFiles files;
    const auto source = open_tokens(files.shard<std::uint32_t>(20240801, 7, 3, {128000, 1, 70000}), 2, 128256);
    EXPECT_EQ(source->vocabulary(), 128256);
    EXPECT_EQ(sample_of(*source, 1, 0, 3), (std::vector<std::int32_t>{128000, 1, 70000}));
}

/// 40 sequences of 8, and 5 tokens that are left: 326 = 40 x 8 + 1 + 5.
TEST(TokenSource, DrawsEverySequenceOncePerEpochInAnotherOrderEachTime) {
    const TokenFiles files;
    const auto source = open_tokens(files.shard(20240520, 1, 326, counting(326)), 8, 326);
    std::vector<std::vector<std::int32_t>> orders;
    std::set<std::int32_t> beginnings;
    for (int epoch = 0; epoch < 60; ++epoch) {
        std::vector<std::int32_t> order;
        for (int i = 0; i < 40; ++i) {
            const auto sequence = sample_of(*source, 5, epoch * 40 + i, 9);
            for (int t = 0; t < 9; ++t)
                ASSERT_EQ(sequence[static_cast<std::size_t>(t)], sequence[0] + t) << "consecutive tokens";
            order.push_back(sequence[0]);
        }
        orders.push_back(order);
        std::sort(order.begin(), order.end());
        beginnings.insert(order[0]);
        for (int i = 0; i < 40; ++i) ASSERT_EQ(order[static_cast<std::size_t>(i)], order[0] + 8 * i);
        ASSERT_GE(order[0], 0);
        ASSERT_LE(order[0], 5);
    }
    EXPECT_NE(orders[0], orders[1]);
    EXPECT_EQ(beginnings.size(), 6U) << "what is left over is learned from too";
}

TEST(TokenSource, DrawsTheSameInEveryProcessAndForAnySampleAtOnce) {
    const TokenFiles files;
    const auto file = files.shard(20240520, 1, 1000, counting(1000));
    const auto one = open_tokens(file, 10, 1000), other = open_tokens(file, 10, 1000);
    sample_of(*one, 1, 3, 11);
    EXPECT_EQ(sample_of(*one, 1, 1'000'000'007, 11), sample_of(*other, 1, 1'000'000'007, 11));
    EXPECT_EQ(sample_of(*one, 1, 42, 11), sample_of(*other, 1, 42, 11));
    std::vector<std::int32_t> first, second;
    for (int i = 0; i < 20; ++i) {
        first.push_back(sample_of(*one, 1, i, 1)[0]);
        second.push_back(sample_of(*one, 2, i, 1)[0]);
    }
    EXPECT_NE(first, second) << "another seed, another order";
}

TEST(TokenSource, TakesExactlyOneSequence) {
    const TokenFiles files;
    const auto source = open_tokens(files.text("abcd"), 3, 256);
    EXPECT_EQ(sample_of(*source, 1, 0, 4), sample_of(*source, 9, 77, 4));
}

TEST(TokenSource, RefusesAMissingFileOrAFolder) {
    const TokenFiles files;
    EXPECT_THAT(token_error(files.folder() / "none.txt", 4, 256), EndsWith(": no such file"));
    EXPECT_THAT(token_error(files.folder(), 4, 256), EndsWith(": is a folder, not a file"));
}

TEST(TokenSource, RefusesAnEmptyFile) {
    const TokenFiles files;
    EXPECT_THAT(token_error(files.text(""), 4, 256), EndsWith(": is empty"));
}

TEST(TokenSource, RefusesLessThanOneSequence) {
    const TokenFiles files;
    EXPECT_THAT(token_error(files.text("abcd"), 4, 256),
                EndsWith(": 4 tokens are shorter than one sequence (4 tokens and the target of the last)"));
    EXPECT_THAT(token_error(files.shard<std::uint16_t>(20240520, 1, 0, {}), 4, 256),
                HasSubstr(": 0 tokens are shorter"));
}

TEST(TokenSource, RefusesACutShard) {
    const TokenFiles files;
    const auto file = files.shard(20240520, 1, 100, counting(100));
    std::filesystem::resize_file(file, 1024 + 150);
    EXPECT_THAT(token_error(file, 4, 256), HasSubstr("says 100 tokens of 2 bytes, but 150 bytes follow"));
    std::filesystem::resize_file(file, 1000);
    EXPECT_THAT(token_error(file, 4, 256), HasSubstr("cut within its header, at 1000 bytes"));
    EXPECT_THAT(token_error(files.shard(20240520, 1, 99, counting(100)), 4, 256), HasSubstr("says 99 tokens"));
    EXPECT_THAT(token_error(files.shard(20240520, 1, -1, counting(100)), 4, 256), HasSubstr("says -1 tokens"));
}

TEST(TokenSource, RefusesAShardOfAnotherVersion) {
    const TokenFiles files;
    EXPECT_THAT(token_error(files.shard(20240520, 2, 100, counting(100)), 4, 256),
                EndsWith("a token shard of version 2, not 1"));
}

TEST(TokenSource, NamesTheFirstTokenBeyondTheVocabulary) {
    const TokenFiles files;
    EXPECT_THAT(token_error(files.shard(20240520, 1, 10'000, counting(10'000)), 4, 9000),
                EndsWith(": token 9000 is 9000, beyond the model's vocabulary of 9000"));
    EXPECT_EQ(open_tokens(files.shard(20240520, 1, 9000, counting(9000)), 4, 9000)->vocabulary(), 9000);
    EXPECT_THAT(token_error(files.text("plain ASCII, but \xc3\xa9"), 4, 128),
                EndsWith(": token 17 is 195, beyond the model's vocabulary of 128"));
}

TEST(TokenSource, RefusesAPipeInsteadOfWaitingForIt) {
    const TokenFiles files;
    const std::filesystem::path pipe = files.folder() / "pipe";
    ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
    EXPECT_THAT(token_error(pipe, 4, 256), EndsWith("is not a plain file"));
}

TEST(TokenSource, RefusesLongerReadsThanItWasOpenedFor) {
    const TokenFiles files;
    const auto source = open_tokens(files.text("some text"), 4, 256);
    EXPECT_THROW(sample_of(*source, 1, 0, 6), std::invalid_argument);
    EXPECT_THROW(sample_of(*source, 1, -1, 5), std::invalid_argument);
}

TEST(TokenSource, OpensTheTextThatShips) {
    const auto source = open_tokens(tests::source_directory() / "scenarios/data/persuasion.txt", 1024, 128);
    EXPECT_GT(source->tokens(), 400'000);
}

}  // namespace
}  // namespace headway::backend
