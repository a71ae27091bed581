#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "scenarios/language/plan.h"
#include "scenarios/language/units.h"

namespace headway::policies {

/// One thing the job could do next. Candidate 0 is "keep the plan": free and always legal; after a loss that makes it
/// impossible it is "restart the same plan when a spare or the repaired part arrives", charged its real time.
struct Candidate {
    enum class Kind { kKeep, kWaitForReplacement } kind = Kind::kKeep;
    scenarios::Plan plan;
    std::string why;
};

/// "keep", "wait-for-replacement".
const char* name_of(Candidate::Kind kind);

/// Index into the legal candidates: an illegal action cannot be expressed.
struct Action {
    std::size_t candidate = 0;
};

struct Observation;

/// What the job may do next, in a fixed order. Never empty.
std::vector<Candidate> propose_candidates(const Observation& observation);

}  // namespace headway::policies
