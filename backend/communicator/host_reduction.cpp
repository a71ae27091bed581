#include "backend/communicator/host_reduction.h"

#include <numeric>
#include <utility>
#include <vector>

namespace headway::backend {

HostReduction::HostReduction(const RendezvousPoint& point, int rank, int size, std::chrono::milliseconds timeout)
    : control_(point, rank, size, timeout), maker_(control_, timeout) {
    std::vector<int> members(static_cast<std::size_t>(size));
    std::iota(members.begin(), members.end(), 0);
    all_ = std::move(maker_.make({{"training", members}}).front());
}

void HostReduction::sum(std::span<double> values) {
    const auto count = static_cast<std::int64_t>(values.size());
    all_->all_reduce({values.data(), DataType::kFloat64, 1, count, count}, ReduceOperation::kSum)->wait();
}

}  // namespace headway::backend
