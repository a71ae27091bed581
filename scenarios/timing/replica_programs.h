#pragma once

#include <map>
#include <utility>

#include "scenarios/language/plan.h"
#include "scenarios/timing/compiled_replica.h"

namespace headway::scenarios {

/// Compiled replicas of one layout, by micro-batches: shared by the evaluators of all plans with that layout, since
/// compiling takes longer than evaluating.
class ReplicaPrograms {
  public:
    enum class Counts {
        kExact,  ///< a program for every count of micro-batches
        kGrid,   ///< counts from 32 on only on a grid of at most a quarter; what lies between is interpolated
    };
    explicit ReplicaPrograms(const Layout& layout, Counts counts = Counts::kExact) : layout_(layout), counts_(counts) {}

    const Layout& layout() const { return layout_; }
    /// Compiled on first use; stays where it is. Throws std::invalid_argument as make_program does.
    CompiledReplica& program(int micro_batches, bool delays);
    /// Throws like `program`, without compiling anything.
    void check(int micro_batches) const;
    /// The counts between which `micro_batches` is interpolated; both are `micro_batches` where there is a program for
    /// it. From a count of micro-batches that fills the pipeline several times on, one more costs the same (the longest
    /// path goes round the slowest stage), so this is off by less than a thousandth.
    std::pair<int, int> around(int micro_batches) const;

  private:
    Layout layout_;
    Counts counts_;
    std::map<std::pair<int, bool>, CompiledReplica> compiled_;
};

}  // namespace headway::scenarios
