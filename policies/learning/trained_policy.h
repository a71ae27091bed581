#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace headway::policies {

/// Sizes of the network's layers.
struct NetworkShape {
    int global_features = 0;
    int candidate_features = 0;
    int encoder = 48;    ///< first layer on the global features
    int embedding = 32;  ///< second: what the score function is shown of the state
    int score = 32;      ///< first layer of the score function
    int score_top = 16;  ///< second
    int value = 48;      ///< both layers of the value function, which shares nothing with the rest
    bool operator==(const NetworkShape&) const = default;
};

/// The shape for this build's features.
NetworkShape default_shape();

/// Mean and deviation of each feature over all decisions trained on (Welford's sums, mergeable). Flags keep 0 and 1.
struct Normaliser {
    double count = 0.0;
    std::vector<double> mean;
    std::vector<double> squares;  ///< sum of squared differences from the mean
    bool operator==(const Normaliser&) const = default;
};

/// What the features of the training were like: per feature the values below and above which one in ten thousand lies.
struct FeatureRange {
    double low = 0.0;
    double high = 0.0;
    bool operator==(const FeatureRange&) const = default;
};

struct Provenance {
    std::uint64_t seed = 0;
    std::int64_t updates = 0;
    std::int64_t imitation_epochs = 0;
    std::int64_t decisions = 0;  ///< trained on
    std::string curriculum;      ///< name of the training set
    std::string note;
    bool operator==(const Provenance&) const = default;
};

/// Everything that a .policy file holds.
struct TrainedPolicy {
    NetworkShape shape;
    std::vector<double> parameters;
    Normaliser global_normaliser;
    Normaliser candidate_normaliser;
    std::vector<FeatureRange> global_ranges;  ///< empty: not known yet
    double novelty_limit = 0.0;  ///< the novelty (novelty.h) that one in a thousand training decisions exceeded
    Provenance provenance;
    bool operator==(const TrainedPolicy&) const = default;
};

}  // namespace headway::policies
