#include "backend/transformer/tensor_group.h"

#include <stdexcept>

namespace headway::backend {

TensorGroup::TensorGroup(Device& device, Communicator* communicator, const scenarios::Layout& layout, int rank)
    : device_(device),
      communicator_(communicator),
      rank_(rank),
      size_(layout.tensor),
      slices_(layout.tensor > 1 && layout.sequence_parallel) {
    if (size_ == 1) return;
    if (communicator == nullptr || communicator->size() != size_ || communicator->rank() != rank)
        throw std::invalid_argument("tensor parallelism over " + std::to_string(size_) +
                                    " ranks needs a communicator of as many, with the same rank");
}

std::pair<Tensor, TensorGroup::Pending> TensorGroup::whole(const Tensor& part, OwnedTensor& room) {
    if (!slices_) return {part, nullptr};
    room = OwnedTensor(device_, part.type, part.rows * size_, part.columns);
    return {room.tensor, communicator_->all_gather(part, room.tensor)};
}

Tensor TensorGroup::partial(const Tensor& result, OwnedTensor& room) {
    if (!slices_) return result;
    room = OwnedTensor(device_, result.type, result.rows * size_, result.columns);
    return room.tensor;
}

TensorGroup::Pending TensorGroup::sum(const Tensor& partial, const Tensor& result) {
    if (alone()) return nullptr;
    if (slices_) return communicator_->reduce_scatter(partial, result);
    return communicator_->all_reduce(result, ReduceOperation::kSum);
}

void TensorGroup::all_reduce(const Tensor& tensor, ReduceOperation operation) {
    if (alone()) return;
    Pending pending = communicator_->all_reduce(tensor, operation);
    wait(pending);
}

void TensorGroup::wait(Pending& pending) {
    if (!pending) return;
    const Mark begin = device_.mark();
    pending->wait();
    waits_.emplace_back(begin, device_.mark());
    pending.reset();
}

scenarios::Duration TensorGroup::take_exposed() {
    scenarios::Duration sum;
    for (const auto& [begin, end] : waits_) sum = sum + (device_.time_of(end) - device_.time_of(begin));
    waits_.clear();
    return sum;
}

}  // namespace headway::backend
