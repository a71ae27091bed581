#include "policies/planning/plan_explanation.h"

#include <array>
#include <cstdio>

namespace headway::policies {

namespace {

using scenarios::Duration;

constexpr double kWorthNaming = 0.01;
constexpr double kFull = 0.9;     ///< of a GPU's memory
constexpr double kTied = 0.0005;  ///< of the iteration

struct NamedPart {
    const char* name;
    Duration IterationShares::*part;
};
constexpr std::array kParts = {
    NamedPart{"bubble", &IterationShares::bubble}, NamedPart{"tensor communication", &IterationShares::tensor},
    NamedPart{"pipeline communication", &IterationShares::pipeline},
    NamedPart{"data communication", &IterationShares::data}, NamedPart{"computation", &IterationShares::compute}};

std::string percent(double fraction) {
    char text[32];
    std::snprintf(text, sizeof text, "%.1f %%", fraction * 100.0);
    return text;
}

std::string ahead_of(const PlannedLayout& plan, const PlannedLayout& next) {
    const double gain = next.iteration / plan.iteration - 1.0;
    if (gain < kTied) return "as fast as the next";
    const NamedPart* most = &kParts.front();
    for (const NamedPart& part : kParts)
        if (next.shares.*part.part - plan.shares.*part.part > next.shares.*most->part - plan.shares.*most->part)
            most = &part;
    const bool contention = next.contention - plan.contention > next.shares.*most->part - plan.shares.*most->part;
    return percent(gain) + " ahead of the next by less " + (contention ? "contention" : most->name);
}

}  // namespace

std::string explain(const PlannedLayout& plan, const PlannedLayout* next) {
    std::string text;
    for (const NamedPart& part : kParts) {
        if (part.part == &IterationShares::compute) continue;
        const double share = plan.shares.*part.part / plan.iteration;
        if (share < kWorthNaming) continue;
        text += (text.empty() ? "" : ", ") + std::string(part.name) + " " + percent(share);
    }
    if (const double share = plan.contention / plan.iteration; share >= kWorthNaming)
        text += (text.empty() ? "" : ", ") + std::string("contention for links ") + percent(share);
    if (text.empty()) text = "nothing but computation";
    const double full = static_cast<double>(plan.memory.count()) / static_cast<double>(plan.gpu_memory.count());
    if (full > kFull) text += ", memory " + percent(full) + " full";
    if (next != nullptr) text += "; " + ahead_of(plan, *next);
    return text;
}

}  // namespace headway::policies
