#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "backend/communicator/communicator.h"
#include "backend/communicator/rendezvous.h"

namespace headway::backend {

/// Control over TCP: every process has one connection, to rank 0, which also notices within milliseconds when a process
/// is gone and tells the others. One thread at a time makes the calls; abort may come from any.
///
/// A failed control stays failed. Survivors go on by making a new one among themselves, with new ranks, at the same
/// point (if the host of rank 0 has it) or another.
class HostControl final : public Control {
  public:
    /// Returns when all processes have come. `timeout` is for that and for every call. Throws BackendError.
    HostControl(const RendezvousPoint& point, int rank, int size, std::chrono::milliseconds timeout);
    ~HostControl() override;

    int rank() const override;
    int size() const override;
    const std::string& address() const override;
    void broadcast(std::vector<char>& bytes, int root) override;
    std::vector<std::vector<char>> gather(const std::vector<char>& bytes, int root) override;
    std::vector<std::vector<char>> all_gather(const std::vector<char>& bytes) override;
    void abort(const std::string& reason) override;
    std::shared_ptr<void> when_failed(std::function<void(const std::string& reason)> notify) override;

  private:
    class Impl;
    std::unique_ptr<Impl> impl_;
};

}  // namespace headway::backend
