#include "backend/cuda/pair_ids.h"

#include <netdb.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <memory>

#include "backend/backend_error.h"

namespace headway::backend {

namespace {

constexpr int kPollMs = 50;
constexpr auto kAskAgainAfter = std::chrono::milliseconds(5);
constexpr std::uint32_t kMostBytes = 4096;

class Socket {
  public:
    explicit Socket(int descriptor) : descriptor_(descriptor) {}
    ~Socket() {
        if (descriptor_ >= 0) ::close(descriptor_);
    }
    Socket(const Socket&) = delete;
    Socket& operator=(const Socket&) = delete;
    int get() const { return descriptor_; }
    int release() { return std::exchange(descriptor_, -1); }

  private:
    int descriptor_;
};

using Addresses = std::unique_ptr<addrinfo, decltype(&freeaddrinfo)>;
Addresses numeric_address(const std::string& host, const std::string& port) {
    addrinfo hints{};
    hints.ai_socktype = SOCK_STREAM;
    hints.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV;
    addrinfo* found = nullptr;
    if (getaddrinfo(host.c_str(), port.c_str(), &hints, &found) != 0) found = nullptr;
    return {found, freeaddrinfo};
}

void limit_waiting(int socket) {
    const timeval two_seconds{2, 0};
    setsockopt(socket, SOL_SOCKET, SO_RCVTIMEO, &two_seconds, sizeof two_seconds);
    setsockopt(socket, SOL_SOCKET, SO_SNDTIMEO, &two_seconds, sizeof two_seconds);
}

bool send_all(int socket, const void* data, std::size_t count) {
    const char* at = static_cast<const char*>(data);
    while (count > 0) {
        const ssize_t sent = ::send(socket, at, count, MSG_NOSIGNAL);
        if (sent <= 0) return false;
        at += sent;
        count -= static_cast<std::size_t>(sent);
    }
    return true;
}
bool receive_all(int socket, void* data, std::size_t count) {
    char* at = static_cast<char*>(data);
    while (count > 0) {
        const ssize_t received = ::recv(socket, at, count, 0);
        if (received <= 0) return false;
        at += received;
        count -= static_cast<std::size_t>(received);
    }
    return true;
}

bool send_text(int socket, const char* data, std::size_t count) {
    const auto length = static_cast<std::uint32_t>(count);
    return send_all(socket, &length, sizeof length) && send_all(socket, data, count);
}
bool receive_text(int socket, std::vector<char>& text) {
    std::uint32_t length = 0;
    if (!receive_all(socket, &length, sizeof length) || length > kMostBytes) return false;
    text.resize(length);
    return receive_all(socket, text.data(), length);
}

}  // namespace

PairIds::PairIds(Control& control) : rank_(control.rank()), size_(control.size()) {
    const auto failed = [&](const char* call) {
        throw BackendError(rank_, size_, std::string("meeting other processes: ") + call, std::strerror(errno));
    };
    const Addresses address = numeric_address(control.address(), "0");
    if (!address) throw BackendError(rank_, size_, "meeting other processes", control.address() + " is no address");
    Socket listener(::socket(address->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
    if (listener.get() < 0) failed("socket");
    if (::bind(listener.get(), address->ai_addr, address->ai_addrlen) != 0) failed("bind");
    if (::listen(listener.get(), 64) != 0) failed("listen");
    sockaddr_storage bound{};
    socklen_t length = sizeof bound;
    if (::getsockname(listener.get(), reinterpret_cast<sockaddr*>(&bound), &length) != 0) failed("getsockname");
    char port[NI_MAXSERV] = {};
    getnameinfo(reinterpret_cast<sockaddr*>(&bound), length, nullptr, 0, port, sizeof port, NI_NUMERICSERV);

    const std::string own = control.address() + " " + port;
    for (const std::vector<char>& text : control.all_gather({own.begin(), own.end()})) {
        const std::string place(text.begin(), text.end());
        const std::size_t blank = place.find(' ');
        hosts_.push_back(place.substr(0, blank));
        ports_.push_back(blank == std::string::npos ? "" : place.substr(blank + 1));
    }
    listener_ = listener.release();
    thread_ = std::thread([this] { answer(); });
}

PairIds::~PairIds() {
    stop_ = true;
    if (thread_.joinable()) thread_.join();
    if (listener_ >= 0) ::close(listener_);
}

void PairIds::publish(const std::string& key, std::vector<char> value) {
    const std::lock_guard lock(mutex_);
    values_[key] = std::move(value);
}

void PairIds::answer() {
    while (!stop_) {
        pollfd waiting{listener_, POLLIN, 0};
        if (::poll(&waiting, 1, kPollMs) <= 0) continue;
        const Socket connection(::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC));
        if (connection.get() >= 0) answer_one(connection.get());
    }
}

void PairIds::answer_one(int connection) {
    limit_waiting(connection);
    std::vector<char> key, value;
    if (!receive_text(connection, key)) return;
    {
        const std::lock_guard lock(mutex_);
        const auto found = values_.find(std::string(key.begin(), key.end()));
        if (found != values_.end()) value = found->second;
    }
    send_text(connection, value.data(), value.size());
}

std::vector<char> PairIds::ask(int process, const std::string& key) const {
    const auto at = static_cast<std::size_t>(process);
    const Addresses address = numeric_address(hosts_[at], ports_[at]);
    if (!address) return {};
    const Socket connection(::socket(address->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
    if (connection.get() < 0) return {};
    limit_waiting(connection.get());
    std::vector<char> value;
    if (::connect(connection.get(), address->ai_addr, address->ai_addrlen) != 0) return {};
    if (!send_text(connection.get(), key.data(), key.size()) || !receive_text(connection.get(), value)) return {};
    return value;
}

std::vector<char> PairIds::fetch(int process, const std::string& key, std::chrono::milliseconds timeout,
                                 const std::function<bool()>& stopped) const {
    const auto latest = std::chrono::steady_clock::now() + timeout;
    while (!stopped()) {
        std::vector<char> value = ask(process, key);
        if (!value.empty()) return value;
        if (std::chrono::steady_clock::now() >= latest) {
            throw BackendError(rank_, size_, "meeting process " + std::to_string(process) + " for messages",
                               "it did not come within " + std::to_string(timeout.count()) + " ms");
        }
        std::this_thread::sleep_for(kAskAgainAfter);
    }
    throw BackendError(rank_, size_, "meeting process " + std::to_string(process) + " for messages", "the job failed");
}

}  // namespace headway::backend
