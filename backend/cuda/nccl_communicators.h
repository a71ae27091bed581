#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "backend/communicator/communicator.h"
#include "backend/cuda/cuda_device.h"
#include "backend/cuda/cuda_module.h"
#include "backend/cuda/nccl_link.h"
#include "backend/cuda/nccl_pair.h"

namespace headway::backend {

/// Collectives of one group over NCCL, in a stream beside the compute stream; messages go through a pair for each peer.
class NcclCommunicator final : public Communicator {
  public:
    /// Returns when all members have come. `key` is the group's, the same in every process. Throws BackendError.
    NcclCommunicator(std::shared_ptr<NcclSession> session, std::shared_ptr<PairIds> ids, const GroupSpec& group,
                     int rank, std::string key, const ncclUniqueId& id);

    int rank() const override { return rank_; }
    int size() const override { return static_cast<int>(group_.members.size()); }
    const std::string& name() const override { return group_.name; }

    std::unique_ptr<Work> all_reduce(const Tensor& tensor, ReduceOperation operation) override;
    std::unique_ptr<Work> reduce_scatter(const Tensor& from, const Tensor& to) override;
    std::unique_ptr<Work> all_gather(const Tensor& from, const Tensor& to) override;
    std::unique_ptr<Work> broadcast(const Tensor& tensor, int root) override;
    std::unique_ptr<Work> exchange(std::span<const Message> messages) override;
    void abort(const std::string& reason) override;

  private:
    void require(const char* call, bool holds, const char* what) const;
    void check_tensor(const char* call, const Tensor& tensor) const;
    std::shared_ptr<cuda::OwnedEvent> now_on_device() const;
    std::shared_ptr<NcclCall> new_call(const std::string& call) const;
    std::unique_ptr<Work> issue(const char* call, const NcclLink::Issue& what);
    NcclPair& pair_with(int peer);

    std::shared_ptr<NcclSession> session_;
    std::shared_ptr<PairIds> ids_;
    GroupSpec group_;
    int rank_;
    std::string key_;
    NcclLink link_;
    std::map<int, std::unique_ptr<NcclPair>> pairs_;
};

class NcclCommunicatorMaker final : public CommunicatorMaker {
  public:
    NcclCommunicatorMaker(CudaDevice& device, Control& control, const CommunicatorOptions& options);
    std::vector<std::unique_ptr<Communicator>> make(const std::vector<GroupSpec>& groups) override;

  private:
    Control& control_;
    bool single_too_;
    std::shared_ptr<NcclSession> session_;
    std::shared_ptr<PairIds> ids_;
    std::int64_t made_ = 0;
};

}  // namespace headway::backend
