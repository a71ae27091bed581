#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include "backend/communicator/communicator.h"

/// Ranks as threads of this process, whose communicators copy from memory to memory: fast enough for many plans, and
/// stricter than a transport has to be. Members that call different things, or state different sizes, fail; messages
/// between two members run strictly in the order of their exchanges, so that a program which needs more deadlocks here;
/// and a deadlock is an error after the timeout, on every rank.
namespace headway::tests {

class ThreadHub;

/// One rank's access to the hub.
class ThreadMaker final : public backend::CommunicatorMaker {
  public:
    ThreadMaker(std::shared_ptr<ThreadHub> hub, int process) : hub_(std::move(hub)), process_(process) {}
    std::vector<std::unique_ptr<backend::Communicator>> make(const std::vector<backend::GroupSpec>& groups) override;

  private:
    std::shared_ptr<ThreadHub> hub_;
    int process_;
    int made_ = 0;
};

/// Runs `rank(process, communicators)` once for each process, all at the same time. The first error (by time) is thrown
/// once all have ended.
void run_thread_ranks(int processes, std::chrono::milliseconds timeout,
                      const std::function<void(int process, backend::CommunicatorMaker& communicators)>& rank);

}  // namespace headway::tests
