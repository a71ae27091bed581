#include "policies/rules/plan_pool.h"

#include <algorithm>

#include "policies/rules/judgement.h"

namespace headway::policies {

namespace {

/// Iterations between two decisions, as far as gains at a decision are concerned; losses are counted in whole.
constexpr std::int64_t kIterationsAhead = 10;

class PlanHash {
  public:
    void add(std::int64_t value) {
        state_ ^= static_cast<std::uint64_t>(value);
        state_ *= 0x100000001b3u;
        state_ ^= state_ >> 29;
    }
    void add(const std::vector<int>& values) {
        add(static_cast<std::int64_t>(values.size()));
        for (const int value : values) add(value);
    }
    std::uint64_t value() const { return state_; }

  private:
    std::uint64_t state_ = 0xcbf29ce484222325u;
};

}  // namespace

std::uint64_t hash_of(const scenarios::Plan& plan) {
    PlanHash hash;
    for (const int degree :
         {plan.layout.tensor, plan.layout.pipeline, plan.layout.data, plan.layout.context, plan.layout.virtual_pipeline,
          static_cast<int>(plan.layout.schedule), static_cast<int>(plan.layout.recompute)}) {
        hash.add(degree);
    }
    hash.add(plan.gpu_of_rank);
    hash.add(plan.layers_of_cell);
    hash.add(plan.micro_batches_of_replica);
    return hash.value();
}

void PlanPool::add(const scenarios::Plan& plan, double gain_s) {
    const std::uint64_t hash = hash_of(plan);
    const auto [first, last] = by_hash_.equal_range(hash);
    for (auto found = first; found != last; ++found) {
        Entry& entry = entries_[found->second];
        if (entry.plan != plan) continue;
        entry.gains.emplace_back(decisions_, gain_s);
        return;
    }
    by_hash_.emplace(hash, entries_.size());
    entries_.push_back({plan, {{decisions_, gain_s}}});
}

bool PlanPool::decided(const Decision& decision) {
    const auto& candidates = decision.candidates;
    for (std::size_t i = 1; i < candidates.size(); ++i) {
        if (after_loss(candidates)) {
            const Duration gained =
                predicted_lost_time(candidates[0], candidates[0]) - predicted_lost_time(candidates[i], candidates[0]);
            if (gained > Duration()) add(candidates[i].plan, gained.s());
        } else if (predicted_gain(candidates[i], candidates[0]) >= kLeastGain) {
            const Duration gained = candidates[0].predicted.iteration - candidates[i].predicted.iteration;
            add(candidates[i].plan, (gained * kIterationsAhead).s());
        }
    }
    ++decisions_;
    return true;
}

std::vector<scenarios::Plan> PlanPool::best(std::size_t most) const {
    std::vector<scenarios::Plan> chosen;
    std::vector<double> covered(decisions_, 0.0);
    while (chosen.size() < most) {
        double best_gain = 0.0;
        const Entry* best = nullptr;
        for (const Entry& entry : entries_) {
            double gain = 0.0;
            for (const auto& [decision, gained] : entry.gains) gain += std::max(gained - covered[decision], 0.0);
            if (gain <= best_gain) continue;
            best_gain = gain;
            best = &entry;
        }
        if (best == nullptr) break;
        for (const auto& [decision, gained] : best->gains) {
            covered[decision] = std::max(covered[decision], gained);
        }
        chosen.push_back(best->plan);
    }
    return chosen;
}

}  // namespace headway::policies
