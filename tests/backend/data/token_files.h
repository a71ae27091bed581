#pragma once

#include <unistd.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

/// Files of tokens for tests, in a folder of their own that goes with them.
namespace headway::backend {

class TokenFiles {
  public:
    TokenFiles() {
        std::string pattern = (std::filesystem::temp_directory_path() / "headway-tokens-XXXXXX").string();
        folder_ = ::mkdtemp(pattern.data());
    }
    TokenFiles(const TokenFiles&) = delete;
    TokenFiles& operator=(const TokenFiles&) = delete;
    ~TokenFiles() { std::filesystem::remove_all(folder_); }

    const std::filesystem::path& folder() const { return folder_; }

    std::filesystem::path text(const std::string& content) const { return write("text.txt", content); }

    /// As llm.c writes them: 256 int32 of header, then the tokens. `count`: what the header says.
    template <typename Token>
    std::filesystem::path shard(std::int32_t magic, std::int32_t version, std::int32_t count,
                                const std::vector<Token>& tokens) const {
        std::vector<std::int32_t> header(256);
        header[0] = magic;
        header[1] = version;
        header[2] = count;
        std::string content(reinterpret_cast<const char*>(header.data()), header.size() * sizeof header[0]);
        content.append(reinterpret_cast<const char*>(tokens.data()), tokens.size() * sizeof(Token));
        return write("shard.bin", content);
    }

    std::filesystem::path write(const std::string& name, const std::string& content) const {
        std::ofstream(folder_ / name, std::ios::binary) << content;
        return folder_ / name;
    }

  private:
    std::filesystem::path folder_;
};

}  // namespace headway::backend
