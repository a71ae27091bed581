#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <vector>

#include "scenarios/language/units.h"

namespace headway::sim {

using scenarios::Duration;

/// Whose fault it was: splits what an iteration took longer than healthy among the causes in force.
///
/// With one cause it bears all. With several, each weighs what the iteration loses by its direct effects (the time with
/// all minus the time without it, contention at rounded paces), and the weights are scaled to the whole excess; where
/// no cause weighs anything by itself (two that hide each other), they share equally.
class Attribution {
  public:
    /// Time of the iteration without the direct effects of one cause (-1: with all).
    using TimeWithout = std::function<Duration(int cause)>;

    /// `situation` names everything the times depend on, so that weights can be used again; empty: never again. Adds to
    /// `costs_ns` [disturbances].
    void split(std::int64_t excess_ns, const std::vector<int>& causes, const std::vector<std::uint64_t>& situation,
               const TimeWithout& time_without, std::vector<std::int64_t>& costs_ns);
    void clear() { weights_.clear(); }

  private:
    static std::vector<double> weigh(const std::vector<int>& causes, const TimeWithout& time_without);

    std::map<std::vector<std::uint64_t>, std::vector<double>> weights_;
};

}  // namespace headway::sim
