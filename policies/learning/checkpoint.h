#pragma once

#include <string>
#include <string_view>

#include "policies/learning/feature_histogram.h"
#include "policies/learning/trainer.h"

namespace headway::policies {

inline constexpr int kCheckpointVersion = 1;

/// Everything that a trainer's further updates depend on.
struct TrainerState {
    TrainerOptions options;
    TrainedPolicy policy;
    Adam adam;
    FeatureHistogram histogram;
    NoveltyHistogram novelty;
};

/// 8 bytes "HEADWAYC", version and feature set, body, CRC-32: as a policy file. Errors: see Trainer::resume.
std::string checkpoint_bytes(const TrainerState& state);
TrainerState state_from_checkpoint(std::string_view bytes, const std::string& name);

}  // namespace headway::policies
