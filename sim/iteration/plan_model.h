#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "scenarios/costs/iteration_costs.h"
#include "scenarios/language/job.h"
#include "scenarios/timing/evaluator.h"
#include "scenarios/timing/healthy_shares.h"
#include "scenarios/timing/step_times.h"
#include "sim/disturbances/timeline.h"
#include "sim/iteration/flow_executor.h"
#include "sim/network/topology.h"
#include "sim/simulated_cluster.h"

/// Iterations of one plan under any state of the cluster: the longest path, and on top of it what contention adds.
namespace headway::sim {

/// State of the cluster during an iteration, or during a part of one.
struct ClusterState {
    std::vector<scenarios::GpuPace> paces;   ///< [GPUs]
    Environment environment;                 ///< its links and delays count here; its GPUs are in `paces`
    std::vector<double> micro_batch_factor;  ///< as in StepTimes
};

struct IterationTimes {
    Duration duration;
    Duration contention;                          ///< part of `duration` that the longest path does not know
    std::vector<scenarios::WorkerTimes> workers;  ///< [workers], each adds up to `duration`
};

/// The engine behind all plans of a process, made when the first flow needs it.
class SharedNetwork {
  public:
    explicit SharedNetwork(const Topology& topology) : topology_(topology) {}
    FlowNetwork& get();

  private:
    const Topology& topology_;
    std::unique_ptr<FlowNetwork> network_;
};

class PlanModel {
  public:
    /// Keeps references to cluster, topology and network. Throws std::invalid_argument for a plan that does not fit the
    /// job or the cluster.
    PlanModel(const scenarios::Cluster& cluster, const Topology& topology, SharedNetwork& network,
              const scenarios::Plan& plan, scenarios::IterationCosts costs, bool tied_embedding,
              const SimulationOptions& options);
    ~PlanModel();

    const scenarios::Plan& plan() const { return plan_; }
    const scenarios::IterationCosts& costs() const { return costs_; }

    /// An iteration through which the state stays the same. With `contention_of` (iterations that all differ: jitter,
    /// uneven sequences) the longest path is that of `state`, and what contention adds is taken from the other state,
    /// paces rounded to 1/32 and micro-batches even, where the memo finds it again.
    IterationTimes steady(const ClusterState& state, const ClusterState* contention_of = nullptr);
    /// An iteration during which the state changes; `states` by time from its start, the first at 0.
    IterationTimes changing(const std::vector<std::pair<Duration, ClusterState>>& states);
    /// Without contention, whatever the path.
    Duration longest_path(const ClusterState& state);
    /// Operations of the iteration that `changing` would make of these states, every replica simulated.
    std::vector<scenarios::TimelineEntry> timeline(const std::vector<std::pair<Duration, ClusterState>>& states);

    /// Durations of the pieces with every link's state put in.
    scenarios::StepTimes times_of(const ClusterState& state) const;
    /// Of the healthy iteration without contention.
    scenarios::HealthyShares healthy_shares();

    /// Iterations computed with flows so far, and those the memo answered.
    std::int64_t flow_iterations() const { return flow_iterations_; }
    std::int64_t memo_hits() const { return memo_hits_; }
    /// Flows so far that had to share a link.
    std::int64_t contended_flows() const { return contended_flows_; }

    /// What an iteration sends over a rack's uplink, the busier direction, over what the healthy link could carry in
    /// `duration`.
    double uplink_load(int rack, Duration duration) const;

    /// What is left of the bandwidth between a worker's ranks: of the node's fabric, or of the NICs where it spans
    /// nodes.
    double worker_fabric(const ClusterState& state, int worker) const;

    /// GPU that stands for worker (replica, stage) in the network.
    int port(int replica, int stage) const { return plan_.gpu_of_worker(replica, stage, 0); }

  private:
    struct Key {
        std::uint64_t a = 0;
        std::uint64_t b = 0;
        bool operator==(const Key&) const = default;
    };
    struct KeyHash {
        std::size_t operator()(const Key& key) const { return static_cast<std::size_t>(key.a); }
    };
    struct SendPath {
        bool across = false;
        bool leaves_rack = false;
        int from = 0;  ///< GPUs
        int to = 0;
        int hop = 0;           ///< pipeline hop as disturbances count them
        double wire_ns = 0.0;  ///< of the healthy send
        double rate = 0.0;     ///< healthy, bytes a second and plane
    };

    void prepare_sends();
    void prepare_rings();
    void prepare_uplinks();
    void slow_sends(const ClusterState& state, const std::vector<double>& capacity, scenarios::StepTimes& times) const;
    void slow_collectives(const std::vector<double>& capacity, scenarios::StepTimes& times) const;
    std::vector<double> capacities(const ClusterState& state, const std::vector<double>& healthy) const;
    /// True when the workers of some rack together can send more than its uplink carries. Then replicas that are equal
    /// by themselves need not be equal in what they share, and kAutomatic folds nothing.
    bool uplinks_may_contend(const std::vector<double>& capacity) const;
    std::vector<int> representatives(const scenarios::StepTimes& times, const std::vector<double>& capacity) const;
    FlowExecutor& executor(const std::vector<int>& replicas);
    using Spans = std::vector<std::pair<std::int64_t, std::int64_t>>;
    /// With `spans` of the tasks of all replicas, which are then all simulated.
    Duration flows(const std::vector<std::pair<Duration, ClusterState>>& states, bool contention,
                   Spans* spans = nullptr);
    Duration flows_of(const ClusterState& state, const scenarios::StepTimes& times);
    Key key_of(const scenarios::StepTimes& times, const std::vector<double>& capacity) const;
    bool uses_flows() const { return options_.path != Path::kLongestPath && has_flows_; }

    const scenarios::Cluster& cluster_;
    const Topology& topology_;
    SharedNetwork& network_;
    scenarios::Plan plan_;
    SimulationOptions options_;
    bool tied_embedding_ = false;
    scenarios::IterationCosts costs_;
    scenarios::StepTimer timer_;
    scenarios::Evaluator evaluator_;
    scenarios::StepTimes healthy_;
    std::vector<double> healthy_capacity_;  ///< every replica simulated
    std::vector<SendPath> activation_;      ///< [cells]
    std::vector<SendPath> gradient_;
    std::vector<std::vector<RingHop>> rings_;  ///< [pipeline] between all replicas
    std::vector<double> reduce_bytes_;         ///< [places] on the wire of one rank
    std::vector<double> gather_bytes_;
    std::vector<double> uplink_seconds_;  ///< [racks] an iteration keeps the healthy uplink busy
    bool has_flows_ = false;
    bool workers_span_nodes_ = false;

    struct Folded {
        std::unique_ptr<FlowExecutor> executor;
        std::vector<double> healthy_capacity;
    };
    std::map<std::vector<int>, Folded> executors_;
    std::unordered_map<Key, Duration, KeyHash> flow_memo_;
    std::unordered_map<Key, IterationTimes, KeyHash> memo_;
    std::int64_t flow_iterations_ = 0;
    std::int64_t memo_hits_ = 0;
    std::int64_t contended_flows_ = 0;
};

}  // namespace headway::sim
