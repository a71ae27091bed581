#include "backend/communicator/call_queue.h"

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
    auto call = std::make_shared<QueuedCall>(std::move(run));
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

void CallQueue::work() {
    std::unique_lock lock(mutex_);
    for (;;) {
        changed_.wait(lock, [&] { return closing_ || !calls_.empty(); });
        if (calls_.empty()) return;
        const std::shared_ptr<QueuedCall> call = calls_.front();
        lock.unlock();
        call->run_now();
        lock.lock();
        calls_.pop_front();
    }
}

}  // namespace headway::backend
