#pragma once

#include <filesystem>
#include <string>

namespace headway::cli {

/// Throws ConfigError, naming the option, when `file` is no name, cannot be written, is no regular file, or exists and
/// `force` is false. Asked before
/// anything runs, so that a long run does not end without its output.
void expect_writable(const std::string& option, const std::filesystem::path& file, bool force);

/// Throws ConfigError, naming the option, when `file` holds something and it is no run record: --force replaces an
/// older record, and nothing else.
void expect_record_or_nothing(const std::string& option, const std::filesystem::path& file);

/// Throws ConfigError, naming the option, when `file` is the same file as `other`, which is `what`, under whatever
/// names.
void expect_another_file(const std::string& option, const std::filesystem::path& file,
                         const std::filesystem::path& other, const std::string& what);

/// Throws ConfigError for an input file that does not exist or cannot be read.
void expect_readable(const std::filesystem::path& file, const std::string& what);

}  // namespace headway::cli
