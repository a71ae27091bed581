#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "backend/device/tensor.h"
#include "backend/training/trainer.h"
#include "scenarios/language/job.h"
#include "scenarios/language/plan.h"

/// Small jobs that are trained for a few steps under a plan, by ranks that are threads of this process.
namespace headway::tests {

/// GPT-2 and Llama in small: 4 layers, 8 sequences a step.
scenarios::Job gpt2_in_small();
scenarios::Job llama_in_small();

/// Layers and micro-batches as even as possible, rank r on GPU r.
scenarios::Plan even_plan(const scenarios::Job& job, const scenarios::Layout& layout);

/// Short sequences with a pattern to learn.
class PatternTokens final : public backend::TokenSource {
  public:
    explicit PatternTokens(int vocabulary) : vocabulary_(vocabulary) {}
    std::int64_t tokens() const override { return std::int64_t{1} << 40; }
    int vocabulary() const override { return vocabulary_; }
    void read(std::uint64_t seed, std::int64_t sample, std::span<std::int32_t> sequence) const override;

  private:
    int vocabulary_;
};

/// Values of a block in block order: master weights and moments, as float64.
struct BlockState {
    std::vector<double> master, first_moment, second_moment;
};
/// (kind, layer) -> block without padding
using ModelState = std::map<std::pair<int, int>, BlockState>;

struct TrainingCase {
    scenarios::Job job;
    scenarios::Plan plan;
    int processes = 0;  ///< 0: one a rank
    int first_step = 0;
    int steps = 20;
    std::uint64_t seed = 7;
    backend::DataType type = backend::DataType::kFloat64;
    const ModelState* from = nullptr;  ///< null: as at the beginning of training
    backend::Pace* pace = nullptr;     ///< of the process on which rank 0 runs
};

struct TrainingOutcome {
    std::vector<double> losses;          ///< [steps]
    std::vector<double> gradient_norms;  ///< [steps]
    ModelState state;
    std::vector<std::vector<backend::TimedInstruction>> instructions;  ///< [ranks], of the last step
};

/// Trains. Fails the test where ranks differ in loss or norm, where copies of an element differ in any bit, or where an
/// element is nobody's.
TrainingOutcome train(const TrainingCase& training);

/// Largest relative difference of two curves.
double largest_difference(const std::vector<double>& a, const std::vector<double>& b);
/// Largest difference of two states over the largest value in its block.
double largest_difference(const ModelState& a, const ModelState& b);

}  // namespace headway::tests
