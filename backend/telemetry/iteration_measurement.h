#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "backend/telemetry/gpu_sensors.h"
#include "backend/training/trainer.h"
#include "policies/training_cluster.h"
#include "scenarios/record/run_events.h"

namespace headway::backend {

/// What one rank tells of one iteration.
struct RankStep {
    StepResult step;
    std::int64_t memory_bytes = 0;  ///< that the rank keeps
    GpuReading sensors;             ///< absent ones are told as nominal
};

/// Where one rank's time of one iteration went; the parts add up to the iteration.
struct RankShares {
    scenarios::Duration compute;   ///< kernels
    scenarios::Duration tensor;    ///< waiting in tensor collectives, for the links and for slower members
    scenarios::Duration data;      ///< in reductions and gathering that nobody was late for any more
    scenarios::Duration pipeline;  ///< in messages whose other end was there: part of idle
    scenarios::Duration idle;      ///< all else: bubble, messages, waiting for slower replicas and stages
};

/// Turns the timed instructions of all ranks of a plan into what the seam hands out, by the rules of the simulator.
///
/// A rank's compute is its own kernels. In a collective the ranks that come early wait for the last: what the last one
/// waits is the communication, and what the others wait longer than that is idle. No clocks of two ranks are compared.
/// Bus bandwidth counts bytes as nccl-tests does (2 (n-1)/n for an all-reduce), over the time of the last to come; of
/// communication that is hidden behind computation it is not known, and no group is reported.
class IterationMeasurement {
  public:
    /// References are kept.
    IterationMeasurement(const scenarios::Job& job, const scenarios::Cluster& cluster, const scenarios::Plan& plan);

    /// `ranks` [ranks of the plan]. Returns their shares. `iteration`: what it took by the clock of process 0.
    std::vector<RankShares> add(const std::vector<RankStep>& ranks, scenarios::Duration iteration);

    /// Averages over the iterations that were added; sensors as they read last.
    std::vector<policies::RankMeasurement> ranks() const;
    std::vector<policies::GroupMeasurement> groups() const;

  private:
    struct Rate {
        double bytes = 0.0;
        double seconds = 0.0;
    };
    struct Place {
        int tensor = 0, replica = 0, stage = 0, worker = 0;
    };
    Place place(std::size_t rank) const;
    void add_collectives(const std::vector<RankStep>& ranks, std::vector<RankShares>& shares);
    void add_messages(const std::vector<RankStep>& ranks, std::vector<RankShares>& shares);
    void add_tensor(const std::vector<RankShares>& shares);
    double tensor_bytes(int replica, int stage) const;
    bool messages_block() const;

    const scenarios::Job& job_;
    const scenarios::Cluster& cluster_;
    const scenarios::Plan& plan_;
    int iterations_ = 0;
    std::vector<RankShares> sums_;  ///< [ranks]
    std::vector<std::int64_t> memory_;
    std::vector<GpuReading> sensors_;
    std::vector<Rate> tensor_, pipeline_;  ///< [workers]
    std::vector<Rate> data_;               ///< [stages]
};

/// Operations of the iteration as the record keeps them: of the first rank of each worker, from its own start.
std::vector<scenarios::TimelineEntry> timeline_of(const scenarios::Plan& plan, const std::vector<RankStep>& ranks);

}  // namespace headway::backend
