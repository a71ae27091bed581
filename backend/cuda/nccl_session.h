#pragma once

#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "backend/communicator/communicator.h"
#include "backend/cuda/collective_watch.h"
#include "backend/cuda/cuda_device.h"

namespace headway::backend {

/// What a session watches.
class NcclWatched {
  public:
    virtual ~NcclWatched() = default;
    /// Reports what failed or is late to the session.
    virtual void look(CollectiveWatch::Clock::time_point now) = 0;
    /// Ends what runs on the device. Called once, after the session failed, within a group of NCCL.
    virtual void abort() = 0;
};

/// What the communicators of one job on one device share: the first failure, after which none works any more, and the
/// thread that watches them. A failure tells the other processes through the control.
class NcclSession {
  public:
    NcclSession(CudaDevice& device, Control& control, std::chrono::milliseconds timeout);
    ~NcclSession();
    NcclSession(const NcclSession&) = delete;
    NcclSession& operator=(const NcclSession&) = delete;

    CudaDevice& device() const { return device_; }
    Control& control() const { return control_; }
    std::chrono::milliseconds timeout() const { return timeout_; }
    const Failure& failure() const { return *failure_; }

    void fail(const BackendError& error);
    void add(NcclWatched& watched);
    void remove(NcclWatched& watched);

  private:
    void run();
    void tell();

    CudaDevice& device_;
    Control& control_;
    std::chrono::milliseconds timeout_;
    std::shared_ptr<Failure> failure_;
    std::mutex mutex_;
    std::condition_variable wake_;
    std::vector<NcclWatched*> watched_;
    bool stop_ = false;
    std::mutex telling_;
    std::string untold_;  // reason that the control has yet to hear
    std::shared_ptr<void> control_watch_;
    std::thread thread_;  // last: it uses the others
};

}  // namespace headway::backend
