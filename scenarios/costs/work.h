#pragma once

#include <algorithm>
#include <cmath>

#include "scenarios/language/units.h"

namespace headway::scenarios {

/// State of a GPU relative to nominal, 1.0 each when healthy.
struct GpuPace {
    double compute = 1.0;  ///< SM clock over the nominal clock, times the share left by co-tenants
    double memory = 1.0;   ///< memory bandwidth over nominal
    double fabric = 1.0;   ///< bandwidth of the node's own fabric over nominal
    bool operator==(const GpuPace&) const = default;
};

/// Time of a piece of work on a healthy GPU, split by what limits it: only the compute-bound part stretches when the
/// clock falls (1725 to 1365 MHz cost a memory-bound load 5 %, measured), and launch cost stretches with nothing.
struct Work {
    Duration compute;  ///< limited by arithmetic: scales with 1 / GpuPace::compute
    Duration memory;   ///< limited by memory bandwidth: scales with 1 / GpuPace::memory
    Duration fixed;    ///< launch and host time
    Duration
        communication;  ///< exposed tensor and context communication inside the work: scales with 1 / GpuPace::fabric

    Duration total() const { return compute + memory + fixed + communication; }
    Duration at(const GpuPace& pace) const {
        return compute.scaled(1.0 / pace.compute) + memory.scaled(1.0 / pace.memory) + fixed +
               communication.scaled(1.0 / pace.fabric);
    }
    Work scaled(double factor) const {
        return factor == 1.0 ? *this
                             : Work{compute.scaled(factor), memory.scaled(factor), fixed.scaled(factor),
                                    communication.scaled(factor)};
    }
    Work& operator+=(const Work& other) {
        compute += other.compute;
        memory += other.memory;
        fixed += other.fixed;
        communication += other.communication;
        return *this;
    }
    friend Work operator+(Work a, const Work& b) { return a += b; }
    friend Work operator*(const Work& a, int n) {
        return {a.compute * n, a.memory * n, a.fixed * n, a.communication * n};
    }
};

}  // namespace headway::scenarios
