#pragma once

#include <condition_variable>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>

namespace headway::backend {

/// A call that a thread of its own works on.
class QueuedCall {
  public:
    explicit QueuedCall(std::function<void()> run) : run_(std::move(run)) {}
    /// Returns or throws as the call did.
    void wait();
    bool done();

  private:
    friend class CallQueue;
    void run_now();

    std::function<void()> run_;
    std::mutex mutex_;
    std::condition_variable finished_;
    bool over_ = false;
    std::exception_ptr error_;
};

/// Calls one after another, in a thread that starts with the first.
class CallQueue {
  public:
    CallQueue() = default;
    /// Waits for the calls that are left.
    ~CallQueue();
    CallQueue(const CallQueue&) = delete;
    CallQueue& operator=(const CallQueue&) = delete;

    std::shared_ptr<QueuedCall> add(std::function<void()> run);
    /// Nothing is under way or waits.
    bool idle();

  private:
    void work();

    std::mutex mutex_;
    std::condition_variable changed_;
    std::deque<std::shared_ptr<QueuedCall>> calls_;  ///< the first is under way
    bool closing_ = false;
    std::thread thread_;
};

}  // namespace headway::backend
