#pragma once

#include <stdexcept>
#include <string>

namespace headway::backend {

/// A call into a library or the system failed: "rank 1 of 4: all-reduce: connection closed by peer".
class BackendError : public std::runtime_error {
  public:
    BackendError(int rank, int size, const std::string& call, const std::string& why)
        : std::runtime_error("rank " + std::to_string(rank) + " of " + std::to_string(size) + ": " + call + ": " +
                             why) {}
    /// Of a call that no group of ranks has to do with: "cuda:0: cudaMalloc: out of memory".
    BackendError(const std::string& call, const std::string& why) : std::runtime_error(call + ": " + why) {}
};

}  // namespace headway::backend
