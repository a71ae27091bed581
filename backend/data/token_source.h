#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>

namespace headway::backend {

/// A corpus of tokens, from which sequences are drawn.
class TokenSource {
  public:
    virtual ~TokenSource() = default;
    virtual std::int64_t tokens() const = 0;
    virtual int vocabulary() const = 0;  ///< largest token + 1 that can occur
    /// Sequence number `sample` of the endless, shuffled stream of `seed`: `sequence.size()` consecutive tokens (a
    /// sequence and its last target). The same in every process.
    virtual void read(std::uint64_t seed, std::int64_t sample, std::span<std::int32_t> sequence) const = 0;
};

/// Plain text as bytes (vocabulary 256), or a token shard of llm.c (256 int32 of header: 20240520, version 1, count;
/// then uint16 tokens), recognised by its first bytes; mapped, not read. `sequence_length` and `vocabulary` are the
/// model's. Throws ConfigError naming the file: missing, empty, shorter than one sequence, cut, a token beyond the
/// model's vocabulary.
std::unique_ptr<TokenSource> open_tokens(const std::filesystem::path& file, int sequence_length, int vocabulary);

}  // namespace headway::backend
