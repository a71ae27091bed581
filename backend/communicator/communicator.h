#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "backend/device/tensor.h"

namespace headway::backend {

enum class ReduceOperation : std::uint8_t { kSum, kMaximum };

/// One message of an exchange between two members.
struct Message {
    bool send = true;  ///< else it is received
    int peer = 0;      ///< rank in the group
    Tensor tensor;     ///< contiguous; both ends state the same size
};

/// A collective or exchange under way. Its tensors stay untouched until it is done; one that goes away is waited for.
class Work {
  public:
    virtual ~Work() = default;
    /// What is issued on the device after this call sees the result; the host may go on (on the host device: returns
    /// when done). Throws BackendError when it failed.
    virtual void wait() = 0;
    /// Without waiting. Throws BackendError when it failed.
    virtual bool done() = 0;
};

/// The members of one group of ranks: collectives among them. Everything is asynchronous; it starts after what was
/// issued on the device before. Members issue the same calls in the same order; calls of one communicator run in that
/// order, those of different ones independently (exchanges with different peers too). Tensors are contiguous; sums and
/// gathers give the same bits in every member and in every run.
///
/// A lost member, a member that stays away longer than the timeout, or a failed transport end as BackendError with
/// call, group and rank; afterwards every further call fails at once. Nothing hangs.
class Communicator {
  public:
    virtual ~Communicator() = default;
    virtual int rank() const = 0;  ///< in the group
    virtual int size() const = 0;
    virtual const std::string& name() const = 0;  ///< "tensor 3", "data of stage 0": for messages and telemetry

    virtual std::unique_ptr<Work> all_reduce(const Tensor& tensor, ReduceOperation operation) = 0;
    /// `from`: size() equal parts, part r goes to rank r as `to`. Sum.
    virtual std::unique_ptr<Work> reduce_scatter(const Tensor& from, const Tensor& to) = 0;
    /// `to`: size() equal parts, part r is `from` of rank r. `from` may be that part itself.
    virtual std::unique_ptr<Work> all_gather(const Tensor& from, const Tensor& to) = 0;
    virtual std::unique_ptr<Work> broadcast(const Tensor& tensor, int root) = 0;
    /// One batch: done when all are through. Messages between two members match in the order in which they are issued.
    virtual std::unique_ptr<Work> exchange(std::span<const Message> messages) = 0;

    /// Ends everything under way and to come with BackendError(`reason`), also at the peers.
    virtual void abort(const std::string& reason) = 0;
};

/// A group to be made.
struct GroupSpec {
    std::string name;
    std::vector<int> members;  ///< processes, distinct; rank in the group = position
};

/// All processes of a job, for what little the host says between iterations: commands, plans, measurements. Always over
/// the network of the hosts, whatever the device.
class Control {
  public:
    virtual ~Control() = default;
    virtual int rank() const = 0;
    virtual int size() const = 0;
    /// Numeric address of this process by which the others can reach it.
    virtual const std::string& address() const = 0;
    /// `bytes` of process `root` become everybody's.
    virtual void broadcast(std::vector<char>& bytes, int root) = 0;
    /// Returns [processes] on process `root`, nothing elsewhere.
    virtual std::vector<std::vector<char>> gather(const std::vector<char>& bytes, int root) = 0;
    /// Returns what every process gave, everywhere.
    virtual std::vector<std::vector<char>> all_gather(const std::vector<char>& bytes) = 0;
    /// Every process's calls fail with `reason` from now on. Does nothing after a first failure.
    virtual void abort(const std::string& reason) = 0;
    /// Calls `notify` once, from any thread, when a process was lost or somebody aborted; at once where that has
    /// happened. Not after the returned handle is gone.
    virtual std::shared_ptr<void> when_failed(std::function<void(const std::string& reason)> notify) = 0;
};

/// Makes communicators for one kind of device.
class CommunicatorMaker {
  public:
    virtual ~CommunicatorMaker() = default;
    /// Every process of the job calls it with the same groups in the same order, its own or not. Returns [groups]; null
    /// where this process is no member. A group of one is made too, and costs nothing.
    virtual std::vector<std::unique_ptr<Communicator>> make(const std::vector<GroupSpec>& groups) = 0;
};

}  // namespace headway::backend
