#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "scenarios/timing/task_graph.h"
#include "sim/network/flow_network.h"
#include "sim/network/topology.h"

/// One iteration in the order of time, with messages and collectives as flows that share links.
///
/// Tasks and dependencies are those of scenarios/timing, so without contention the result is the longest path to the
/// nanosecond. A flow that is alone on all its links is a plain event; only when the nominal rates on a link add up to
/// more than its capacity do the flows there become flows of the network, with what they still have to carry. That is
/// exact: until then each of them ran at its nominal rate.
namespace headway::sim {

/// How a message of one cell and direction travels.
struct MessagePath {
    bool flow = false;  ///< false: inside a node, it contends with nobody
    Route route;
    double bytes = 0.0;  ///< on the wire, per plane
};

/// One hop of a collective's ring, between two replicas on different nodes.
struct RingHop {
    int replica = 0;  ///< the sender's
    Route route;
};

/// Everything that one state of the cluster says about an iteration.
struct IterationState {
    std::vector<std::int64_t> durations;  ///< [tasks] without contention, delays included
    std::vector<double> capacity;         ///< [links] bytes a second and plane
    /// [links] capacities that `durations` count with, where they differ: with replicas folded, a replica has only its
    /// part of a shared link, but alone it would have had the whole.
    std::vector<double> alone;
};

struct IterationChange {
    std::int64_t at_ns = 0;  ///< from the start of the iteration
    IterationState state;
};

struct IterationOutcome {
    std::int64_t duration_ns = 0;
    std::vector<std::int64_t> compute_ns;  ///< [replicas simulated * pipeline] forward, backward, optimizer
    int contended_flows = 0;               ///< flows that shared a link
};

class FlowExecutor {
  public:
    /// The tables are for this graph: `activation` and `gradient` [layout.data * pipeline * virtual_pipeline];
    /// `rings` [pipeline], with `reduce_bytes` and `gather_bytes` [pipeline * virtual_pipeline] on the wire of one
    /// rank.
    struct Tables {
        std::vector<MessagePath> activation;
        std::vector<MessagePath> gradient;
        std::vector<std::vector<RingHop>> rings;
        std::vector<double> reduce_bytes;
        std::vector<double> gather_bytes;
    };
    FlowExecutor(scenarios::IterationGraph graph, const scenarios::Layout& layout, std::vector<int> replicas,
                 Tables tables, int links);
    ~FlowExecutor();
    FlowExecutor(FlowExecutor&&) noexcept;
    FlowExecutor& operator=(FlowExecutor&&) noexcept;

    const scenarios::TaskGraph& graph() const;
    const std::vector<int>& replicas() const;

    /// `network` null: nothing contends. `changes` by time. `times`, when given, receives start and end of every task.
    IterationOutcome run(const IterationState& state, const std::vector<IterationChange>& changes, FlowNetwork* network,
                         std::vector<std::pair<std::int64_t, std::int64_t>>* times = nullptr);

    /// The plain reference, for tests and benchmarks: every flow is the network's from its start, alone or not.
    void hand_over_everything(bool everything);

  private:
    class Impl;
    std::unique_ptr<Impl> impl_;
};

}  // namespace headway::sim
