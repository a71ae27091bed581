#pragma once

#include <chrono>
#include <memory>
#include <span>

#include "backend/communicator/host_communicators.h"
#include "backend/communicator/host_control.h"
#include "backend/communicator/rendezvous.h"
#include "policies/learning/reduction.h"

namespace headway::backend {

/// Sums over the processes that train a policy offline, on one machine or many: one group of all of them.
class HostReduction final : public policies::Reduction {
  public:
    /// Returns when all processes have come. `timeout` is for that and for every sum. Throws BackendError, as sum does.
    HostReduction(const RendezvousPoint& point, int rank, int size, std::chrono::milliseconds timeout);

    int rank() const override { return control_.rank(); }
    int size() const override { return control_.size(); }
    void sum(std::span<double> values) override;

  private:
    HostControl control_;
    HostCommunicatorMaker maker_;
    std::unique_ptr<Communicator> all_;
};

}  // namespace headway::backend
