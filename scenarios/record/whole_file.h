#pragma once

#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>

namespace headway::scenarios {

/// A file that appears under its name only when it is whole: written beside it under a temporary name and renamed by
/// `commit`. Without `commit` nothing is left. Errors: std::runtime_error naming the file.
class WholeFile {
  public:
    explicit WholeFile(std::filesystem::path path);
    ~WholeFile();
    WholeFile(const WholeFile&) = delete;
    WholeFile& operator=(const WholeFile&) = delete;

    void write(std::string_view text);
    void commit();
    const std::filesystem::path& path() const { return path_; }

  private:
    [[noreturn]] void fail(int error) const;

    struct Close {
        void operator()(std::FILE* file) const { std::fclose(file); }
    };
    std::filesystem::path path_;
    std::filesystem::path temporary_;  ///< empty where the target is no regular file and is written directly
    std::unique_ptr<std::FILE, Close> file_;
};

}  // namespace headway::scenarios
