#pragma once

#include <nccl.h>

#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>

#include "backend/cuda/collective_watch.h"
#include "backend/cuda/cuda_device.h"
#include "backend/cuda/nccl_session.h"

namespace headway::backend {

/// A call that was asked for: issued on a link's stream at once or, by a pair's thread, soon.
class NcclCall {
  public:
    NcclCall(std::string description, std::chrono::milliseconds timeout)
        : description_(std::move(description)), watch_(timeout), begin_(false), end_(false) {}

    const std::string& description() const { return description_; }
    /// Both by the thread that issues.
    void issued();
    void gave_up();
    /// Waits for the host to have issued it, then lets `stream` wait for the device. Throws what made it fail.
    void hold_up(cudaStream_t stream, const Failure& failure);
    bool done(const Failure& failure);
    CollectiveWatch::State look(CollectiveWatch::Clock::time_point now);

    const cuda::OwnedEvent& begin() const { return begin_; }
    const cuda::OwnedEvent& end() const { return end_; }

  private:
    enum class State { kAsked, kIssued, kGaveUp };
    std::string description_;
    CollectiveWatch watch_;
    cuda::OwnedEvent begin_, end_;
    std::mutex mutex_;
    std::condition_variable changed_;
    State state_ = State::kAsked;
};

/// One communicator of NCCL with its own stream.
class NcclLink final : public NcclWatched {
  public:
    /// Issues on the stream; called within a group of NCCL.
    using Issue = std::function<ncclResult_t(ncclComm_t, cudaStream_t)>;

    /// `description` of the group and rank for messages. Not connected yet.
    NcclLink(std::shared_ptr<NcclSession> session, std::string group, int rank, int size, int most_blocks);
    ~NcclLink() override;

    /// Returns when all members have come. Throws BackendError.
    void connect(const ncclUniqueId& id);
    /// After `after` on the device. Throws BackendError; `call` has then given up.
    void issue(NcclCall& call, const cuda::OwnedEvent& after, const Issue& what);
    /// Watches `call` until it is done.
    void watch(std::shared_ptr<NcclCall> call);

    void look(CollectiveWatch::Clock::time_point now) override;
    void abort() override;

  private:
    [[noreturn]] void fail(const std::string& call, const std::string& why);
    void settle(ncclResult_t result, const std::string& call);

    std::shared_ptr<NcclSession> session_;
    std::string group_;
    int rank_, size_, most_blocks_;
    cuda::OwnedStream stream_;
    std::mutex issuing_;  // one thread at a time in NCCL; its abort waits for the others to leave
    ncclComm_t communicator_ = nullptr;
    std::mutex watching_;
    std::deque<std::shared_ptr<NcclCall>> calls_;  // in the order of the stream
};

}  // namespace headway::backend
