#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "backend/communicator/communicator.h"

namespace headway::backend {

/// One message under way.
class Transfer;

/// Connections between processes that share a group, one for each pair of processes whatever the number of groups
/// (Gloo's TCP transport): messages with a slot each, moved in the background. Any thread.
///
/// The first failure ends everything, here and through the control in all processes: what waits fails at once with its
/// reason, connections are closed.
class GlooMesh {
  public:
    GlooMesh(Control& control, std::chrono::milliseconds timeout);
    ~GlooMesh();
    GlooMesh(const GlooMesh&) = delete;
    GlooMesh& operator=(const GlooMesh&) = delete;

    Control& control() { return control_; }
    std::chrono::milliseconds timeout() const { return timeout_; }
    /// Connects to those of `processes` to which there is no connection. Every process of the job calls it at the same
    /// time; `agreed` has to be the same in all (else it throws, saying so).
    void connect(const std::vector<int>& processes, std::uint64_t agreed);

    /// Both ends name the same slot and the same number of bytes; messages of one slot between two processes match in
    /// order. The memory stays until the transfer is done or wait has thrown. `call` is for messages.
    std::shared_ptr<Transfer> send(int process, std::uint64_t slot, const void* data, std::size_t bytes,
                                   const std::string& call);
    std::shared_ptr<Transfer> receive(int process, std::uint64_t slot, void* data, std::size_t bytes,
                                      const std::string& call);
    /// Waits for it, at most the timeout. Throws BackendError.
    void wait(Transfer& transfer, const std::string& call);

    /// Throws BackendError when something has failed before.
    void check(const std::string& call) const;
    /// Ends everything, at all processes.
    void fail(const std::string& reason);
    /// `what` went wrong in `call`, perhaps because something else had. Ends everything with the first reason and
    /// throws BackendError with it, once no memory of this process is written to any more.
    [[noreturn]] void fail_call(const std::string& call, const std::string& what);
    /// Payload that this process sent so far.
    std::int64_t bytes_sent() const { return bytes_sent_; }

  private:
    class Connections;
    std::shared_ptr<Transfer> post(int process, bool sends, std::uint64_t slot, void* data, std::size_t bytes,
                                   const std::string& call);
    std::string failure() const;
    void end();

    Control& control_;
    std::chrono::milliseconds timeout_;
    std::atomic<std::int64_t> bytes_sent_{0};
    std::unique_ptr<Connections> connections_;
    std::shared_ptr<void> told_;  ///< last: goes first
};

}  // namespace headway::backend
