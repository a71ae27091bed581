#include "backend/communicator/rendezvous.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netdb.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <memory>
#include <stdexcept>
#include <thread>
#include <utility>

#include "backend/backend_error.h"

namespace headway::backend {

namespace {

constexpr std::uint64_t kLongestText = 1 << 20;
constexpr std::chrono::milliseconds kBetweenTries{50};
constexpr std::chrono::milliseconds kForHello{2000};  ///< a process of the job says it as soon as it is connected
constexpr char kMagic[9] = "headway1";

struct FreeAddresses {
    void operator()(addrinfo* list) const { ::freeaddrinfo(list); }
};
using Addresses = std::unique_ptr<addrinfo, FreeAddresses>;

std::string numeric(const sockaddr* address, socklen_t length) {
    char host[NI_MAXHOST] = "";
    ::getnameinfo(address, length, host, sizeof host, nullptr, 0, NI_NUMERICHOST);
    return host;
}

std::string size_text(std::uint64_t size) {
    std::string bytes(sizeof size, '\0');
    std::memcpy(bytes.data(), &size, sizeof size);
    return bytes;
}

}  // namespace

RendezvousPoint parse_rendezvous(const std::string& text) {
    const std::size_t colon = text.rfind(':');
    RendezvousPoint point;
    if (colon != std::string::npos && colon > 0) {
        point.host = text.substr(0, colon);
        const char* const begin = text.data() + colon + 1;
        const char* const end = text.data() + text.size();
        const auto [rest, error] = std::from_chars(begin, end, point.port);
        if (error == std::errc() && rest == end && point.port >= 1 && point.port <= 65535) return point;
    }
    throw std::invalid_argument("'" + text + "' is not HOST:PORT, such as node17:29500");
}

Rendezvous::Rendezvous(const RendezvousPoint& point, int rank, int size, std::chrono::milliseconds timeout)
    : point_(point), rank_(rank), size_(size), latest_(Clock::now() + timeout) {
    if (rank < 0 || rank >= size) throw std::invalid_argument("a rank is from 0 to size - 1");
    rank == 0 ? listen() : connect();
}

Rendezvous::~Rendezvous() {
    for (const int peer : peers_) ::close(peer);
    if (descriptor_ >= 0) ::close(descriptor_);
}

void Rendezvous::fail(const std::string& call, const std::string& why) const {
    throw BackendError(rank_, size_, "rendezvous at " + point_.host + ":" + std::to_string(point_.port) + ": " + call,
                       why);
}

void Rendezvous::fail_with_errno(const std::string& call) const {
    fail(call, std::strerror(errno));
}

void Rendezvous::listen() {
    if (point_.listener >= 0) {
        descriptor_ = point_.listener;
        sockaddr_storage own{};
        socklen_t length = sizeof own;
        if (::getsockname(descriptor_, reinterpret_cast<sockaddr*>(&own), &length) != 0) fail_with_errno("getsockname");
        own_address_ = numeric(reinterpret_cast<const sockaddr*>(&own), length);
        ::fcntl(descriptor_, F_SETFD, FD_CLOEXEC);
        return;
    }
    addrinfo hints{};
    hints.ai_family = AF_INET;
    hints.ai_socktype = SOCK_STREAM;
    addrinfo* list = nullptr;
    const int error = ::getaddrinfo(point_.host.c_str(), std::to_string(point_.port).c_str(), &hints, &list);
    if (error != 0) fail("getaddrinfo", ::gai_strerror(error));
    const Addresses addresses(list);
    descriptor_ = ::socket(list->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (descriptor_ < 0) fail_with_errno("socket");
    const int yes = 1;
    ::setsockopt(descriptor_, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    if (::bind(descriptor_, list->ai_addr, list->ai_addrlen) != 0)
        fail_with_errno("bind (rank 0 has to run on this host)");
    if (::listen(descriptor_, std::max(size_, 16)) != 0) fail_with_errno("listen");
    own_address_ = numeric(list->ai_addr, list->ai_addrlen);
}

void Rendezvous::connect() {
    std::string last = "nobody tried";
    do {
        addrinfo hints{};
        hints.ai_family = AF_INET;
        hints.ai_socktype = SOCK_STREAM;
        addrinfo* list = nullptr;
        const int error = ::getaddrinfo(point_.host.c_str(), std::to_string(point_.port).c_str(), &hints, &list);
        if (error == 0) {
            const Addresses addresses(list);
            descriptor_ = ::socket(list->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
            if (descriptor_ < 0) fail_with_errno("socket");
            if (::connect(descriptor_, list->ai_addr, list->ai_addrlen) == 0) {
                sockaddr_storage own{};
                socklen_t length = sizeof own;
                ::getsockname(descriptor_, reinterpret_cast<sockaddr*>(&own), &length);
                own_address_ = numeric(reinterpret_cast<const sockaddr*>(&own), length);
                return;
            }
            last = std::strerror(errno);
            ::close(descriptor_);
            descriptor_ = -1;
        } else {
            last = ::gai_strerror(error);
        }
        std::this_thread::sleep_for(kBetweenTries);  // rank 0 may start later
    } while (Clock::now() < latest_);
    fail("connect to rank 0", last);
}

void Rendezvous::wait(int descriptor, short events, const std::string& what) const {
    for (;;) {
        const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(latest_ - Clock::now()).count();
        if (left <= 0) fail(what, "timed out");
        pollfd event{descriptor, events, 0};
        const int ready = ::poll(&event, 1, static_cast<int>(std::min<std::int64_t>(left, 1000)));
        if (ready < 0 && errno != EINTR) fail_with_errno("poll");
        if (ready > 0) return;
    }
}

void Rendezvous::send(int descriptor, const std::string& bytes) const {
    std::size_t done = 0;
    while (done < bytes.size()) {
        wait(descriptor, POLLOUT, "send");
        const ssize_t count = ::send(descriptor, bytes.data() + done, bytes.size() - done, MSG_NOSIGNAL);
        if (count < 0 && errno == EINTR) continue;
        if (count < 0) fail_with_errno("send");
        done += static_cast<std::size_t>(count);
    }
}

std::string Rendezvous::receive(int descriptor, std::size_t count) const {
    std::string bytes(count, '\0');
    std::size_t done = 0;
    while (done < count) {
        wait(descriptor, POLLIN, "receive");
        const ssize_t got = ::recv(descriptor, bytes.data() + done, count - done, 0);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) fail_with_errno("receive");
        if (got == 0) fail("receive", "closed by the other side");
        done += static_cast<std::size_t>(got);
    }
    return bytes;
}

void Rendezvous::send_text(int descriptor, const std::string& text) const {
    send(descriptor, size_text(text.size()) + text);
}

std::string Rendezvous::receive_text(int descriptor) const {
    std::uint64_t size = 0;
    std::memcpy(&size, receive(descriptor, sizeof size).data(), sizeof size);
    if (size > kLongestText) fail("receive", "what connected there is none of this job");
    return receive(descriptor, size);
}

void Rendezvous::accept_peer() {
    const int missing = size_ - 1 - static_cast<int>(peers_.size());
    wait(descriptor_, POLLIN, "waiting for " + std::to_string(missing) + " more processes");
    const int peer = ::accept4(descriptor_, nullptr, nullptr, SOCK_CLOEXEC);
    if (peer < 0) fail_with_errno("accept");
    peers_.push_back(peer);
}

bool Rendezvous::hello_of(int peer, Hello& hello) const {
    const Clock::time_point latest = std::min(latest_, Clock::now() + kForHello);
    std::size_t done = 0;
    while (done < sizeof hello) {
        const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(latest - Clock::now()).count();
        pollfd event{peer, POLLIN, 0};
        if (left <= 0) return false;
        if (::poll(&event, 1, static_cast<int>(left)) <= 0) continue;
        const ssize_t got = ::recv(peer, reinterpret_cast<char*>(&hello) + done, sizeof hello - done, 0);
        if (got == 0 || (got < 0 && errno != EINTR)) return false;
        if (got > 0) done += static_cast<std::size_t>(got);
    }
    return std::memcmp(hello.magic, kMagic, sizeof hello.magic) == 0;
}

std::string Rendezvous::objection_to(const Hello& hello, const std::vector<int>& by_rank) const {
    if (hello.size != size_)
        return "rank " + std::to_string(hello.rank) + " was started as one of " + std::to_string(hello.size) +
               " processes, rank 0 as one of " + std::to_string(size_);
    if (hello.rank < 1 || hello.rank >= size_ || by_rank[static_cast<std::size_t>(hello.rank)] >= 0)
        return "two processes say that they are rank " + std::to_string(hello.rank);
    return "";
}

std::vector<int> Rendezvous::take_connections() {
    std::vector<int> by_rank(static_cast<std::size_t>(size_), -1);
    Hello hello{{}, rank_, size_};
    std::memcpy(hello.magic, kMagic, sizeof hello.magic);
    if (rank_ != 0) {
        send(descriptor_, std::string(reinterpret_cast<const char*>(&hello), sizeof hello));
        const std::string objection = receive_text(descriptor_);
        if (!objection.empty()) fail("joining", objection);
        by_rank[0] = std::exchange(descriptor_, -1);
        return by_rank;
    }
    while (peers_.size() + 1 < static_cast<std::size_t>(size_)) {
        accept_peer();
        Hello other;
        if (!hello_of(peers_.back(), other)) {  // something else that tries ports
            ::close(peers_.back());
            peers_.pop_back();
            continue;
        }
        const std::string objection = objection_to(other, by_rank);
        if (!objection.empty()) {
            for (const int peer : peers_) send_text(peer, objection);
            fail("joining", objection);
        }
        by_rank[static_cast<std::size_t>(other.rank)] = peers_.back();
    }
    for (const int peer : peers_) send_text(peer, "");
    peers_.clear();
    return by_rank;
}

}  // namespace headway::backend
