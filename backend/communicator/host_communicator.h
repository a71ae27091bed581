#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "backend/communicator/call_queue.h"
#include "backend/communicator/collectives.h"
#include "backend/communicator/communicator.h"
#include "backend/communicator/gloo_mesh.h"
#include "backend/communicator/shared_collectives.h"
#include "backend/communicator/shared_memory.h"

namespace headway::backend {

/// One group over a mesh. Collectives run in a thread of the group; messages of an exchange are posted at once, unless
/// a collective is under way, and collectives wait for the exchanges before them.
class HostCommunicator final : public Communicator {
  public:
    /// `number` tells the groups of a job apart and is the same in all members.
    /// `shared`: memory of the members for collectives; null: they go by messages.
    HostCommunicator(std::shared_ptr<GlooMesh> mesh, std::shared_ptr<SharedRounds> shared, GroupSpec group, int rank,
                     int number);
    ~HostCommunicator() override;

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
    struct Exchange;
    class ExchangeWork;

    std::unique_ptr<Work> collective(const std::string& what, const Tensor& tensor,
                                     std::function<void(const GroupCall&)> by_messages,
                                     std::function<void(const SharedCall&)> in_memory);
    void meet(std::uint64_t call, const std::string& description);
    std::string described(const std::string& what) const;
    void check_tensor(const std::string& what, const Tensor& tensor) const;
    void post(Exchange& exchange, std::span<const Message> messages);
    std::uint64_t message_slot(std::map<int, std::uint64_t>& counts, const Message& message) const;

    std::shared_ptr<GlooMesh> mesh_;
    GroupSpec group_;
    int rank_;
    std::uint64_t number_;
    std::uint64_t collectives_ = 0;                     ///< so far
    std::map<int, std::uint64_t> sent_;                 ///< messages so far, by peer
    std::map<int, std::uint64_t> received_;             ///< the same
    std::vector<std::shared_ptr<Exchange>> exchanges_;  ///< that may be under way
    std::vector<std::byte> scratch_;
    std::shared_ptr<SharedRounds> shared_;
    std::shared_ptr<void> told_;  ///< of failures, as long as calls may wait in shared memory
    CallQueue queue_;             ///< last: its calls use the rest
};

}  // namespace headway::backend
