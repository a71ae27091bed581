#pragma once

#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "policies/planning/layout_predictor.h"
#include "scenarios/language/adapt.h"
#include "scenarios/language/job.h"
#include "scenarios/language/plan.h"

namespace headway::policies {

/// Shares of micro-batches and splits of layers that suit the conditions a LayoutPredictor is set to. What it finds
/// fits in memory and keeps to `adapt`; nothing where that is the plan itself.
class Rebalancer {
  public:
    /// All three outlive it.
    Rebalancer(LayoutPredictor& layout, const scenarios::Job& job, const scenarios::Adapt& adapt)
        : layout_(layout), job_(job), adapt_(adapt) {}

    /// The shares under which the slowest replica is done first, for the layers as they are.
    std::optional<scenarios::Plan> share(const scenarios::Plan& plan);
    /// The best layers for the shares as they are: replica by replica where that gains something (`apart`), or one
    /// split for all replicas.
    std::optional<scenarios::Plan> split(const scenarios::Plan& plan, bool apart);
    /// Both, in turns until they agree.
    std::optional<scenarios::Plan> split_and_share(const scenarios::Plan& plan, bool apart);

    /// Seconds a micro-batch takes on a worker, and on the slowest stage of a replica.
    double stage_seconds(const scenarios::Plan& plan, int replica, int stage);
    double slowest_stage_seconds(const scenarios::Plan& plan, int replica);

  private:
    double load(int replica, int stage, int layers);
    int most_layers(int replica, int stage, int micro_batches);
    int most_micro_batches(const scenarios::Plan& plan, int replica);
    double pipeline_seconds(const scenarios::Plan& plan, int replica, int micro_batches);
    void put_split(scenarios::Plan& plan, int replica, const std::vector<int>& layers_of_stage) const;
    bool split_apart(scenarios::Plan& plan);
    bool split_alike(scenarios::Plan& plan);

    LayoutPredictor& layout_;
    const scenarios::Job& job_;
    const scenarios::Adapt& adapt_;
    std::vector<int> chunks_;
    std::map<std::pair<int, int>, std::vector<int>> splits_;  ///< by class of replica and micro-batches
};

/// Layers of each chunk of a stage that holds `layers`: as even as possible; chunks with embedding or logits get the
/// smaller part.
std::vector<int> layers_of_chunks(const scenarios::Layout& layout, int stage, int layers);

}  // namespace headway::policies
