#include "backend/cuda/nccl_pair.h"

#include <cstring>

namespace headway::backend {

namespace {

/// Messages are smaller than gradients, and their kernels wait for the peer on the multiprocessors that they hold.
constexpr int kMostBlocksOfAPair = 4;

}  // namespace

NcclPair::NcclPair(std::shared_ptr<NcclSession> session, std::shared_ptr<PairIds> ids, Place place)
    : session_(session),
      ids_(std::move(ids)),
      place_(std::move(place)),
      link_(std::move(session), place_.group, place_.first ? 0 : 1, 2, kMostBlocksOfAPair) {}

NcclPair::~NcclPair() {
    if (connecting_.joinable()) connecting_.join();
}

void NcclPair::post(std::shared_ptr<NcclCall> call, std::shared_ptr<cuda::OwnedEvent> after,
                    std::vector<Message> messages) {
    Posted posted{std::move(call), std::move(after), std::move(messages)};
    {
        const std::lock_guard lock(mutex_);
        if (!connected_) {
            waiting_.push_back(std::move(posted));
            if (!connecting_.joinable()) connecting_ = std::thread([this] { connect(); });
            return;
        }
    }
    issue(posted);
}

ncclUniqueId NcclPair::agreed_id() {
    ncclUniqueId id{};
    if (place_.first) {
        const ncclResult_t result = ncclGetUniqueId(&id);
        if (result != ncclSuccess) throw BackendError("ncclGetUniqueId", ncclGetErrorString(result));
        ids_->publish(place_.key, {id.internal, id.internal + sizeof id.internal});
        return id;
    }
    const std::vector<char> value = ids_->fetch(place_.peer_process, place_.key, session_->timeout(),
                                                [this] { return session_->failure().failed(); });
    if (value.size() != sizeof id.internal) throw BackendError("meeting a peer for messages", "it sent no NCCL id");
    std::memcpy(id.internal, value.data(), value.size());
    return id;
}

void NcclPair::connect() {
    try {
        session_->device().make_current();
        link_.connect(agreed_id());
        for (;;) {
            Posted next;
            {
                const std::lock_guard lock(mutex_);
                if (waiting_.empty()) {
                    connected_ = true;
                    return;
                }
                next = std::move(waiting_.front());
                waiting_.pop_front();
            }
            issue(next);
        }
    } catch (const BackendError& error) {
        session_->fail(error);
        const std::lock_guard lock(mutex_);
        connected_ = true;  // posts find the failure themselves
        for (const Posted& posted : waiting_) posted.call->gave_up();
        waiting_.clear();
    }
}

void NcclPair::issue(const Posted& posted) {
    const int peer = place_.first ? 1 : 0;
    link_.issue(*posted.call, *posted.after, [&](ncclComm_t communicator, cudaStream_t stream) {
        for (const Message& message : posted.messages) {
            const auto bytes = static_cast<std::size_t>(message.tensor.bytes());
            const ncclResult_t result =
                message.send ? ncclSend(message.tensor.data, bytes, ncclUint8, peer, communicator, stream)
                             : ncclRecv(message.tensor.data, bytes, ncclUint8, peer, communicator, stream);
            if (result != ncclSuccess && result != ncclInProgress) return result;
        }
        return ncclSuccess;
    });
    link_.watch(posted.call);
}

}  // namespace headway::backend
