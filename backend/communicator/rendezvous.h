#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

namespace headway::backend {

/// Where the processes of a job find each other: "HOST:PORT" of rank 0.
struct RendezvousPoint {
    std::string host;
    int port = 0;
    int listener = -1;  ///< rank 0: a socket that listens there already and is taken over; -1: it opens one
};

/// Throws std::invalid_argument for a text that is not "HOST:PORT".
RendezvousPoint parse_rendezvous(const std::string& text);

/// How the processes of a job get a connection each to rank 0: it listens at the point, the others connect to it, as
/// soon as it is there; nothing is left running afterwards. Throws BackendError, after `timeout` at the latest.
class Rendezvous {
  public:
    /// Rank 0: listens. The others: connect.
    Rendezvous(const RendezvousPoint& point, int rank, int size, std::chrono::milliseconds timeout);
    ~Rendezvous();
    Rendezvous(const Rendezvous&) = delete;
    Rendezvous& operator=(const Rendezvous&) = delete;

    /// Numeric address of this process by which the others of the job can reach it.
    const std::string& own_address() const { return own_address_; }
    /// Once: rank 0 gets a connected socket to every other rank [size, -1 for itself], the others get
    /// [size] with one to rank 0. They are the caller's to close. Fails in all when two processes say that they are the
    /// same rank, or one was started for another number of processes.
    std::vector<int> take_connections();

  private:
    struct Hello {
        char magic[8];
        std::int32_t rank;
        std::int32_t size;
    };
    using Clock = std::chrono::steady_clock;

    [[noreturn]] void fail(const std::string& call, const std::string& why) const;
    [[noreturn]] void fail_with_errno(const std::string& call) const;
    void listen();
    void connect();
    void wait(int descriptor, short events, const std::string& what) const;
    void send(int descriptor, const std::string& bytes) const;
    std::string receive(int descriptor, std::size_t count) const;
    void send_text(int descriptor, const std::string& text) const;
    std::string receive_text(int descriptor) const;
    void accept_peer();
    /// False when what connected there is none of this job.
    bool hello_of(int peer, Hello& hello) const;
    std::string objection_to(const Hello& hello, const std::vector<int>& by_rank) const;

    RendezvousPoint point_;
    int rank_;
    int size_;
    Clock::time_point latest_;
    std::string own_address_;
    int descriptor_ = -1;     ///< rank 0: the listening socket; others: to rank 0
    std::vector<int> peers_;  ///< rank 0: [size - 1] in order of their arrival
};

}  // namespace headway::backend
