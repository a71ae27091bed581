#include "tests/paths.h"

namespace headway::tests {

std::filesystem::path source_directory() {
    return HEADWAY_SOURCE_DIRECTORY;
}
std::filesystem::path headway_program() {
    return HEADWAY_PROGRAM;
}
std::filesystem::path policies_library() {
    return HEADWAY_POLICIES_LIBRARY;
}
bool long_tests() {
    return HEADWAY_LONG_TESTS;
}

}  // namespace headway::tests
