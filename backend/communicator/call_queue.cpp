#include "backend/communicator/call_queue.h"

#include <algorithm>
#include <utility>

namespace headway::backend {

void QueuedCall::run_now() {
    std::exception_ptr error;
    try {
        run_();
    } catch (...) {
        error = std::current_exception();
    }
    run_ = nullptr;
    const std::lock_guard lock(mutex_);
    error_ = error;
    over_ = true;
    finished_.notify_all();
}

void QueuedCall::wait() {
    std::unique_lock lock(mutex_);
    if (!over_) {
        lock.unlock();
        queue_.help(*this);
        lock.lock();
    }
    finished_.wait(lock, [&] { return over_; });
    if (error_) std::rethrow_exception(error_);
}

bool QueuedCall::done() {
    const std::lock_guard lock(mutex_);
    if (over_ && error_) std::rethrow_exception(error_);
    return over_;
}

CallQueue::~CallQueue() {
    {
        const std::lock_guard lock(mutex_);
        closing_ = true;
        changed_.notify_all();
    }
    if (thread_.joinable()) thread_.join();
}

std::shared_ptr<QueuedCall> CallQueue::add(std::function<void()> run) {
    auto call = std::make_shared<QueuedCall>(*this, std::move(run));
    const std::lock_guard lock(mutex_);
    calls_.push_back(call);
    changed_.notify_all();
    if (!thread_.joinable()) thread_ = std::thread([this] { work(); });
    return call;
}

bool CallQueue::idle() {
    const std::lock_guard lock(mutex_);
    return calls_.empty();
}

void CallQueue::run_first(std::unique_lock<std::mutex>& lock) {
    running_ = true;
    const std::shared_ptr<QueuedCall> call = calls_.front();
    lock.unlock();
    call->run_now();
    lock.lock();
    calls_.pop_front();
    running_ = false;
    changed_.notify_all();
}

void CallQueue::help(const QueuedCall& call) {
    std::unique_lock lock(mutex_);
    while (!running_ &&
           std::any_of(calls_.begin(), calls_.end(), [&](const auto& waiting) { return waiting.get() == &call; }))
        run_first(lock);
}

void CallQueue::work() {
    std::unique_lock lock(mutex_);
    for (;;) {
        changed_.wait(lock, [&] { return (closing_ || !calls_.empty()) && !running_; });
        if (calls_.empty()) return;
        run_first(lock);
    }
}

}  // namespace headway::backend
