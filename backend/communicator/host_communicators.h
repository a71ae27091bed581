#pragma once

#include <chrono>
#include <cstdint>
#include <memory>

#include "backend/communicator/communicator.h"

namespace headway::backend {

class GlooMesh;

/// Communicators for tensors in host memory: over TCP (Gloo), and collectives of a group whose members are all on one
/// machine through memory that they share. All groups of a process share one connection to each process with which it
/// shares any; threads move the data, so that transfers go on while the caller computes. Reduces float64, float32 and
/// int32; any type is gathered, broadcast and exchanged.
///
/// The first failure (a process that is lost or stays away for `timeout`, an abort) is a failure of the whole job: all
/// communicators of all its processes end with the same reason, and so does `control`.
class HostCommunicatorMaker final : public CommunicatorMaker {
  public:
    enum class Through { kNetwork, kSharedMemoryWherePossible };

    /// `control` outlives the maker and its communicators.
    HostCommunicatorMaker(Control& control, std::chrono::milliseconds timeout,
                          Through through = Through::kSharedMemoryWherePossible);
    ~HostCommunicatorMaker() override;
    std::vector<std::unique_ptr<Communicator>> make(const std::vector<GroupSpec>& groups) override;
    /// Payload that this process sent over the network so far, in all groups.
    std::int64_t bytes_sent() const;

  private:
    std::shared_ptr<GlooMesh> mesh_;
    Through through_;
    int made_ = 0;  ///< groups so far, in all processes
};

}  // namespace headway::backend
