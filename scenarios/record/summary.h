#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "scenarios/record/run_events.h"

/// The one computation of every figure of a run, for the command line, the viewer and the tests.
namespace headway::scenarios {

/// Where the wall time of the run went; the parts add up to 1. `recovery`: standing still (checkpoint saves, losses,
/// switches), repeating lost work, and time that no event covers.
struct TimeFractions {
    double compute = 0.0;
    double bubble = 0.0;
    double tensor = 0.0;
    double pipeline = 0.0;
    double data = 0.0;
    double straggling = 0.0;
    double recovery = 0.0;
};

/// What one disturbance cost: `slowed` (its share in the excess of iterations) + `paused` (from the last completed
/// iteration until training went on) + `repeated` (iterations trained again, without what other disturbances cost in
/// them).
struct DisturbanceCost {
    std::string name;
    std::string kind;
    std::int64_t start_ns = 0;
    std::int64_t duration_ns = -1;  ///< as in DisturbanceFacts
    std::int64_t slowed_ns = 0;
    std::int64_t paused_ns = 0;
    std::int64_t repeated_ns = 0;
    std::int64_t iterations_lost = 0;
    double share = 0.0;             ///< of the wall time
    std::vector<std::string> what;  ///< how the job went on, one sentence a loss
    std::int64_t cost_ns() const { return slowed_ns + paused_ns + repeated_ns; }
};

/// One GPU of the list of the slowest. `stage` and `replica` under the initial plan; -1 for a GPU that is not in it.
struct SlowGpu {
    GpuSummary figures;
    int node = 0;
    int slot = 0;
    int rack = 0;
    int stage = -1;
    int replica = -1;
};

struct RunSummary {
    std::string scenario;
    std::string policy;
    std::uint64_t seed = 0;
    std::string layout;
    int gpus = 0;                           ///< of the plan
    bool complete = false;                  ///< false: interrupted, or a record without footer
    std::int64_t iterations = 0;            ///< useful: completed minus rolled back
    std::int64_t iterations_completed = 0;  ///< repeated ones included
    std::int64_t iterations_lost = 0;
    std::int64_t wall_ns = 0;
    std::int64_t healthy_iteration_ns = 0;
    double iteration_mean_s = 0.0;  ///< over completed iterations, pauses not included; 0 when there is none
    double iteration_p50_s = 0.0;   ///< nearest rank: at least half of the iterations took no longer
    double iteration_p95_s = 0.0;
    double tokens_per_s = 0.0;          ///< useful tokens over wall time
    double tflops_per_gpu = 0.0;        ///< while iterating, recomputation included: what Megatron-LM prints
    double model_tflops_per_gpu = 0.0;  ///< while iterating, without recomputation
    double mfu = 0.0;                   ///< model FLOPs while iterating over the peak of the plan's GPUs
    double goodput = 0.0;               ///< useful tokens per second over those of the healthy initial plan
    TimeFractions time_share;
    std::int64_t checkpoint_ns = 0;  ///< parts of recovery
    std::int64_t loss_ns = 0;
    std::int64_t switch_ns = 0;
    std::int64_t repeated_ns = 0;
    std::int64_t uncovered_ns = 0;
    std::vector<DisturbanceCost> disturbances;  ///< [disturbances of the scenario]
    std::vector<SlowGpu> slowest;               ///< at most 10, slowest first, only those below nominal
    std::int64_t decisions = 0;
    std::int64_t switches = 0;
    std::int64_t decisions_without_choice = 0;    ///< nothing but the first candidate was offered
    std::int64_t handed_over = 0;                 ///< decisions of the rule, for want of training
    std::int64_t rolled_back = 0;                 ///< switches taken back since they missed their prediction
    std::optional<double> first_loss, last_loss;  ///< of jobs that really trained
    std::string shadow;                           ///< policy that was asked and did not act; empty: none
    std::int64_t shadow_differs = 0;              ///< decisions at which it would have chosen otherwise
    std::int64_t shadow_regret_ns = 0;            ///< sum of ShadowChoice::regret_ns
};

/// Sums a run up as it goes on. Memory grows by 8 bytes an iteration (exact percentiles), by nothing else.
class SummarySink final : public RunSink {
  public:
    void begin(const RunHeader& header) override;
    void iteration(const IterationEvent& event) override;
    void pause(const PauseEvent& event) override;
    void decision(const DecisionEvent& event) override;
    void end(const RunFooter& footer) override;
    bool wants_operations() const override { return false; }

    bool begun() const { return begun_; }
    /// Of what has been seen so far. Throws std::logic_error before `begin`.
    RunSummary summary() const;

  private:
    /// Iterations first..last-1 were rolled back by this disturbance.
    struct LostRange {
        std::int64_t first = 0;
        std::int64_t last = 0;
        int disturbance = -1;
    };
    const LostRange* lost_range_of(std::int64_t iteration) const;

    bool begun_ = false;
    RunHeader header_;
    RunFooter footer_;
    bool ended_ = false;
    std::vector<std::int64_t> durations_ns_;
    TimeShares shares_;  ///< of iterations that repeat nothing
    std::int64_t repeated_ns_ = 0;
    std::int64_t paused_ns_[3] = {0, 0, 0};  ///< [PauseEvent::Reason]
    std::int64_t iterations_lost_ = 0;
    std::int64_t next_iteration_ = 0;
    std::int64_t seen_until_ns_ = 0;
    std::int64_t decisions_ = 0;
    std::int64_t switches_ = 0;
    std::int64_t without_choice_ = 0;
    std::int64_t by_[3] = {0, 0, 0};  ///< [DecisionEvent::By]
    std::optional<double> first_loss_, last_loss_;
    std::string shadow_;
    std::int64_t shadow_differs_ = 0;
    std::int64_t shadow_regret_ns_ = 0;
    std::vector<LostRange> lost_ranges_;
    std::vector<DisturbanceCost> costs_;
};

/// Smallest of `values` that at least `percent` % of them do not exceed (nearest rank). Throws std::invalid_argument
/// for no values or a percentage outside 1..100.
std::int64_t nearest_rank(std::vector<std::int64_t> values, int percent);

/// Summary of a record, and how far it could be read. Throws ConfigError with the reader's message when not even the
/// header could be read.
struct RecordSummary {
    RunSummary summary;
    std::string problem;  ///< empty for a complete record
};
RecordSummary summarize_record(const std::filesystem::path& file);

}  // namespace headway::scenarios
