#include "backend/communicator/control_links.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <stdexcept>
#include <system_error>
#include <utility>

namespace headway::backend {

namespace {

constexpr std::uint64_t kLargestFrame = std::uint64_t{1} << 32;
constexpr std::chrono::milliseconds kToLeave{1000};  ///< how long what was sent last may take to go out
constexpr std::size_t kNobody = static_cast<std::size_t>(-1);

struct FrameHead {
    std::uint64_t bytes;
    std::int32_t root;
    std::uint8_t kind;
    std::uint8_t unused[3];
};

std::vector<char> frame_bytes(const ControlFrame& frame) {
    const FrameHead head{frame.bytes.size(), frame.root, frame.kind, {}};
    std::vector<char> bytes(sizeof head + frame.bytes.size());
    std::memcpy(bytes.data(), &head, sizeof head);
    std::copy(frame.bytes.begin(), frame.bytes.end(), bytes.begin() + sizeof head);
    return bytes;
}

ControlFrame text_frame(ControlFrame::Kind kind, const std::string& text) {
    return {kind, 0, std::vector<char>(text.begin(), text.end())};
}

}  // namespace

ControlLinks::ControlLinks(std::vector<int> sockets, int rank) : rank_(rank), links_(sockets.size()) {
    for (std::size_t i = 0; i < sockets.size(); ++i) {
        links_[i].socket = sockets[i];
        if (sockets[i] >= 0) ::fcntl(sockets[i], F_SETFL, ::fcntl(sockets[i], F_GETFL) | O_NONBLOCK);
    }
    if (sockets.size() < 2) return;
    wake_ = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (wake_ < 0) throw std::system_error(errno, std::generic_category(), "eventfd");
    thread_ = std::thread([this] { run(); });
}

ControlLinks::~ControlLinks() {
    if (thread_.joinable()) {
        {
            const std::lock_guard lock(mutex_);
            for (Link& link : links_)
                if (link.socket >= 0) link.outbox.push_back(frame_bytes({ControlFrame::kLeave, 0, {}}));
            leaving_ = true;
        }
        wake();
        thread_.join();
    }
    for (const Link& link : links_)
        if (link.socket >= 0) ::close(link.socket);
    if (wake_ >= 0) ::close(wake_);
}

void ControlLinks::wake() const {
    const std::uint64_t one = 1;
    [[maybe_unused]] const ssize_t written = ::write(wake_, &one, sizeof one);  // full means awake
}

void ControlLinks::send(int peer, ControlFrame frame) {
    {
        const std::lock_guard lock(mutex_);
        links_[static_cast<std::size_t>(peer)].outbox.push_back(frame_bytes(frame));
    }
    wake();
}

std::optional<ControlFrame> ControlLinks::receive(int peer, Clock::time_point latest) {
    std::unique_lock lock(mutex_);
    Link& link = links_[static_cast<std::size_t>(peer)];
    const auto over = [&] { return !link.inbox.empty() || !failure_.empty() || link.left; };
    changed_.wait_until(lock, latest, over);
    if (link.inbox.empty()) {  // what came before a failure counts
        if (link.left && failure_.empty()) fail_from(kNobody, "rank " + std::to_string(peer) + " has left", lock);
        return std::nullopt;
    }
    ControlFrame frame = std::move(link.inbox.front());
    link.inbox.pop_front();
    return frame;
}

std::string ControlLinks::failure() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return failure_.empty() || all_told_ || telling_ == std::this_thread::get_id(); });
    return failure_;
}

void ControlLinks::fail(const std::string& reason) {
    std::unique_lock lock(mutex_);
    fail_from(kNobody, reason, lock);
}

void ControlLinks::fail_from(std::size_t origin, const std::string& reason, std::unique_lock<std::mutex>& lock) {
    if (!failure_.empty()) return;
    failure_ = reason.empty() ? "ended without a reason" : reason;
    for (std::size_t i = 0; i < links_.size(); ++i)
        if (links_[i].socket >= 0 && i != origin)
            links_[i].outbox.push_back(frame_bytes(text_frame(ControlFrame::kAbort, failure_)));
    changed_.notify_all();
    wake();
    const std::vector<std::weak_ptr<Listener>> listeners = listeners_;
    const std::string told = failure_;
    telling_ = std::this_thread::get_id();
    lock.unlock();
    for (const std::weak_ptr<Listener>& weak : listeners) {
        const std::shared_ptr<Listener> listener = weak.lock();
        if (!listener) continue;
        const std::lock_guard notifying(listener->mutex);
        if (listener->notify) std::exchange(listener->notify, nullptr)(told);
    }
    lock.lock();
    all_told_ = true;
    changed_.notify_all();
}

std::shared_ptr<void> ControlLinks::when_failed(std::function<void(const std::string&)> notify) {
    auto listener = std::make_shared<Listener>();
    std::string failed;
    {
        const std::lock_guard lock(mutex_);
        failed = failure_;
        if (failed.empty()) {
            listener->notify = std::move(notify);
            std::erase_if(listeners_, [](const auto& weak) { return weak.expired(); });
            listeners_.push_back(listener);
        }
    }
    if (!failed.empty()) notify(failed);
    return std::shared_ptr<void>(listener.get(), [listener](void*) {
        const std::lock_guard notifying(listener->mutex);  // one that is under way is over first
        listener->notify = nullptr;
    });
}

bool ControlLinks::finished(Clock::time_point latest) const {
    if (!leaving_) return false;
    const bool all_sent = std::all_of(links_.begin(), links_.end(),
                                      [](const Link& link) { return link.socket < 0 || link.outbox.empty(); });
    return all_sent || Clock::now() >= latest;
}

void ControlLinks::run() {
    std::unique_lock lock(mutex_);
    Clock::time_point latest = Clock::time_point::max();
    while (!finished(latest)) {
        if (leaving_ && latest == Clock::time_point::max()) latest = Clock::now() + kToLeave;
        std::vector<pollfd> waiting{{wake_, POLLIN, 0}};
        std::vector<std::size_t> whose{kNobody};
        for (std::size_t i = 0; i < links_.size(); ++i) {
            if (links_[i].socket < 0) continue;
            waiting.push_back(
                {links_[i].socket, static_cast<short>(links_[i].outbox.empty() ? POLLIN : POLLIN | POLLOUT), 0});
            whose.push_back(i);
        }
        const int milliseconds = leaving_ ? 20 : -1;
        lock.unlock();
        const int ready = ::poll(waiting.data(), waiting.size(), milliseconds);
        lock.lock();
        if (ready < 0) continue;
        if (waiting[0].revents != 0) {
            std::uint64_t count = 0;
            [[maybe_unused]] const ssize_t got = ::read(wake_, &count, sizeof count);
        }
        for (std::size_t k = 1; k < waiting.size(); ++k) {
            Link& link = links_[whose[k]];
            if (link.socket >= 0 && (waiting[k].revents & POLLOUT) != 0) write_to(link);
            if (link.socket >= 0 && (waiting[k].revents & ~POLLOUT) != 0) read_from(whose[k], lock);
        }
    }
}

void ControlLinks::write_to(Link& link) {
    while (!link.outbox.empty()) {
        const std::vector<char>& bytes = link.outbox.front();
        const ssize_t count = ::send(link.socket, bytes.data() + link.sent, bytes.size() - link.sent, MSG_NOSIGNAL);
        if (count < 0) {
            if (errno == EINTR) continue;
            if (errno != EAGAIN) link.outbox.clear(), link.sent = 0;  // reading tells that it is lost
            return;
        }
        link.sent += static_cast<std::size_t>(count);
        if (link.sent < bytes.size()) return;
        link.outbox.pop_front();
        link.sent = 0;
    }
}

void ControlLinks::read_from(std::size_t peer, std::unique_lock<std::mutex>& lock) {
    Link& link = links_[peer];
    char buffer[65536];
    const ssize_t count = ::recv(link.socket, buffer, sizeof buffer, 0);
    if (count > 0) {
        link.incoming.insert(link.incoming.end(), buffer, buffer + count);
        take_frames(peer, lock);
    } else if (count == 0) {
        lose(peer, "its connection ended", lock);
    } else if (errno != EINTR && errno != EAGAIN) {
        lose(peer, std::strerror(errno), lock);
    }
}

void ControlLinks::lose(std::size_t peer, const std::string& why, std::unique_lock<std::mutex>& lock) {
    Link& link = links_[peer];
    ::close(link.socket);
    link.socket = -1;
    link.outbox.clear();
    if (!link.left) fail_from(peer, "rank " + std::to_string(peer) + " was lost: " + why, lock);
}

void ControlLinks::take_frames(std::size_t peer, std::unique_lock<std::mutex>& lock) {
    Link& link = links_[peer];
    std::size_t begin = 0;
    std::string reason;
    while (link.incoming.size() - begin >= sizeof(FrameHead)) {
        FrameHead head;
        std::memcpy(&head, link.incoming.data() + begin, sizeof head);
        if (head.bytes > kLargestFrame || head.kind > ControlFrame::kLeave) {
            reason = "rank " + std::to_string(peer) + " sent what is no frame of the control";
            begin = link.incoming.size();
            break;
        }
        if (link.incoming.size() - begin - sizeof head < head.bytes) break;
        const auto first = link.incoming.begin() + static_cast<std::ptrdiff_t>(begin + sizeof head);
        const auto kind = static_cast<ControlFrame::Kind>(head.kind);
        ControlFrame frame{kind, head.root, {first, first + static_cast<std::ptrdiff_t>(head.bytes)}};
        begin += sizeof head + head.bytes;
        if (kind == ControlFrame::kLeave) {
            link.left = true;
        } else if (kind == ControlFrame::kAbort) {
            if (reason.empty()) reason.assign(frame.bytes.begin(), frame.bytes.end());
        } else {
            link.inbox.push_back(std::move(frame));
        }
    }
    link.incoming.erase(link.incoming.begin(), link.incoming.begin() + static_cast<std::ptrdiff_t>(begin));
    changed_.notify_all();
    if (!reason.empty()) fail_from(peer, reason, lock);
}

}  // namespace headway::backend
