#pragma once

#include "scenarios/costs/work.h"

namespace headway::scenarios {

/// Work in unrounded seconds: what costs are added up in before they become integer nanoseconds.
struct WorkSeconds {
    double compute = 0.0;
    double memory = 0.0;
    double fixed = 0.0;
    double communication = 0.0;

    double total() const { return compute + memory + fixed + communication; }
    Work rounded() const {
        return {Duration::seconds(compute), Duration::seconds(memory), Duration::seconds(fixed),
                Duration::seconds(communication)};
    }
    WorkSeconds& operator+=(const WorkSeconds& other) {
        compute += other.compute;
        memory += other.memory;
        fixed += other.fixed;
        communication += other.communication;
        return *this;
    }
    friend WorkSeconds operator+(WorkSeconds a, const WorkSeconds& b) { return a += b; }
    friend WorkSeconds operator*(WorkSeconds a, double n) {
        return {a.compute * n, a.memory * n, a.fixed * n, a.communication * n};
    }
};

}  // namespace headway::scenarios
