#include "policies/planning/candidate_generator.h"

namespace headway::policies {

class CandidateGenerator::Impl {};

CandidateGenerator::CandidateGenerator(const ClusterFacts&) : impl_(std::make_unique<Impl>()) {}
CandidateGenerator::~CandidateGenerator() = default;
CandidateGenerator::CandidateGenerator(CandidateGenerator&&) noexcept = default;
CandidateGenerator& CandidateGenerator::operator=(CandidateGenerator&&) noexcept = default;

void CandidateGenerator::start_episode() {}

std::vector<Candidate> CandidateGenerator::propose(const Observation& observation,
                                                   std::span<const scenarios::Plan> /*further*/) {
    if (observation.loss) {
        return {{Candidate::Kind::kWaitForReplacement,
                 observation.plan,
                 {},
                 "the plan needs a part that was lost: restart it when a spare or the repaired part arrives"}};
    }
    return {{Candidate::Kind::kKeep, observation.plan, {}, "keep the plan"}};
}

}  // namespace headway::policies
