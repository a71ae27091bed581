#pragma once

#include <condition_variable>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>

namespace headway::backend {

class CallQueue;

/// A call that a thread of its own works on, or whoever waits for it if that comes first: on a machine with more
/// processes than processors a call that is waited for at once is over sooner without another thread.
class QueuedCall {
  public:
    QueuedCall(CallQueue& queue, std::function<void()> run) : queue_(queue), run_(std::move(run)) {}
    /// Returns or throws as the call did. Before the queue goes.
    void wait();
    bool done();

  private:
    friend class CallQueue;
    void run_now();

    CallQueue& queue_;
    std::function<void()> run_;
    std::mutex mutex_;
    std::condition_variable finished_;
    bool over_ = false;
    std::exception_ptr error_;
};

/// Calls one after another, in a thread that starts with the first or by whoever waits for them.
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
    friend class QueuedCall;
    void work();
    /// Runs the calls up to `call`, unless another thread is at work.
    void help(const QueuedCall& call);
    void run_first(std::unique_lock<std::mutex>& lock);

    std::mutex mutex_;
    std::condition_variable changed_;
    std::deque<std::shared_ptr<QueuedCall>> calls_;  ///< not over yet
    bool running_ = false;                           ///< the first of them, in some thread
    bool closing_ = false;
    std::thread thread_;
};

}  // namespace headway::backend
