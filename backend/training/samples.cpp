#include "backend/training/samples.h"

#include <algorithm>

namespace headway::backend {

Samples::Samples(const scenarios::Job& job, const scenarios::Plan& plan, int replica, Device& device,
                 const TokenSource& tokens)
    : device_(device),
      tokens_(tokens),
      global_batch_(job.global_batch),
      micro_batch_(job.micro_batch),
      length_(job.model.sequence_length) {
    share(plan, replica);
    sequence_.resize(static_cast<std::size_t>(length_ + 1));
    rows_.resize(static_cast<std::size_t>(2 * micro_batch_ * length_));
}

void Samples::share(const scenarios::Plan& plan, int replica) {
    first_of_replica_ = 0;
    for (int r = 0; r < replica; ++r)
        first_of_replica_ += micro_batch_ * plan.micro_batches_of_replica[static_cast<std::size_t>(r)];
}

void Samples::begin(std::int64_t step, std::uint64_t seed) {
    step_ = step;
    seed_ = seed;
}

Tensor Samples::read(int micro_batch) {
    const std::int64_t tokens = micro_batch_ * length_;
    const std::int64_t first = step_ * global_batch_ + first_of_replica_ + micro_batch * micro_batch_;
    for (std::int64_t i = 0; i < micro_batch_; ++i) {
        tokens_.read(seed_, first + i, sequence_);
        std::copy(sequence_.begin(), sequence_.end() - 1, rows_.begin() + i * length_);
        std::copy(sequence_.begin() + 1, sequence_.end(), rows_.begin() + tokens + i * length_);
    }
    Buffer& buffer = kept_[micro_batch] = device_.allocate(DataType::kInt32, 2 * tokens);
    const Tensor read = buffer.tensor(DataType::kInt32, 2, tokens);
    device_.from_host(rows_.data(), read);
    return read;
}

}  // namespace headway::backend
