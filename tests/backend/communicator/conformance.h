#pragma once

#include <cstdint>
#include <cstring>
#include <functional>
#include <numeric>
#include <string>
#include <vector>

#include "backend/communicator/communicator.h"
#include "backend/device/device.h"
#include "backend/processors.h"
#include "tests/backend/local_ranks.h"

/// The suite that every implementation of Communicator passes. A new one is added to communicator_kinds().
namespace headway::backend {

struct CommunicatorKind {
    std::string name;
    std::vector<DataType> reduced;  ///< types that it adds up
    /// Why a group of `size` cannot run on this machine; empty: it can. Called in the test's process, which forks the
    /// ranks afterwards.
    std::function<std::string(int size)> missing;
    /// In a rank.
    std::function<Processors(Control& control, std::chrono::milliseconds timeout)> make;
};

const std::vector<CommunicatorKind>& communicator_kinds();

/// Device memory with values, as a rank of the suite uses it.
template <typename Number>
class Values {
  public:
    Values(Device& device, DataType type, const std::vector<Number>& values)
        : device_(device), buffer_(device.allocate(type, static_cast<std::int64_t>(values.size()) + 1)), type_(type) {
        count_ = static_cast<std::int64_t>(values.size());
        if (!values.empty()) device.from_host(values.data(), tensor());
    }
    Tensor tensor() const { return {buffer_.data(), type_, 1, count_, count_}; }
    std::vector<Number> read() const {
        std::vector<Number> values(static_cast<std::size_t>(count_));
        if (count_ > 0) device_.to_host(tensor(), values.data());
        return values;
    }

  private:
    Device& device_;
    Buffer buffer_;
    DataType type_;
    std::int64_t count_ = 0;
};

/// Members 0 to size - 1 of one group.
inline std::vector<int> everybody(int size) {
    std::vector<int> members(static_cast<std::size_t>(size));
    std::iota(members.begin(), members.end(), 0);
    return members;
}

inline std::vector<GroupSpec> one_group(int size) {
    return {{"all", everybody(size)}};
}

}  // namespace headway::backend
