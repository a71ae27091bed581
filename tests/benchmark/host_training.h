#pragma once

#include <cstdint>
#include <memory>

#include "scenarios/language/job.h"

namespace headway::benchmarks {

/// The GPT-2 model that llm.c's CPU trainer was measured with: 4 layers, hidden 256, 4 heads, 8,192 tokens of
/// vocabulary; 4 sequences of 64 tokens a step, in one micro-batch, float32.
scenarios::Job small_gpt2();

/// One process that trains it on the host, on random tokens.
class HostTraining {
  public:
    HostTraining();
    ~HostTraining();
    /// One iteration with its optimizer step; returns the loss.
    double step();
    /// Of one iteration, as MFU counts them (scenarios/costs/parameters.h).
    double operations_of_step() const;

  private:
    class Impl;
    std::unique_ptr<Impl> impl_;
};

/// Speed of a training step over multiply-adds in registers, both on one thread at the same time of day.
struct TrainingSpeed {
    double step_ms = 0.0;
    double gflops = 0.0;
    double peak_gflops = 0.0;
    double share() const { return gflops / peak_gflops; }
};
TrainingSpeed training_speed();

/// Prints it. False when the share stays below 0.38 in three tries: twice what llm.c's CPU trainer reaches (0.19, same
/// model, one thread).
bool print_host_training();

}  // namespace headway::benchmarks
