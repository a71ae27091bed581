#include "cli/output_file.h"

#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <string_view>
#include <system_error>

#include "scenarios/language/config_error.h"

namespace headway::cli {

namespace fs = std::filesystem;

void expect_writable(const std::string& option, const fs::path& file, bool force) {
    const auto refuse = [&](const std::string& why) {
        throw scenarios::ConfigError(option + " " + file.string() + ": " + why);
    };
    if (file.empty()) refuse("a file name is needed");
    std::error_code ignored;
    const fs::path folder = file.has_parent_path() ? file.parent_path() : fs::path(".");
    if (fs::is_directory(file, ignored)) refuse("is a folder");
    if (!fs::is_directory(folder, ignored)) refuse("there is no folder " + folder.string());
    if (fs::exists(file, ignored)) {
        // Of a pipe or device the writer would wait for a reader, or destroy what is no file.
        if (!fs::is_regular_file(file, ignored)) refuse("is no regular file");
        if (!force) refuse("exists (--force overwrites it)");
        if (::access(file.c_str(), W_OK) != 0) refuse(std::strerror(errno));
    } else if (::access(folder.c_str(), W_OK | X_OK) != 0) {
        refuse("folder " + folder.string() + ": " + std::strerror(errno));
    }
}

void expect_record_or_nothing(const std::string& option, const fs::path& file) {
    constexpr std::string_view kStart = "{\"record\":";
    std::string start(kStart.size(), ' ');
    std::ifstream stream(file, std::ios::binary);
    if (!stream || stream.peek() == std::ifstream::traits_type::eof()) return;
    if (stream.read(start.data(), static_cast<std::streamsize>(start.size())) && start == kStart) return;
    throw scenarios::ConfigError(option + " " + file.string() + ": exists and is no run record (remove it first)");
}

void expect_another_file(const std::string& option, const fs::path& file, const fs::path& other,
                         const std::string& what) {
    std::error_code ignored;
    if (fs::equivalent(file, other, ignored) ||
        fs::weakly_canonical(fs::absolute(file)) == fs::weakly_canonical(fs::absolute(other)))
        throw scenarios::ConfigError(option + " " + file.string() + ": is " + what);
}

void expect_readable(const fs::path& file, const std::string& what) {
    std::error_code ignored;
    if (fs::is_directory(file, ignored)) throw scenarios::ConfigError(file.string() + ": is a folder, not " + what);
    if (::access(file.c_str(), R_OK) != 0) {
        throw scenarios::ConfigError(file.string() + ": " + std::strerror(errno) + " (expected " + what + ")");
    }
}

}  // namespace headway::cli
