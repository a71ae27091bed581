#pragma once

#include <filesystem>

/// Where a test finds what it reads and runs, and how long it may take. Set by the build, so that a test program can be
/// started from any folder.
namespace headway::tests {

/// Root of the source tree.
std::filesystem::path source_directory();

/// The `headway` program of this build.
std::filesystem::path headway_program();

/// The library `libheadway_policies.a` of this build.
std::filesystem::path policies_library();

/// True in a build for `./headway test --long`: more seeds, longer fuzzing, soaks.
bool long_tests();

}  // namespace headway::tests
