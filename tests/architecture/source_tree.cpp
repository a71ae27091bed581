#include "tests/architecture/source_tree.h"

#include <algorithm>
#include <fstream>
#include <iterator>
#include <stdexcept>

namespace headway::tests {

namespace fs = std::filesystem;

namespace {

bool is_outside_the_sources(const fs::path& folder) {
    const std::string name = folder.filename().string();
    const bool hidden = name.starts_with(".") && name != ".ci";
    return hidden || name == "build" || name.starts_with("build-");
}

std::string read_whole_file(const fs::path& file) {
    std::ifstream stream(file, std::ios::binary);
    if (!stream) throw std::runtime_error("cannot read " + file.string());
    return {std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>()};
}

}  // namespace

std::vector<SourceFile> read_source_tree(const fs::path& root) {
    std::vector<SourceFile> files;
    for (auto entry = fs::recursive_directory_iterator(root); entry != fs::recursive_directory_iterator(); ++entry) {
        if (entry->is_directory()) {
            if (is_outside_the_sources(entry->path())) entry.disable_recursion_pending();
        } else if (entry->is_regular_file()) {
            files.push_back({fs::relative(entry->path(), root).generic_string(), read_whole_file(entry->path())});
        }
    }
    std::sort(files.begin(), files.end(), [](const auto& a, const auto& b) { return a.path < b.path; });
    return files;
}

bool is_code(const std::string& path) {
    return path.ends_with(".h") || path.ends_with(".cpp") || path.ends_with(".cu") || path.ends_with(".cuh");
}

}  // namespace headway::tests
