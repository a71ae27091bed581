#pragma once

#include <string>

#include "scenarios/language/hardware.h"
#include "scenarios/language/job.h"
#include "scenarios/language/stack.h"

/// Fitted constants as catalogue entries: each on a base, from which it takes what was not measured, with where its
/// numbers come from.
namespace headway::backend {

struct EntryOrigin {
    std::string base;    ///< entry of the same kind
    std::string source;  ///< "headway calibrate on 2026-12-01: host, AMD EPYC, 2 processors"
};

std::string gpu_entry(const scenarios::GpuType& gpu, bool peak_known, scenarios::Precision precision,
                      const EntryOrigin& origin);
/// `messages`: host_message was measured.
std::string stack_entry(const scenarios::SoftwareStack& stack, bool messages, const EntryOrigin& origin);
std::string fabric_entry(const scenarios::Fabric& fabric, const EntryOrigin& origin);

}  // namespace headway::backend
