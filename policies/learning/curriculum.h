#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "scenarios/language/random.h"

namespace headway::policies {

struct CurriculumOptions {
    double uniform_share = 0.4;  ///< of the draws that regard no gap, so that nothing is forgotten
    double sharpness = 1.0;      ///< weight grows with gap^sharpness
    double memory = 0.7;         ///< of a scenario's gap from one visit to the next
    double first_gap = 0.05;     ///< of a scenario that was not visited yet
};

/// Which scenario is trained on next: those in which a better way is known to exist get more of the time (Genet,
/// SIGCOMM'22: curriculum by the gap to a rule). Pure data: who trains tells what was reached.
class Curriculum {
  public:
    /// Throws std::invalid_argument for no scenarios or shares outside 0..1.
    Curriculum(std::size_t scenarios, const CurriculumOptions& options = {});

    std::size_t size() const { return gap_.size(); }
    std::size_t draw(scenarios::RandomStream& stream) const;
    /// Probability of each scenario; sums to 1.
    std::vector<double> probabilities() const;
    /// After a visit: goodput that the learner reached and that the best known reference (oracle, greedy) reached in
    /// the same scenario and seed.
    void record(std::size_t scenario, double learner, double reference);
    double gap(std::size_t scenario) const { return gap_.at(scenario); }

    /// For checkpoints. `restore` throws std::runtime_error for bytes of another number of scenarios.
    std::string bytes() const;
    void restore(std::string_view bytes);

  private:
    CurriculumOptions options_;
    std::vector<double> gap_;
};

}  // namespace headway::policies
