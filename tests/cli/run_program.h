#pragma once

#include <filesystem>
#include <string>

namespace headway::tests {

/// What a run of the program left behind.
struct ProgramResult {
    int exit_code = -1;  ///< 128 + signal for one that was killed
    std::string out;
    std::string err;
};

/// A folder of its own for a test, removed with the object.
class TestFolder {
  public:
    TestFolder();
    ~TestFolder();
    TestFolder(const TestFolder&) = delete;
    TestFolder& operator=(const TestFolder&) = delete;

    const std::filesystem::path& path() const { return path_; }
    /// Writes a file of the folder and returns its path.
    std::filesystem::path write(const std::string& name, const std::string& text) const;
    std::string read(const std::string& name) const;
    bool has(const std::string& name) const { return std::filesystem::exists(path_ / name); }

    /// Runs `headway ARGUMENTS` in the folder; `arguments` is shell text, `redirections` goes behind it and wins over
    /// the capture of the streams.
    ProgramResult headway(const std::string& arguments, const std::string& redirections = "") const;

  private:
    std::filesystem::path path_;
};

/// A job of 16 GPUs that runs in milliseconds.
std::string small_scenario(const std::string& further_sections = "");

}  // namespace headway::tests
