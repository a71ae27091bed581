#pragma once

#include <vector>

#include "policies/action.h"
#include "policies/observation.h"
#include "policies/training_cluster.h"

namespace headway::policies {

/// Eight GPUs in two nodes, two stages in four replicas; every time is a multiple of `unit`.
struct SmallDecision {
    ClusterFacts facts;
    Observation observation;
    std::vector<Candidate> candidates;

    explicit SmallDecision(Duration unit = Duration::seconds(1)) {
        scenarios::Node node;
        node.gpus = 4;
        node.gpu.boost_clock = {1400.0};
        node.gpu.power_limit = {400.0};
        node.gpu.memory = scenarios::Bytes::gib(80);
        node.gpu.peak_half = {312e12};
        node.gpu.thermal.max_operating = {85.0};
        facts.cluster.node_groups = {{2, node}};
        facts.healthy_iteration = unit * 10;
        scenarios::Plan& plan = facts.initial_plan;
        plan.layout.pipeline = 2;
        plan.layout.data = 4;
        plan.gpu_of_rank = {0, 1, 2, 3, 4, 5, 6, 7};
        plan.layers_of_cell = scenarios::same_layers({8, 8}, 4);
        plan.micro_batches_of_replica = {8, 8, 8, 8};

        observation.plan = plan;
        observation.iteration = unit * 15;
        observation.now = unit * 150;
        for (int gpu = 0; gpu < 8; ++gpu) {
            RankObservation rank;
            rank.measured.gpu = gpu;
            rank.measured.compute = unit * 8;
            rank.measured.exposed_communication = unit * 1;
            rank.measured.idle = unit * 3;
            rank.measured.temperature_c = 60.0;
            rank.measured.sm_clock_mhz = 1380.0;
            rank.measured.power_w = 380.0;
            rank.measured.memory_used_bytes = scenarios::Bytes::gib(60).count();
            observation.ranks.push_back(rank);
        }
        slow_down(5, 0.6);
        for (int index = 0; index < 2; ++index) {
            observation.groups.push_back({GroupMeasurement::Kind::kData, index, 20e9});
        }

        candidates.push_back({Candidate::Kind::kKeep, plan, {unit * 15, {}, {}, {}, scenarios::Bytes::gib(60)}, ""});
        scenarios::Plan shares = plan;
        shares.micro_batches_of_replica = {9, 6, 9, 8};
        candidates.push_back({Candidate::Kind::kShareMicroBatches,
                              shares,
                              {unit * 12, unit * 2, unit * 60, {}, scenarios::Bytes::gib(60)},
                              ""});
        scenarios::Plan dropped = plan;
        dropped.layout.data = 3;
        dropped.gpu_of_rank = {0, 2, 3, 4, 6, 7};
        dropped.layers_of_cell = scenarios::same_layers({8, 8}, 3);
        dropped.micro_batches_of_replica = {11, 11, 10};
        candidates.push_back({Candidate::Kind::kDropGpus,
                              dropped,
                              {unit * 13, unit * 50, unit * 60, scenarios::Bytes::gib(10), scenarios::Bytes::gib(70)},
                              ""});
    }

    void slow_down(int gpu, double score) {
        RankObservation& rank = observation.ranks[static_cast<std::size_t>(gpu)];
        rank.relative_score = score;
        rank.individual_score = score;
        rank.measured.sm_clock_mhz = 1400.0 * score;
        rank.measured.throttle_reasons = 0x20;
    }
};

}  // namespace headway::policies
