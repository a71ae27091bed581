#include "backend/data/token_source.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <limits>
#include <numeric>
#include <stdexcept>

#include "backend/data/mapped_file.h"
#include "backend/data/permutation.h"
#include "scenarios/language/config_error.h"
#include "scenarios/language/random.h"

namespace headway::backend {
namespace {

static_assert(std::endian::native == std::endian::little, "token shards are little-endian");

/// Header of llm.c's shards: 256 int32, of which these are used (llm.c, dev/data/data_common.py).
struct TokenShardKind {
    std::int32_t magic;
    std::int32_t version;
    std::size_t bytes_of_token;
};
constexpr std::array<TokenShardKind, 2> kTokenShardKinds = {{{20240520, 1, 2}, {20240801, 7, 4}}};  // GPT-2, Llama 3
constexpr std::size_t kTokenShardHeader = 256 * sizeof(std::int32_t);

/// Tokens of unsigned type T in a mapped file.
template <typename T>
class MappedTokens : public TokenSource {
  public:
    MappedTokens(std::unique_ptr<MappedFile> file, std::size_t offset, const std::string& name, int sequence_length,
                 int vocabulary)
        : file_(std::move(file)),
          data_(reinterpret_cast<const T*>(file_->bytes().data() + offset)),  // NOLINT: offset is a multiple of 4
          count_(static_cast<std::int64_t>((file_->bytes().size() - offset) / sizeof(T))),
          length_(sequence_length) {
        if (count_ < length_ + 1)
            throw scenarios::ConfigError(name + ": " + std::to_string(count_) +
                                         " tokens are shorter than one sequence (" + std::to_string(length_) +
                                         " tokens and the target of the last)");
        if (std::numeric_limits<T>::max() < static_cast<std::uint64_t>(vocabulary)) {
            vocabulary_ = static_cast<int>(std::numeric_limits<T>::max()) + 1;
            return;  // nothing can be beyond
        }
        vocabulary_ = vocabulary;
        const T* beyond = data_;
        // Largest token of a block first: that loop becomes vectors.
        for (std::int64_t block = 0; beyond != data_ + count_; beyond = data_ + std::min(block, count_)) {
            const T* const end = data_ + std::min(block + 4096, count_);
            if (static_cast<std::uint64_t>(std::accumulate(data_ + block, end, T{0}, [](T x, T y) {
                    return std::max(x, y);
                })) >= static_cast<std::uint64_t>(vocabulary)) {
                beyond =
                    std::find_if(data_ + block, end, [&](T t) { return t >= static_cast<std::uint64_t>(vocabulary); });
                break;
            }
            block += 4096;
        }
        if (beyond != data_ + count_)
            throw scenarios::ConfigError(name + ": token " + std::to_string(beyond - data_) + " is " +
                                         std::to_string(*beyond) + ", beyond the model's vocabulary of " +
                                         std::to_string(vocabulary));
    }

    std::int64_t tokens() const override { return count_; }
    int vocabulary() const override { return vocabulary_; }

    void read(std::uint64_t seed, std::int64_t sample, std::span<std::int32_t> sequence) const override {
        const auto size = static_cast<std::int64_t>(sequence.size());
        if (sample < 0 || size > length_ + 1)
            throw std::invalid_argument("tokens: a sample before the first, or longer than what was opened for");
        const std::int64_t sequences = (count_ - 1) / length_;
        const auto epoch = static_cast<std::uint64_t>(sample / sequences);
        // Sequences begin elsewhere in each epoch, as far as the rest allows, so that it is learned from too.
        const std::int64_t rest = count_ - 1 - sequences * length_;
        const std::int64_t first = scenarios::RandomStream(seed, "first sequence", epoch).below(rest + 1);
        const std::int64_t begin = first + Permutation(sequences, seed, epoch)(sample % sequences) * length_;
        std::copy(data_ + begin, data_ + begin + size, sequence.begin());
    }

  private:
    std::unique_ptr<MappedFile> file_;
    const T* data_;
    std::int64_t count_;
    std::int64_t length_;
    int vocabulary_ = 0;
};

/// Kind of the shard that the file is; null: it is plain text. Throws for a shard that is not whole.
const TokenShardKind* token_shard_kind(std::span<const std::byte> bytes, const std::string& name) {
    std::array<std::int32_t, 3> header{};
    std::memcpy(header.data(), bytes.data(), std::min(bytes.size(), sizeof header));
    const auto kind = std::find_if(kTokenShardKinds.begin(), kTokenShardKinds.end(),
                                   [&](const TokenShardKind& k) { return k.magic == header[0]; });
    if (bytes.size() < sizeof header[0] || kind == kTokenShardKinds.end()) return nullptr;
    if (bytes.size() < kTokenShardHeader)
        throw scenarios::ConfigError(name + ": a token shard cut within its header, at " +
                                     std::to_string(bytes.size()) + " bytes");
    if (header[1] != kind->version)
        throw scenarios::ConfigError(name + ": a token shard of version " + std::to_string(header[1]) + ", not " +
                                     std::to_string(kind->version));
    const std::size_t held = bytes.size() - kTokenShardHeader;
    if (header[2] < 0 || static_cast<std::size_t>(header[2]) * kind->bytes_of_token != held)
        throw scenarios::ConfigError(name + ": its header says " + std::to_string(header[2]) + " tokens of " +
                                     std::to_string(kind->bytes_of_token) + " bytes, but " + std::to_string(held) +
                                     " bytes follow: cut, or not a token shard");
    return &*kind;
}

}  // namespace

std::unique_ptr<TokenSource> open_tokens(const std::filesystem::path& file, int sequence_length, int vocabulary) {
    if (sequence_length < 1 || vocabulary < 1)
        throw std::invalid_argument("tokens: a sequence of none, or no vocabulary");
    const std::string name = file.string();
    auto mapped = std::make_unique<MappedFile>(file);
    if (mapped->bytes().empty()) throw scenarios::ConfigError(name + ": is empty");
    const TokenShardKind* const kind = token_shard_kind(mapped->bytes(), name);
    if (kind == nullptr)
        return std::make_unique<MappedTokens<std::uint8_t>>(std::move(mapped), 0, name, sequence_length, vocabulary);
    if (kind->bytes_of_token == 2)
        return std::make_unique<MappedTokens<std::uint16_t>>(std::move(mapped), kTokenShardHeader, name,
                                                             sequence_length, vocabulary);
    return std::make_unique<MappedTokens<std::uint32_t>>(std::move(mapped), kTokenShardHeader, name, sequence_length,
                                                         vocabulary);
}

}  // namespace headway::backend
