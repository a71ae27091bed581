#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "scenarios/language/cluster.h"
#include "scenarios/language/job.h"
#include "scenarios/language/plan.h"
#include "scenarios/language/read.h"
#include "scenarios/language/units.h"
#include "scenarios/language/words.h"

/// A distribution of scenarios: what a policy is trained on, or judged by. A set file is YAML like a scenario; where a
/// scenario has a value, a set has a range or a list to draw from. scenarios/sampling/draw_scenario.h draws.
namespace headway::scenarios {

/// Uniform in between; both ends included for whole numbers.
struct WholeRange {
    int min = 1;
    int max = 1;
    bool operator==(const WholeRange&) const = default;
};
struct NumberRange {
    double min = 0.0;
    double max = 0.0;
    bool operator==(const NumberRange&) const = default;
};
struct TimeRange {
    Duration min;
    Duration max;
    bool operator==(const TimeRange&) const = default;
};

/// Lists hold what is equally likely; `weight` is against the other choices of the same list.
struct JobChoice {
    double weight = 1.0;
    Model model;
    SoftwareStack stack;
    Precision precision = Precision::kBf16;
    std::vector<int> global_batch;
    std::vector<int> micro_batch{1};
    bool operator==(const JobChoice&) const = default;
};

struct ClusterChoice {
    double weight = 1.0;
    Cluster cluster;
    std::vector<int> nodes;  ///< in all; split evenly over the cluster's node groups
    std::vector<int> nodes_per_rack{4};
    std::vector<double> oversubscription{1.0};
    bool operator==(const ClusterChoice&) const = default;
};

/// The initial plan: the fastest, with everything healthy, of the layouts that are legal and fit in memory, or of
/// `compared` random ones of them: what a careful team would start with.
struct LayoutChoice {
    int compared = 1000;           ///< all there are, as a rule
    int fewest_micro_batches = 1;  ///< a replica, when shared evenly
    std::vector<int> tensor{1, 2, 4, 8};
    std::vector<int> pipeline{1, 2, 4, 8};
    std::vector<Schedule> schedule{Schedule::kOneForwardOneBackward};
    std::vector<Recompute> recompute{Recompute::kNone, Recompute::kSelective, Recompute::kFull};
    bool distributed_optimizer = true;
    bool operator==(const LayoutChoice&) const = default;
};

/// Which parts a drawn cause acts on; kOwn is the cause's own kind of part, as in `generate` (disturbance.h). A family
/// that strikes stages or pipeline hops is only drawn for plans with a pipeline.
enum class DrawnTarget { kOwn, kGpu, kWorker, kStage, kLastStage, kNode, kRack, kCluster, kUplink, kPipelineHop };

constexpr auto words(DrawnTarget) {
    return WordTable<DrawnTarget, 10>{{{"own", DrawnTarget::kOwn},
                                       {"gpu", DrawnTarget::kGpu},
                                       {"worker", DrawnTarget::kWorker},
                                       {"stage", DrawnTarget::kStage},
                                       {"last_stage", DrawnTarget::kLastStage},
                                       {"node", DrawnTarget::kNode},
                                       {"rack", DrawnTarget::kRack},
                                       {"cluster", DrawnTarget::kCluster},
                                       {"uplink", DrawnTarget::kUplink},
                                       {"pipeline_hop", DrawnTarget::kPipelineHop}}};
}

/// One cause of a family: how many strike a scenario, where, when, how hard and for how long.
struct DrawnCause {
    std::string cause;  ///< of kCauseKinds
    DrawnTarget on = DrawnTarget::kOwn;
    WholeRange count;
    NumberRange severity{1.0, 1.0};    ///< log-uniform; means what it means in `generate`, bigger or smaller is worse
    NumberRange start{0.0, 0.6};       ///< shares of the run's time, uniform
    std::optional<TimeRange> lasting;  ///< log-uniform; absent: to the end of the run
    bool operator==(const DrawnCause&) const = default;
};

/// Kinds of bad days that belong together: a row of an evaluation's table.
struct ScenarioFamily {
    std::string name;  ///< "dedicated, slow GPU"
    double weight = 1.0;
    std::vector<DrawnCause> causes;  ///< empty: a healthy run
    bool operator==(const ScenarioFamily&) const = default;
};

/// What differs between worlds (domain randomisation). No policy is told how noisy or late its sensors are and how
/// switches turn out; constants belong to a world's cluster and stack, which planners know.
struct Randomisation {
    double constants = 0.0;  ///< speeds and overheads of hardware and stack, each times or over up to 1 + this
    NumberRange time_noise{0.0, 0.0};
    NumberRange temperature_noise{0.0, 0.0};
    WholeRange delay_intervals{0, 0};
    NumberRange switch_time_factor{1.0, 1.0};  ///< log-uniform
    bool operator==(const Randomisation&) const = default;
};

/// Spares, repair and checkpoints.
struct FacilityChoice {
    WholeRange spare_nodes{0, 0};
    TimeRange spare_start{Duration::seconds(120), Duration::seconds(600)};
    TimeRange repair{Duration::seconds(1800), Duration::seconds(4 * 3600)};  ///< of a node or GPU; log-uniform
    TimeRange checkpoint_interval{Duration::seconds(600), Duration::seconds(1800)};
    NumberRange inlet{25.0, 25.0};  ///< degrees Celsius
    bool operator==(const FacilityChoice&) const = default;
};

/// The end is memoryless, so that nothing can be put off beyond it: at `shortest` plus an exponential time, cut at
/// `longest`.
struct RunChoice {
    Duration mean = Duration::seconds(3600);
    Duration shortest = Duration::seconds(1200);
    Duration longest = Duration::seconds(3 * 3600);
    TimeRange between_decisions{Duration::seconds(20), Duration::seconds(60)};  ///< rounded to whole iterations
    bool operator==(const RunChoice&) const = default;
};

/// A curriculum goes from stage to stage.
struct SetStage {
    std::string name;
    double until = 1.0;                 ///< share of the training at whose end the next stage begins
    int largest_gpus = 0;               ///< clusters of at most so many GPUs; 0: all
    double randomisation = 1.0;         ///< how much of the ranges of `randomisation` is used, from their first ends
    std::vector<std::string> families;  ///< names; empty: all
    bool operator==(const SetStage&) const = default;
};

struct ScenarioSet {
    std::string name;
    std::string description;
    std::uint64_t seed = 1;
    int count = 1;  ///< the scenarios 0..count-1 are the set's own: judged by, never trained on
    std::vector<JobChoice> jobs;
    std::vector<ClusterChoice> clusters;
    LayoutChoice layout;
    std::vector<ScenarioFamily> families;
    Randomisation randomisation;
    FacilityChoice facility;
    RunChoice run;
    std::vector<SetStage> stages;  ///< never empty once read: one stage with everything where none is given
    bool operator==(const ScenarioSet&) const = default;
};

/// Whether a YAML text is a scenario set (it has `families`, or `jobs` and `clusters`, at the top) rather than a
/// scenario.
bool is_scenario_set(const std::string& text, const std::string& name);

/// Reads, resolves and checks a set. Throws ConfigError with file and line.
ScenarioSet read_scenario_set(const std::filesystem::path& file, const Catalogue& catalogue);
/// The same from text; `name` stands for the file in messages.
ScenarioSet parse_scenario_set(const std::string& text, const std::string& name, const std::filesystem::path& folder,
                               const Catalogue& catalogue);

/// The stage in force at a share (0..1) of the training.
const SetStage& stage_at(const ScenarioSet& set, double share_of_training);

}  // namespace headway::scenarios
