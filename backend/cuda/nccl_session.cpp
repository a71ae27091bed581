#include "backend/cuda/nccl_session.h"

#include <nccl.h>

#include <algorithm>

namespace headway::backend {

namespace {

constexpr auto kLookEvery = std::chrono::milliseconds(20);

}  // namespace

NcclSession::NcclSession(CudaDevice& device, Control& control, std::chrono::milliseconds timeout)
    : device_(device), control_(control), timeout_(timeout), failure_(std::make_shared<Failure>()) {
    device_.heed(failure_);
    control_watch_ = control_.when_failed([this](const std::string& reason) {
        failure_->set(BackendError(control_.rank(), control_.size(), "collectives", reason));
    });
    thread_ = std::thread([this] { run(); });
}

NcclSession::~NcclSession() {
    control_watch_.reset();
    {
        const std::lock_guard lock(mutex_);
        stop_ = true;
    }
    wake_.notify_all();
    thread_.join();
}

void NcclSession::fail(const BackendError& error) {
    failure_->set(error);
    const std::lock_guard lock(telling_);
    if (untold_.empty()) untold_ = error.what();
}

void NcclSession::add(NcclWatched& watched) {
    const std::lock_guard lock(mutex_);
    watched_.push_back(&watched);
}

void NcclSession::remove(NcclWatched& watched) {
    const std::lock_guard lock(mutex_);
    std::erase(watched_, &watched);
}

void NcclSession::run() {
    try {
        device_.make_current();
    } catch (const BackendError& error) {
        fail(error);
    }
    bool ended = false;
    std::unique_lock lock(mutex_);
    while (!wake_.wait_for(lock, kLookEvery, [&] { return stop_; })) {
        if (!failure_->failed())
            for (NcclWatched* watched : watched_) watched->look(CollectiveWatch::Clock::now());
        if (!failure_->failed() || ended) continue;
        ended = true;
        lock.unlock();  // the control tells everybody who asked, us too
        tell();
        lock.lock();
        // All at once: the memory that one frees is freed only when the kernels of the others have ended too.
        ncclGroupStart();
        for (NcclWatched* watched : watched_) watched->abort();
        ncclGroupEnd();
    }
    lock.unlock();
    if (!ended) tell();  // whoever met the failure may be gone before this thread has looked
}

void NcclSession::tell() {
    std::string reason;
    {
        const std::lock_guard lock(telling_);
        reason = untold_;
    }
    if (!reason.empty()) control_.abort(reason);
}

}  // namespace headway::backend
