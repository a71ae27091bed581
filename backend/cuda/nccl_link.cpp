#include "backend/cuda/nccl_link.h"

#include <thread>

namespace headway::backend {

namespace {

constexpr auto kPatience = std::chrono::milliseconds(10);

}  // namespace

void NcclCall::issued() {
    {
        const std::lock_guard lock(mutex_);
        state_ = State::kIssued;
    }
    changed_.notify_all();
}

void NcclCall::gave_up() {
    {
        const std::lock_guard lock(mutex_);
        state_ = State::kGaveUp;
    }
    changed_.notify_all();
}

void NcclCall::hold_up(cudaStream_t stream, const Failure& failure) {
    std::unique_lock lock(mutex_);
    while (state_ == State::kAsked && !failure.failed()) changed_.wait_for(lock, kPatience);
    failure.check();
    if (state_ == State::kGaveUp) throw BackendError(description_, "it could not be issued");
    end_.hold_up(stream);
}

bool NcclCall::done(const Failure& failure) {
    failure.check();
    const std::lock_guard lock(mutex_);
    if (state_ == State::kGaveUp) throw BackendError(description_, "it could not be issued");
    return state_ == State::kIssued && end_.reached();
}

CollectiveWatch::State NcclCall::look(CollectiveWatch::Clock::time_point now) {
    const bool begun = begin_.reached();
    return watch_.look(now, begun, begun && end_.reached());
}

NcclLink::NcclLink(std::shared_ptr<NcclSession> session, std::string group, int rank, int size, int most_blocks)
    : session_(std::move(session)),
      group_(std::move(group)),
      rank_(rank),
      size_(size),
      most_blocks_(most_blocks),
      stream_((session_->device().make_current(), true)) {
    session_->add(*this);
}

NcclLink::~NcclLink() {
    // While the stream drains the session still watches, so that a lost peer does not hold this up for ever.
    cudaSetDevice(session_->device().number());
    cudaStreamSynchronize(stream_.get());
    session_->remove(*this);
    const std::lock_guard lock(issuing_);
    if (communicator_ == nullptr) return;
    if (!session_->failure().failed()) {
        try {
            settle(ncclCommFinalize(communicator_), "ncclCommFinalize");
            ncclCommDestroy(communicator_);
            return;
        } catch (const BackendError&) {  // recorded by the session
        }
    }
    ncclCommAbort(communicator_);
}

void NcclLink::fail(const std::string& call, const std::string& why) {
    const BackendError error(rank_, size_, call + " of group '" + group_ + "'", why);
    session_->fail(error);
    session_->failure().check();  // the first failure, which may be another
    throw error;
}

/// Calls of a communicator that does not block return while they still work; a lost peer would keep them there.
void NcclLink::settle(ncclResult_t result, const std::string& call) {
    const auto latest = CollectiveWatch::Clock::now() + session_->timeout();
    for (int round = 0; result == ncclInProgress; ++round) {
        session_->failure().check();
        if (CollectiveWatch::Clock::now() > latest) {
            fail(call, "not all members came within " + std::to_string(session_->timeout().count()) + " ms");
        }
        if (round > 100) std::this_thread::sleep_for(std::chrono::microseconds(50));
        ncclResult_t state = ncclInProgress;
        const ncclResult_t asked = ncclCommGetAsyncError(communicator_, &state);
        result = asked == ncclSuccess ? state : asked;
    }
    if (result == ncclSuccess) return;
    const char* detail = communicator_ == nullptr ? nullptr : ncclGetLastError(communicator_);
    fail(call, std::string(ncclGetErrorString(result)) + " (" + std::to_string(static_cast<int>(result)) + ")" +
                   (detail != nullptr && *detail != '\0' ? std::string(": ") + detail : std::string()));
}

void NcclLink::connect(const ncclUniqueId& id) {
    session_->device().make_current();
    const std::lock_guard lock(issuing_);
    session_->failure().check();
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.blocking = 0;
    if (most_blocks_ > 0) config.maxCTAs = most_blocks_;
    config.commName = group_.c_str();
    settle(ncclCommInitRankConfig(&communicator_, size_, id, rank_, &config), "ncclCommInitRankConfig");
}

void NcclLink::issue(NcclCall& call, const cuda::OwnedEvent& after, const Issue& what) {
    try {
        const std::lock_guard lock(issuing_);
        session_->failure().check();
        after.hold_up(stream_.get());
        call.begin().record(stream_.get());
        const auto grouped = [&](ncclResult_t result) {
            if (result != ncclInProgress) settle(result, call.description());
        };
        grouped(ncclGroupStart());
        const ncclResult_t inside = what(communicator_, stream_.get());
        const ncclResult_t all = ncclGroupEnd();
        grouped(inside);
        settle(all, call.description());
        call.end().record(stream_.get());
    } catch (...) {
        call.gave_up();
        throw;
    }
    call.issued();
}

void NcclLink::watch(std::shared_ptr<NcclCall> call) {
    const std::lock_guard lock(watching_);
    calls_.push_back(std::move(call));
}

void NcclLink::look(CollectiveWatch::Clock::time_point now) {
    const std::lock_guard lock(watching_);
    try {
        const char* late = "a member stayed away longer than ";
        while (!calls_.empty()) {
            const auto state = calls_.front()->look(now);
            if (state == CollectiveWatch::State::kLate) {
                fail(calls_.front()->description(), late + std::to_string(session_->timeout().count()) + " ms");
            }
            if (state != CollectiveWatch::State::kDone) break;
            calls_.pop_front();
        }
        const std::unique_lock issuing(issuing_, std::try_to_lock);
        if (!issuing || communicator_ == nullptr) return;
        ncclResult_t state = ncclSuccess;
        const ncclResult_t asked = ncclCommGetAsyncError(communicator_, &state);
        if (asked == ncclSuccess && state == ncclInProgress) return;
        settle(asked == ncclSuccess ? state : asked,
               calls_.empty() ? std::string("asynchronous error") : calls_.front()->description());
    } catch (const BackendError& error) {
        session_->fail(error);
    }
}

void NcclLink::abort() {
    const std::lock_guard lock(issuing_);
    if (communicator_ != nullptr) ncclCommAbort(communicator_);
    communicator_ = nullptr;
}

}  // namespace headway::backend
