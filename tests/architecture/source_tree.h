#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace headway::tests {

/// One text file of the repository. `path` is relative to the root, with forward slashes.
struct SourceFile {
    std::string path;
    std::string text;
};

/// Every regular file under `root` outside build folders and hidden folders, sorted by path. Files are read whole.
std::vector<SourceFile> read_source_tree(const std::filesystem::path& root);

/// True for the C++ and CUDA sources and headers that the rules of the house are about.
bool is_code(const std::string& path);

}  // namespace headway::tests
