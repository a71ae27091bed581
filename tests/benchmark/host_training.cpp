#include "tests/benchmark/host_training.h"

#include <algorithm>
#include <cstdio>
#include <ctime>
#include <span>

#include "backend/communicator/host_communicators.h"
#include "backend/communicator/host_control.h"
#include "backend/host/host_device.h"
#include "backend/training/trainer.h"
#include "scenarios/costs/parameters.h"
#include "scenarios/language/plan.h"
#include "tests/benchmark/host_speed.h"

namespace headway::benchmarks {

namespace {

constexpr double kLeastShareOfPeak = 0.38;
constexpr std::chrono::milliseconds kTimeout{10'000};

scenarios::Plan alone(const scenarios::Job& job) {
    scenarios::Plan plan;
    plan.gpu_of_rank = {0};
    plan.layers_of_cell = {job.model.layers};
    plan.micro_batches_of_replica = {job.global_batch / job.micro_batch};
    return plan;
}

double training_clock_s() {
    timespec now{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

}  // namespace

scenarios::Job small_gpt2() {
    scenarios::Job job;
    scenarios::Model& model = job.model;
    model.name = "gpt2 of 5 million";
    model.layers = 4;
    model.hidden = 256;
    model.heads = model.kv_heads = 4;
    model.head_dim = 64;
    model.ffn = 1024;
    model.vocab = 8192;
    model.sequence_length = 64;
    job.precision = scenarios::Precision::kFp32;
    job.global_batch = job.micro_batch = 4;
    job.stack.pads_vocabulary = false;
    return job;
}

class HostTraining::Impl {
  public:
    Impl()
        : job_(small_gpt2()),
          tokens_(job_.model.vocab),
          control_({"127.0.0.1", 0, -1}, 0, 1, kTimeout),
          device_(backend::make_host_device()),
          communicators_(control_, kTimeout),
          trainer_(job_, alone(job_), 0, *device_, communicators_, tokens_) {
        trainer_.initialise(kSeed);
    }
    double step() { return trainer_.step(next_++, kSeed, nullptr).loss; }
    double operations() const { return scenarios::model_flops(job_).value; }

  private:
    /// As good as random, and different in every sample.
    class ScatteredTokens final : public backend::TokenSource {
      public:
        explicit ScatteredTokens(int vocabulary) : vocabulary_(vocabulary) {}
        std::int64_t tokens() const override { return std::int64_t{1} << 40; }
        int vocabulary() const override { return vocabulary_; }
        void read(std::uint64_t seed, std::int64_t sample, std::span<std::int32_t> sequence) const override {
            std::uint64_t state = seed + static_cast<std::uint64_t>(sample) * 0x9e3779b97f4a7c15u;
            for (std::int32_t& token : sequence) {
                state = state * 6364136223846793005u + 1442695040888963407u;
                token = static_cast<std::int32_t>((state >> 33) % static_cast<std::uint64_t>(vocabulary_));
            }
        }

      private:
        int vocabulary_;
    };

    static constexpr std::uint64_t kSeed = 1;
    scenarios::Job job_;
    ScatteredTokens tokens_;
    backend::HostControl control_;
    std::unique_ptr<backend::Device> device_;
    backend::HostCommunicatorMaker communicators_;
    backend::Trainer trainer_;
    std::int64_t next_ = 0;
};

HostTraining::HostTraining() : impl_(std::make_unique<Impl>()) {}
HostTraining::~HostTraining() = default;

double HostTraining::step() {
    return impl_->step();
}
double HostTraining::operations_of_step() const {
    return impl_->operations();
}

TrainingSpeed training_speed() {
    constexpr int kSteps = 10;
    HostTraining training;
    training.step();  // memory is taken now
    double best = 1e9, peak = peak_gflops();
    for (int step = 0; step < kSteps; ++step) {
        const double start = training_clock_s();
        training.step();
        best = std::min(best, training_clock_s() - start);
    }
    peak = std::max(peak, peak_gflops());
    return {1e3 * best, 1e-9 * training.operations_of_step() / best, peak};
}

bool print_host_training() {
    TrainingSpeed speed;
    bool kept = false;
    for (int attempt = 0; attempt < 3 && !kept; ++attempt) {
        speed = training_speed();
        kept = speed.share() >= kLeastShareOfPeak;
    }
    std::printf(
        "host training step, GPT-2 of 5.3 million, 256 tokens: %.0f ms, %.1f GFLOP/s; over multiply-adds "
        "(%.0f) %5.2f (at least %.2f)%s\n",
        speed.step_ms, speed.gflops, speed.peak_gflops, speed.share(), kLeastShareOfPeak, kept ? "" : "  MISSED");
    return kept;
}

}  // namespace headway::benchmarks
