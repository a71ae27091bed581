#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "backend/data/token_source.h"
#include "backend/device/device.h"
#include "scenarios/language/job.h"
#include "scenarios/language/plan.h"

namespace headway::backend {

/// Tokens of a replica's micro-batches. The samples of a step are numbered over all replicas: each trains a range, in
/// the order of the replicas, whatever the shares, so that all plans train on the same global batch.
class Samples {
  public:
    Samples(const scenarios::Job& job, const scenarios::Plan& plan, int replica, Device& device,
            const TokenSource& tokens);

    /// Ranges as `plan` shares them. Between steps.
    void share(const scenarios::Plan& plan, int replica);
    void begin(std::int64_t step, std::uint64_t seed);
    /// Row 0: tokens, row 1: targets, which are the tokens one later. [2 x tokens], kInt32; kept until release.
    Tensor read(int micro_batch);
    void release(int micro_batch) { kept_.erase(micro_batch); }

  private:
    Device& device_;
    const TokenSource& tokens_;
    const std::int64_t global_batch_, micro_batch_, length_;
    std::int64_t first_of_replica_ = 0;
    std::int64_t step_ = 0;
    std::uint64_t seed_ = 0;
    std::map<int, Buffer> kept_;
    std::vector<std::int32_t> sequence_, rows_;  // scratch
};

}  // namespace headway::backend
