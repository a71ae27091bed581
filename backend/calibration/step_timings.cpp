#include <algorithm>
#include <string>

#include "backend/calibration/timings.h"
#include "backend/training/trainer.h"

namespace headway::backend {

namespace {

using scenarios::Duration;
using scenarios::Op;

/// Tokens without meaning: their values do not change how long a step takes.
class AnyTokens final : public TokenSource {
  public:
    explicit AnyTokens(int vocabulary) : vocabulary_(vocabulary) {}
    std::int64_t tokens() const override { return 1 << 20; }
    int vocabulary() const override { return vocabulary_; }
    void read(std::uint64_t seed, std::int64_t sample, std::span<std::int32_t> sequence) const override {
        std::uint64_t state = seed + 0x9e3779b97f4a7c15u * static_cast<std::uint64_t>(sample + 1);
        for (std::int32_t& token : sequence) {
            state = state * 6364136223846793005u + 1442695040888963407u;
            token = static_cast<std::int32_t>((state >> 33) % static_cast<std::uint64_t>(vocabulary_));
        }
    }

  private:
    int vocabulary_;
};

Duration lower_quartile(std::vector<Duration> times) {
    std::nth_element(times.begin(), times.begin() + static_cast<std::ptrdiff_t>(times.size() / 4), times.end());
    return times[times.size() / 4];
}

scenarios::Job small_job(int hidden, int head_dim, int layers, int sequence, int micro_batch, int vocabulary) {
    scenarios::Job job;
    job.model.name = "calibration";
    job.model.layers = layers;
    job.model.hidden = hidden;
    job.model.heads = hidden / head_dim;
    job.model.kv_heads = job.model.heads;
    job.model.head_dim = head_dim;
    job.model.ffn = 4 * hidden;
    job.model.vocab = vocabulary;
    job.model.sequence_length = sequence;
    job.micro_batch = micro_batch;
    job.global_batch = 4 * micro_batch;
    return job;
}

}  // namespace

scenarios::Plan plan_of_one_rank(const scenarios::Job& job) {
    scenarios::Plan plan;
    plan.gpu_of_rank = {0};
    plan.layers_of_cell = {job.model.layers};
    plan.micro_batches_of_replica = {job.global_batch / job.micro_batch};
    return plan;
}

std::vector<scenarios::Job> calibration_jobs(bool large, scenarios::Precision precision) {
    std::vector<scenarios::Job> jobs;
    if (large) {
        jobs = {small_job(768, 64, 12, 1024, 8, 50304), small_job(1024, 64, 8, 1024, 8, 50304),
                small_job(2048, 128, 4, 2048, 4, 50304), small_job(4096, 128, 2, 2048, 4, 32000),
                small_job(1024, 64, 8, 512, 4, 1024)};
    } else {
        jobs = {small_job(128, 32, 4, 128, 4, 256), small_job(256, 64, 4, 128, 2, 256),
                small_job(256, 64, 2, 64, 4, 8192), small_job(256, 64, 2, 256, 2, 256),
                small_job(512, 64, 2, 128, 2, 256), small_job(128, 64, 8, 64, 2, 256)};
    }
    // One with the kernels of Llama.
    scenarios::Job llama = jobs[1];
    llama.model.positions = scenarios::Positions::kRotary;
    llama.model.norm = scenarios::Norm::kRms;
    llama.model.biases = false;
    llama.model.gated_mlp = true;
    llama.model.tied_embedding = false;
    jobs.push_back(llama);
    for (scenarios::Job& job : jobs) job.precision = precision;
    return jobs;
}

std::optional<StepTiming> time_step(Device& device, CommunicatorMaker& communicators, const scenarios::Job& job,
                                    int process) {
    constexpr int kWarmUp = 2, kSteps = 7;
    const AnyTokens tokens(job.model.vocab);
    Trainer trainer(job, plan_of_one_rank(job), process, device, communicators, tokens);
    if (trainer.rank() < 0) return std::nullopt;
    trainer.initialise(1);
    std::vector<Duration> forwards, backwards, optimizers;
    for (int step = 0; step < kWarmUp + kSteps; ++step) {
        const StepResult result = trainer.step(step, 1, nullptr);
        if (step < kWarmUp) continue;
        for (const TimedInstruction& timed : result.instructions) {
            const Duration spent = timed.end - timed.begin - timed.exposed;
            if (timed.instruction.op == Op::kForward) forwards.push_back(spent);
            if (timed.instruction.op == Op::kBackward) backwards.push_back(spent);
            if (timed.instruction.op == Op::kOptimizerStep) optimizers.push_back(spent);
        }
    }
    return StepTiming{job, lower_quartile(forwards), lower_quartile(backwards), lower_quartile(optimizers)};
}

}  // namespace headway::backend
