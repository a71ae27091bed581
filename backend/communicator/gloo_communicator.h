#pragma once

#include <chrono>
#include <memory>
#include <span>

#include "backend/communicator/rendezvous.h"
#include "policies/learning/reduction.h"

namespace headway::backend {

/// The processes of a job, on one machine or many, over TCP (Gloo). Sums are the same in every process, bit for bit.
///
/// Throws BackendError, with call and rank, when a process is lost: its neighbours notice at once, and since each
/// closes its connections when it fails, so do the others; a process that hangs is noticed after `timeout`. A
/// communicator that failed cannot be used any more.
class GlooCommunicator final : public policies::Reduction {
  public:
    /// Returns when all processes have come. `timeout` is for that and for every sum.
    GlooCommunicator(const RendezvousPoint& point, int rank, int size, std::chrono::milliseconds timeout);
    ~GlooCommunicator() override;

    int rank() const override;
    int size() const override;
    void sum(std::span<double> values) override;

  private:
    class Impl;
    std::unique_ptr<Impl> impl_;
};

}  // namespace headway::backend
