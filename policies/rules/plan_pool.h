#pragma once

#include <cstdint>
#include <unordered_map>
#include <utility>
#include <vector>

#include "policies/episode.h"

namespace headway::policies {

/// Hash of everything in a plan.
std::uint64_t hash_of(const scenarios::Plan& plan);

/// Plans that looked good at some decision of some episode, and where. A sink: it listens to episodes.
class PlanPool final : public EpisodeSink {
  public:
    bool decided(const Decision& decision) override;

    /// At most `most` plans that together would have gained the most: each decision counts with the best of the chosen
    /// plans that was offered there. The dearest first; deterministic.
    std::vector<scenarios::Plan> best(std::size_t most) const;

  private:
    struct Entry {
        scenarios::Plan plan;
        std::vector<std::pair<std::size_t, double>> gains;  ///< decision, predicted seconds gained until the next
    };
    void add(const scenarios::Plan& plan, double gain_s);

    std::vector<Entry> entries_;
    std::unordered_multimap<std::uint64_t, std::size_t> by_hash_;
    std::size_t decisions_ = 0;
};

}  // namespace headway::policies
