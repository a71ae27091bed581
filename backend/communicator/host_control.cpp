#include "backend/communicator/host_control.h"

#include <cstring>
#include <stdexcept>
#include <utility>

#include "backend/backend_error.h"
#include "backend/communicator/control_links.h"

namespace headway::backend {

namespace {

const char* control_call(ControlFrame::Kind kind) {
    switch (kind) {
        case ControlFrame::kBroadcast:
            return "broadcast";
        case ControlFrame::kGather:
            return "gather";
        case ControlFrame::kAllGather:
            return "all-gather";
        case ControlFrame::kAbort:
        case ControlFrame::kLeave:
            break;
    }
    return "abort";
}

std::vector<char> packed(const std::vector<std::vector<char>>& parts) {
    std::vector<char> bytes;
    for (const std::vector<char>& part : parts) {
        const std::uint64_t size = part.size();
        const char* const begin = reinterpret_cast<const char*>(&size);
        bytes.insert(bytes.end(), begin, begin + sizeof size);
        bytes.insert(bytes.end(), part.begin(), part.end());
    }
    return bytes;
}

std::vector<std::vector<char>> unpacked(const std::vector<char>& bytes) {
    std::vector<std::vector<char>> parts;
    for (std::size_t begin = 0; begin < bytes.size();) {
        std::uint64_t size = 0;
        std::memcpy(&size, bytes.data() + begin, sizeof size);
        begin += sizeof size;
        parts.emplace_back(bytes.data() + begin, bytes.data() + begin + size);
        begin += size;
    }
    return parts;
}

}  // namespace

class HostControl::Impl {
  public:
    Impl(const RendezvousPoint& point, int rank, int size, std::chrono::milliseconds timeout)
        : rank_(rank), size_(size), timeout_(timeout), links_(meet(point), rank) {}

    void broadcast(std::vector<char>& bytes, int root) {
        if (rank_ != 0) {
            if (rank_ == root) return send(0, ControlFrame::kBroadcast, root, bytes);
            bytes = receive(0, ControlFrame::kBroadcast, root);
            return;
        }
        if (root != 0) bytes = receive(root, ControlFrame::kBroadcast, root);
        for (int peer = 1; peer < size_; ++peer)
            if (peer != root) send(peer, ControlFrame::kBroadcast, root, bytes);
    }

    std::vector<std::vector<char>> gather(ControlFrame::Kind kind, const std::vector<char>& bytes, int root) {
        if (rank_ != 0) {
            send(0, kind, root, bytes);
            if (kind == ControlFrame::kGather && rank_ != root) return {};
            return unpacked(receive(0, kind, root));
        }
        std::vector<std::vector<char>> parts{bytes};
        for (int peer = 1; peer < size_; ++peer) parts.push_back(receive(peer, kind, root));
        for (int peer = 1; peer < size_; ++peer)
            if (kind == ControlFrame::kAllGather || peer == root) send(peer, kind, root, packed(parts));
        if (kind == ControlFrame::kGather && root != 0) parts.clear();
        return parts;
    }

    int rank_;
    int size_;
    std::string address_;  // before links_: set while they are made
    std::chrono::milliseconds timeout_;
    ControlLinks links_;

  private:
    std::vector<int> meet(const RendezvousPoint& point) {
        Rendezvous rendezvous(point, rank_, size_, timeout_);
        address_ = rendezvous.own_address();
        return rendezvous.take_connections();
    }

    [[noreturn]] void fail(ControlFrame::Kind kind, const std::string& why) const {
        throw BackendError(rank_, size_, std::string("control ") + control_call(kind), why);
    }

    void send(int peer, ControlFrame::Kind kind, int root, const std::vector<char>& bytes) {
        if (const std::string why = links_.failure(); !why.empty()) fail(kind, why);
        links_.send(peer, {kind, root, bytes});
    }

    std::vector<char> receive(int peer, ControlFrame::Kind kind, int root) {
        std::optional<ControlFrame> frame = links_.receive(peer, ControlLinks::Clock::now() + timeout_);
        if (!frame) {  // unless something else was first
            links_.fail("rank " + std::to_string(rank_) + " waited " + std::to_string(timeout_.count()) +
                        " ms for rank " + std::to_string(peer) + " in control " + control_call(kind));
            fail(kind, links_.failure());
        }
        if (frame->kind != kind || frame->root != root) {
            const auto described = [](ControlFrame::Kind of, int from) {
                const bool rooted = of != ControlFrame::kAllGather;
                return std::string(control_call(of)) + (rooted ? " with root " + std::to_string(from) : "");
            };
            links_.fail("rank " + std::to_string(peer) + " is in " + described(frame->kind, frame->root) +
                        " while rank " + std::to_string(rank_) + " is in " + described(kind, root));
            fail(kind, links_.failure());
        }
        return std::move(frame->bytes);
    }
};

HostControl::HostControl(const RendezvousPoint& point, int rank, int size, std::chrono::milliseconds timeout)
    : impl_(std::make_unique<Impl>(point, rank, size, timeout)) {}
HostControl::~HostControl() = default;

int HostControl::rank() const {
    return impl_->rank_;
}
int HostControl::size() const {
    return impl_->size_;
}
const std::string& HostControl::address() const {
    return impl_->address_;
}
void HostControl::broadcast(std::vector<char>& bytes, int root) {
    if (root < 0 || root >= size()) throw std::invalid_argument("broadcast from no process of the job");
    impl_->broadcast(bytes, root);
}
std::vector<std::vector<char>> HostControl::gather(const std::vector<char>& bytes, int root) {
    if (root < 0 || root >= size()) throw std::invalid_argument("gather at no process of the job");
    return impl_->gather(ControlFrame::kGather, bytes, root);
}
std::vector<std::vector<char>> HostControl::all_gather(const std::vector<char>& bytes) {
    return impl_->gather(ControlFrame::kAllGather, bytes, 0);
}
void HostControl::abort(const std::string& reason) {
    impl_->links_.fail(reason);
}
std::shared_ptr<void> HostControl::when_failed(std::function<void(const std::string&)> notify) {
    return impl_->links_.when_failed(std::move(notify));
}

}  // namespace headway::backend
