#include <array>

#include "policies/learning/features.h"

namespace headway::policies {

namespace {

constexpr bool kFlag = false;

constexpr auto kGlobalFeatures = std::to_array<FeatureName>({
    // FeatureBuilder::write_state
    {"slowdown"},                 // log of iteration time over healthy
    {"slowdown_over_fast_mean"},  // against its running mean over about 3 decisions
    {"slowdown_fast_mean"},
    {"slowdown_slow_mean"},  // over about 12 decisions
    {"slowdown_trend"},      // change over 3 decisions
    {"slowdown_noise"},      // deviation of the last 8
    {"slowdown_best"},       // least of the episode
    {"slow_for"},            // log of decisions for which the iteration time has been up by 5 %
    {"slow_spells"},
    {"slow_spell_length"},
    {"switched_ago"},
    {"switches_lately"},  // in the last 12 decisions
    {"miss_of_plan"},     // log of measured over predicted iteration time of the plan in use
    {"just_switched", kFlag},
    {"minutes_of_interval"},
    {"decisions"},
    // write_ranks
    {"relative_min"},
    {"relative_low"},  // 5 % quantile
    {"relative_quarter"},
    {"relative_mean"},
    {"individual_min"},
    {"individual_quarter"},
    {"individual_mean"},
    {"slow_share"},     // of the ranks
    {"slow_one_node"},  // share of the slow ranks that are in the node of the slowest
    {"compute_slow_for"},
    {"compute_slow_spells"},
    {"compute_slow_spell_length"},
    {"clock_min"},
    {"clock_mean"},
    {"clock_of_slowest"},
    {"headroom_min"},  // kelvins below the operating limit, over 20
    {"headroom_mean"},
    {"headroom_of_slowest"},
    {"headroom_trend"},
    {"throttle_power_share"},
    {"throttle_heat_share"},
    {"throttle_hardware_share"},
    {"slowest_throttles_power", kFlag},
    {"slowest_throttles_heat", kFlag},
    {"slowest_throttles_hardware", kFlag},
    {"throttled_for"},
    {"power_mean"},
    {"exposed_mean"},
    {"exposed_max"},
    {"exposed_over_best"},
    {"idle_mean"},
    {"idle_min"},
    {"compute_max"},
    {"memory_max"},
    {"nothing_measured", kFlag},
    // write_groups
    {"tensor_bandwidth_worst"},  // log of the worst group's over the median
    {"pipeline_bandwidth_worst"},
    {"data_bandwidth_worst"},
    {"tensor_bandwidth_median"},  // log of the median over the best seen under this layout
    {"pipeline_bandwidth_median"},
    {"data_bandwidth_median"},
    {"link_slow_for"},
    {"link_slow_spells"},
    {"link_slow_spell_length"},
    // write_plan
    {"loss", kFlag},
    {"initial_plan", kFlag},
    {"unavailable_share"},
    {"unused_share"},
    {"gpus"},
    {"tensor"},
    {"pipeline"},
    {"data"},
    {"micro_batches_per_stage"},
    {"share_imbalance"},
    {"layer_imbalance"},
    {"slowest_gpu_type"},
    // write_choice
    {"candidates"},
    {"best_gain"},  // log of iteration time under candidate 0 over the best
    {"best_gain_mean"},
    {"gain_offered_for"},
    {"best_net"},  // of gain x 12 - cost
    {"wait"},      // of candidate 0, after a loss
});

constexpr auto kCandidateFeatures = std::to_array<FeatureName>({
    {"keep", kFlag},
    {"wait_for_replacement", kFlag},
    {"share_micro_batches", kFlag},
    {"split_layers", kFlag},
    {"split_and_share", kFlag},
    {"place_ranks", kFlag},
    {"change_degrees", kFlag},
    {"drop_gpus", kFlag},
    {"bring_back", kFlag},
    {"return", kFlag},
    {"restart", kFlag},
    {"further", kFlag},
    {"iteration_over_current"},  // log
    {"iteration_over_healthy"},  // log
    {"gain"},
    {"cost"},
    {"net"},         // gain x 12 - cost
    {"break_even"},  // log of the intervals after which it pays; 5 where it never does
    {"pause_over_restart"},
    {"moved"},
    {"memory"},
    {"left_lately"},
    {"miss_when_left"},
    {"gpus_changed"},
    {"layers_moved"},
    {"micro_batches_moved"},
    {"world"},  // log of its size over the current one
    {"tensor_change"},
    {"pipeline_change"},
    {"data_change"},
    {"context_change"},
    {"keeps_slowest_gpu", kFlag},
    {"slow_gpus_left_out"},
    {"share_imbalance"},
    {"layer_imbalance"},
    {"gain_of_kind_mean"},
    {"gain_over_best"},  // share of the best candidate's
    {"initial_plan", kFlag},
});

}  // namespace

std::span<const FeatureName> global_features() {
    return kGlobalFeatures;
}

std::span<const FeatureName> candidate_features() {
    return kCandidateFeatures;
}

}  // namespace headway::policies
