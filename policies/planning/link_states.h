#pragma once

#include <array>
#include <vector>

#include "policies/observation.h"
#include "policies/planning/last_seen.h"
#include "policies/planning/steady_value.h"
#include "scenarios/costs/iteration_costs.h"
#include "scenarios/language/cluster.h"
#include "scenarios/timing/step_times.h"

namespace headway::policies {

/// How fast every link is, from the bus bandwidth that a job's groups see.
///
/// A group runs at the pace of its slowest link, so a link is at least as fast as the fastest group that it takes part
/// in; as few links as explain the slow groups are taken to be just that fast. Groups that are slower than their links
/// explain wait for something that bandwidth does not tell: a delay before every message of a hop (all replicas alike)
/// or of a node. Links that no group takes part in stay as they were, for as long as that is likely (last_seen.h).
class LinkStates {
  public:
    explicit LinkStates(const scenarios::Cluster& cluster);

    void start_episode();
    /// `noise`: deviation of one measurement, relative. Returns whether a link changed by more than noise.
    bool update(const Observation& observation, const scenarios::IterationCosts& costs, double noise);

    /// Whether slow messages may mean delays as well as little bandwidth: a reading for whoever knows more to choose.
    /// Bandwidth comes first unless told otherwise.
    bool ambiguous() const { return ambiguous_; }
    void take_for_delays(bool delays);

    /// [nodes] bandwidth between the GPUs of a node over nominal; empty: all 1.
    const std::vector<double>& fabric() const { return fabric_; }
    /// Puts in node_network, rack_uplink, node_delay, hop_delay; empty where all are healthy. `pipeline` stages: hop
    /// delays belong to the plan they were measured under and are left out for another number of hops.
    void put(scenarios::Conditions& conditions, int pipeline) const;

  private:
    enum class Link { kFabric, kNode, kUplink };
    struct Part {
        Link link;
        int index;
    };
    /// One measurement and the links behind it.
    struct Group {
        GroupMeasurement::Kind kind = GroupMeasurement::Kind::kData;
        int index = 0;
        std::vector<Part> parts;
        double factor = 1.0;   ///< bandwidth over nominal that the measurement means
        double healthy_s = 0;  ///< time of a message or collective, the part that bandwidth stretches
        double messages = 1;   ///< delays that the time holds
        SteadyValue log_factor;
    };
    void lay_out(const scenarios::Plan& plan);
    double expected(Group& group, const scenarios::IterationCosts& costs, double measured) const;
    double slowest_of(const Group& group) const;
    /// Seconds a message that bandwidth does not explain.
    double unexplained(const Group& group) const;
    int sender(const Group& group) const;
    std::size_t number(const Part& part) const;
    bool slow(std::size_t link) const;
    void remember_seen(Duration now);
    bool forget_what_is_long_ago(Duration now);
    void explain();
    void explain_by_bandwidth();
    void explain_by_delay();

    const scenarios::Cluster* cluster_;
    std::vector<int> node_of_gpu_;
    scenarios::Plan plan_;
    std::vector<Group> groups_;                     ///< as measured, by kind and index
    std::array<std::vector<double>, 3> bandwidth_;  ///< [kind][index] as measured, 0 where it was not
    double best_tensor_ = 0.0;                      ///< of all tensor groups under this plan so far
    std::vector<double> fabric_, node_, uplink_;    ///< bandwidth over nominal
    std::vector<scenarios::Duration> node_delay_, hop_delay_;
    LastSeen seen_;  ///< fabrics, nodes, uplinks
    int hops_ = 0;
    bool ambiguous_ = false, delays_first_ = false;
};

}  // namespace headway::policies
