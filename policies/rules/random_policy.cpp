#include "policies/rules/random_policy.h"

#include "policies/rules/judgement.h"
#include "scenarios/language/random.h"

namespace headway::policies {

namespace {

/// Any candidate now and then; after a loss any at all.
class RandomChoices final : public Policy {
  public:
    RandomChoices(std::uint64_t seed, std::uint64_t index, double switching)
        : random_(seed, "random policy", index), switching_(switching) {}
    std::string_view name() const override { return "random choices"; }
    void start_episode(const ClusterFacts&, std::uint64_t) override {}
    Action decide(const Observation&, const std::vector<Candidate>& candidates) override {
        const auto count = static_cast<std::int64_t>(candidates.size());
        if (after_loss(candidates)) return {static_cast<std::size_t>(random_.below(count))};
        if (count < 2 || random_.uniform() >= switching_) return {0};
        return {static_cast<std::size_t>(1 + random_.below(count - 1))};
    }

  private:
    scenarios::RandomStream random_;
    double switching_;
};

}  // namespace

RandomPolicy::RandomPolicy(RuleParameters parameters, const PolicyResources& resources)
    : RehearsedPolicy(parameters.text(), resources),
      tries_(parameters.count("tries", 8, 1, 10'000)),
      switching_(parameters.number("switching", 0.1, 0.0, 1.0)) {
    parameters.expect_all_known();
}

void RandomPolicy::rehearse(Rehearsal& rehearsal, const ClusterFacts& /*facts*/, std::uint64_t seed) {
    rehearsal.play(*make_policy("static"), nullptr);
    for (int attempt = 0; attempt < tries_; ++attempt) {
        RandomChoices choices(seed, static_cast<std::uint64_t>(attempt), switching_);
        rehearsal.play(choices, nullptr);
    }
}

}  // namespace headway::policies
