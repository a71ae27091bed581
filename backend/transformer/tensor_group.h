#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "backend/communicator/communicator.h"
#include "backend/device/device.h"
#include "backend/transformer/owned_tensor.h"
#include "scenarios/language/plan.h"

namespace headway::backend {

/// The tensor-parallel ranks of a chunk: the conjugate operators at the borders of the split layers (f and g of Shoeybi
/// et al. 2019; with sequence parallelism g-bar, Korthikanti et al. 2022), and how long they were waited for. Outside
/// the split layers activations have `activation_rows` rows: all, or this rank's part of them with sequence
/// parallelism.
class TensorGroup {
  public:
    /// A collective under way; nothing where there is one rank only.
    using Pending = std::unique_ptr<Work>;

    /// `communicator` is null for one rank. Both are kept.
    TensorGroup(Device& device, Communicator* communicator, const scenarios::Layout& layout, int rank);

    int rank() const { return rank_; }
    int size() const { return size_; }
    bool alone() const { return size_ == 1; }
    /// Whether ranks have different rows outside the split layers.
    bool slices() const { return slices_; }

    /// All rows: `part` itself, or what is being gathered into `room`, which is made for it.
    std::pair<Tensor, Pending> whole(const Tensor& part, OwnedTensor& room);
    /// Where each rank puts its share of a sum that ends in `result` [activation rows]: `result`, or `room`.
    Tensor partial(const Tensor& result, OwnedTensor& room);
    /// Sums what was put there.
    Pending sum(const Tensor& partial, const Tensor& result);
    void all_reduce(const Tensor& tensor, ReduceOperation operation);
    void wait(Pending& pending);

    /// Time spent in waits since the last call.
    scenarios::Duration take_exposed();

  private:
    Device& device_;
    Communicator* communicator_;
    int rank_;
    int size_;
    bool slices_;
    std::vector<std::pair<Mark, Mark>> waits_;
};

}  // namespace headway::backend
