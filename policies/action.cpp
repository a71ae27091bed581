#include "policies/action.h"

#include <stdexcept>

#include "policies/observation.h"

namespace headway::policies {

const char* name_of(Candidate::Kind kind) {
    switch (kind) {
        case Candidate::Kind::kKeep:
            return "keep";
        case Candidate::Kind::kWaitForReplacement:
            return "wait-for-replacement";
    }
    throw std::logic_error("a candidate of unknown kind");
}

std::vector<Candidate> propose_candidates(const Observation& observation) {
    if (observation.loss) {
        return {{Candidate::Kind::kWaitForReplacement, observation.plan,
                 "the plan needs a part that was lost: restart it when a spare or the repaired part arrives"}};
    }
    return {{Candidate::Kind::kKeep, observation.plan, "keep the plan"}};
}

}  // namespace headway::policies
