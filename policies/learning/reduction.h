#pragma once

#include <cstdint>
#include <span>

namespace headway::policies {

/// Sums over the processes that train one policy together. Handed in, so that policies/ knows no network; every process
/// makes the same calls in the same order with equal sizes.
class Reduction {
  public:
    virtual ~Reduction() = default;
    virtual int rank() const = 0;
    virtual int size() const = 0;
    /// Every process ends with the sum over all of them, bit for bit the same everywhere.
    virtual void sum(std::span<double> values) = 0;
};

/// One process alone.
class NoReduction final : public Reduction {
  public:
    int rank() const override { return 0; }
    int size() const override { return 1; }
    void sum(std::span<double>) override {}
};

}  // namespace headway::policies
