#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

namespace headway::backend {

/// What one process says to another in one call of the control; both ends have to mean the same call.
struct ControlFrame {
    enum Kind : std::uint8_t { kBroadcast, kGather, kAllGather, kAbort, kLeave };
    Kind kind = kBroadcast;
    std::int32_t root = 0;
    std::vector<char> bytes;
};

/// The sockets of one process's control: a thread sends and receives, so that nobody's call blocks in a socket and a
/// lost process is noticed when its connection ends, whatever the others do at that moment.
class ControlLinks {
  public:
    using Clock = std::chrono::steady_clock;

    /// `sockets` [size]: connected, -1 for none; rank 0 has one to everybody, the others one to rank 0.
    ControlLinks(std::vector<int> sockets, int rank);
    /// Says that this process leaves, after all that was sent before.
    ~ControlLinks();
    ControlLinks(const ControlLinks&) = delete;
    ControlLinks& operator=(const ControlLinks&) = delete;

    void send(int peer, ControlFrame frame);
    /// Nothing when a failure, or `latest`, comes first.
    std::optional<ControlFrame> receive(int peer, Clock::time_point latest);
    /// Why nothing works any more; empty while it does. Whoever asked to be told has been told.
    std::string failure();
    /// Makes the first failure known to all links and to whoever asked.
    void fail(const std::string& reason);
    std::shared_ptr<void> when_failed(std::function<void(const std::string&)> notify);

  private:
    struct Link {
        int socket = -1;
        bool left = false;
        std::vector<char> incoming;
        std::deque<ControlFrame> inbox;
        std::deque<std::vector<char>> outbox;
        std::size_t sent = 0;  ///< of the outbox's first
    };
    struct Listener {
        std::recursive_mutex mutex;  // it may go inside its own notification
        std::function<void(const std::string&)> notify;
    };

    void run();
    bool finished(Clock::time_point latest) const;
    void read_from(std::size_t peer, std::unique_lock<std::mutex>& lock);
    void write_to(Link& link);
    void lose(std::size_t peer, const std::string& why, std::unique_lock<std::mutex>& lock);
    void take_frames(std::size_t peer, std::unique_lock<std::mutex>& lock);
    void fail_from(std::size_t origin, const std::string& reason, std::unique_lock<std::mutex>& lock);
    void wake() const;

    int rank_;
    int wake_ = -1;  ///< eventfd
    std::mutex mutex_;
    std::condition_variable changed_;
    std::vector<Link> links_;
    std::string failure_;
    bool all_told_ = false;      ///< of the failure
    std::thread::id telling_{};  ///< the thread that tells
    std::vector<std::weak_ptr<Listener>> listeners_;
    bool leaving_ = false;
    std::thread thread_;
};

}  // namespace headway::backend
