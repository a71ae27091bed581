#pragma once

#include <cstdint>

#include "scenarios/language/scenario.h"

namespace headway::tests {

/// One of seven jobs of 16 to 64 GPUs with one to three disturbances from the start on: slow GPUs and nodes,
/// co-tenants, power caps, slow links, late messages. The same seed gives the same scenario.
scenarios::Scenario disturbed_job(std::uint64_t seed);

}  // namespace headway::tests
