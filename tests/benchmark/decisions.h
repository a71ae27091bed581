#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace headway::benchmarks {

/// What generating candidates costs in random disturbed episodes: GPT-3 1.3B on 8 nodes of 8 A100s (tensor 2,
/// pipeline 4), GPT-3 175B on more (tensor 8, pipeline 16).
class DecisionCosts {
  public:
    struct Decision {
        double seconds = 0.0;  ///< CPU
        std::size_t candidates = 0;
        bool fresh = false;  ///< something changed
        bool first = false;  ///< of a new generator, which knows no programs or costs yet
    };

    explicit DecisionCosts(int nodes);
    ~DecisionCosts();
    /// Intervals of ten iterations; up to three disturbances begin in the course of them. Every second interval the
    /// plan becomes the fastest candidate's.
    std::vector<Decision> episode(std::uint64_t seed);

  private:
    class Impl;
    std::unique_ptr<Impl> impl_;
};

}  // namespace headway::benchmarks
