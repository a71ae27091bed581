#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "tests/architecture/source_tree.h"

namespace headway::tests {

/// What is wrong with the includes of one file, one message each; empty when the file keeps the rules of the house:
/// who may include whom, which third-party library belongs where, includes written from the root, own header first.
/// `exists` tells whether a path from the root is a file of the repository.
std::vector<std::string> include_violations(const SourceFile& file,
                                            const std::function<bool(const std::string&)>& exists);

/// The targets of all `#include` lines of a text that begin with `prefix`.
std::vector<std::string> included(std::string_view text, std::string_view prefix);

}  // namespace headway::tests
