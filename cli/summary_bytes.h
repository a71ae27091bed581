#pragma once

#include <string>

#include "scenarios/record/summary.h"

namespace headway::cli {

/// A summary as bytes, to pass from a worker process to its parent on the same machine. Never stored.
std::string to_bytes(const scenarios::RunSummary& summary);
/// Throws std::runtime_error for bytes that `to_bytes` did not make.
scenarios::RunSummary summary_from_bytes(const std::string& bytes);

}  // namespace headway::cli
