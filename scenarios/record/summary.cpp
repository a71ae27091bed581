#include "scenarios/record/summary.h"

#include <algorithm>
#include <numeric>
#include <stdexcept>

#include "scenarios/language/config_error.h"
#include "scenarios/record/run_reader.h"

namespace headway::scenarios {

namespace {

constexpr std::size_t kSlowestListed = 10;
constexpr double kNominalSpeed = 0.9995;  ///< what rounds to 1.000 is not slow

double summary_seconds(std::int64_t ns) {
    return static_cast<double>(ns) / 1e9;
}

std::int64_t sum_of_shares(const TimeShares& shares) {
    return shares.compute_ns + shares.bubble_ns + shares.tensor_ns + shares.pipeline_ns + shares.data_ns +
           shares.straggling_ns + shares.recovery_ns;
}

void add_shares(TimeShares& sum, const TimeShares& part) {
    sum.compute_ns += part.compute_ns;
    sum.bubble_ns += part.bubble_ns;
    sum.tensor_ns += part.tensor_ns;
    sum.pipeline_ns += part.pipeline_ns;
    sum.data_ns += part.data_ns;
    sum.straggling_ns += part.straggling_ns;
    sum.recovery_ns += part.recovery_ns;
}

/// Where a GPU is and what it does under the initial plan.
SlowGpu place_gpu(const RunHeader& header, const GpuSummary& figures) {
    SlowGpu slow;
    slow.figures = figures;
    int first_node = 0;
    int gpu = figures.gpu;
    for (const TopologyGroup& group : header.node_groups) {
        const int here = group.nodes * group.gpus_per_node;
        if (gpu < here) {
            slow.node = first_node + gpu / group.gpus_per_node;
            slow.slot = gpu % group.gpus_per_node;
            break;
        }
        gpu -= here;
        first_node += group.nodes;
    }
    slow.rack = slow.node / header.nodes_per_rack;
    const Plan& plan = header.plan;
    const auto rank = std::find(plan.gpu_of_rank.begin(), plan.gpu_of_rank.end(), figures.gpu);
    if (rank != plan.gpu_of_rank.end()) {
        const int worker = static_cast<int>(rank - plan.gpu_of_rank.begin()) / plan.layout.ranks_per_worker();
        slow.replica = worker % plan.layout.data;
        slow.stage = worker / plan.layout.data;
    }
    return slow;
}

}  // namespace

std::int64_t nearest_rank(std::vector<std::int64_t> values, int percent) {
    if (values.empty()) throw std::invalid_argument("a percentile of nothing");
    if (percent < 1 || percent > 100) throw std::invalid_argument("a percentile is between 1 and 100");
    const std::size_t rank = (values.size() * static_cast<std::size_t>(percent) + 99) / 100;
    const auto place = values.begin() + static_cast<std::ptrdiff_t>(rank - 1);
    std::nth_element(values.begin(), place, values.end());
    return *place;
}

void SummarySink::begin(const RunHeader& header) {
    *this = SummarySink();
    begun_ = true;
    header_ = header;
    header_.scenario_yaml.clear();
    for (const DisturbanceFacts& facts : header.disturbances) {
        DisturbanceCost& cost = costs_.emplace_back();
        cost.name = facts.name;
        cost.kind = facts.kind;
        cost.start_ns = facts.start_ns;
        cost.duration_ns = facts.duration_ns;
    }
}

const SummarySink::LostRange* SummarySink::lost_range_of(std::int64_t iteration) const {
    for (auto range = lost_ranges_.rbegin(); range != lost_ranges_.rend(); ++range) {
        if (iteration >= range->first && iteration < range->last) return &*range;
    }
    return nullptr;
}

void SummarySink::iteration(const IterationEvent& event) {
    durations_ns_.push_back(event.duration_ns);
    next_iteration_ = event.index + 1;
    seen_until_ns_ = std::max(seen_until_ns_, event.start_ns + event.duration_ns);
    if (event.loss) {
        if (!first_loss_) first_loss_ = event.loss;
        last_loss_ = event.loss;
    }
    std::int64_t explained_ns = 0;
    const std::size_t causes = std::min(costs_.size(), event.disturbance_cost_ns.size());
    for (std::size_t i = 0; i < causes; ++i) {
        costs_[i].slowed_ns += event.disturbance_cost_ns[i];
        explained_ns += event.disturbance_cost_ns[i];
    }
    if (!event.repeats) {
        add_shares(shares_, event.shares);
        return;
    }
    repeated_ns_ += event.duration_ns;
    const LostRange* lost = lost_range_of(event.index);
    if (lost != nullptr && lost->disturbance >= 0) {
        costs_[static_cast<std::size_t>(lost->disturbance)].repeated_ns += event.duration_ns - explained_ns;
    }
}

void SummarySink::pause(const PauseEvent& event) {
    paused_ns_[static_cast<std::size_t>(event.reason)] += event.duration_ns;
    seen_until_ns_ = std::max(seen_until_ns_, event.start_ns + event.duration_ns);
    iterations_lost_ += event.iterations_lost;
    if (event.reason == PauseEvent::Reason::kSwitch) ++switches_;
    const bool known = event.disturbance >= 0 && static_cast<std::size_t>(event.disturbance) < costs_.size();
    if (event.iterations_lost > 0) {
        lost_ranges_.push_back(
            {next_iteration_ - event.iterations_lost, next_iteration_, known ? event.disturbance : -1});
        next_iteration_ -= event.iterations_lost;
    }
    if (!known) return;
    DisturbanceCost& cost = costs_[static_cast<std::size_t>(event.disturbance)];
    cost.paused_ns += event.duration_ns;
    cost.iterations_lost += event.iterations_lost;
    if (!event.what.empty()) cost.what.push_back(event.what);
}

void SummarySink::decision(const DecisionEvent& event) {
    ++decisions_;
    if (event.candidates.size() < 2) ++without_choice_;
    ++by_[static_cast<std::size_t>(event.by)];
    if (!event.shadow) return;
    shadow_ = event.shadow->policy;
    if (event.shadow->chosen != event.chosen) ++shadow_differs_;
    shadow_regret_ns_ += event.shadow->regret_ns;
}

void SummarySink::end(const RunFooter& footer) {
    footer_ = footer;
    ended_ = true;
}

RunSummary SummarySink::summary() const {
    if (!begun_) throw std::logic_error("a summary needs a run that has begun");
    RunSummary summary;
    summary.scenario = header_.scenario;
    summary.policy = header_.policy;
    summary.seed = header_.seed;
    summary.layout = describe(header_.plan.layout);
    summary.gpus = static_cast<int>(header_.plan.gpu_of_rank.size());
    summary.complete = ended_ && footer_.complete;
    summary.iterations_completed = static_cast<std::int64_t>(durations_ns_.size());
    summary.iterations_lost = iterations_lost_;
    summary.iterations = summary.iterations_completed - iterations_lost_;
    summary.wall_ns = ended_ ? footer_.wall_ns : seen_until_ns_;
    summary.healthy_iteration_ns = header_.healthy_iteration_ns;
    summary.decisions = ended_ ? footer_.decisions : decisions_;
    summary.switches = ended_ ? footer_.switches : switches_;
    summary.decisions_without_choice = without_choice_;
    summary.handed_over = by_[static_cast<std::size_t>(DecisionEvent::By::kRule)];
    summary.rolled_back = by_[static_cast<std::size_t>(DecisionEvent::By::kRollback)];
    summary.first_loss = first_loss_;
    summary.last_loss = last_loss_;
    summary.shadow = shadow_;
    summary.shadow_differs = shadow_differs_;
    summary.shadow_regret_ns = shadow_regret_ns_;
    summary.checkpoint_ns = paused_ns_[static_cast<std::size_t>(PauseEvent::Reason::kCheckpoint)];
    summary.loss_ns = paused_ns_[static_cast<std::size_t>(PauseEvent::Reason::kLoss)];
    summary.switch_ns = paused_ns_[static_cast<std::size_t>(PauseEvent::Reason::kSwitch)];
    summary.repeated_ns = repeated_ns_;

    if (!durations_ns_.empty()) {
        const std::int64_t total = std::accumulate(durations_ns_.begin(), durations_ns_.end(), std::int64_t{0});
        const double mean_s = summary_seconds(total) / static_cast<double>(durations_ns_.size());
        summary.iteration_mean_s = mean_s;
        summary.iteration_p50_s = summary_seconds(nearest_rank(durations_ns_, 50));
        summary.iteration_p95_s = summary_seconds(nearest_rank(durations_ns_, 95));
        if (mean_s > 0.0 && summary.gpus > 0) {
            summary.tflops_per_gpu = header_.hardware_flops / mean_s / summary.gpus * 1e-12;
            summary.model_tflops_per_gpu = header_.model_flops / mean_s / summary.gpus * 1e-12;
        }
        if (mean_s > 0.0 && header_.peak_flops_per_second > 0.0) {
            summary.mfu = header_.model_flops / mean_s / header_.peak_flops_per_second;
        }
    }

    const std::int64_t covered_ns =
        sum_of_shares(shares_) + repeated_ns_ + summary.checkpoint_ns + summary.loss_ns + summary.switch_ns;
    summary.uncovered_ns = std::max<std::int64_t>(summary.wall_ns - covered_ns, 0);
    const double wall_s = summary_seconds(summary.wall_ns);
    if (wall_s > 0.0) {
        const double useful = static_cast<double>(summary.iterations);
        summary.tokens_per_s = useful * static_cast<double>(header_.tokens_per_iteration) / wall_s;
        summary.goodput = useful * summary_seconds(header_.healthy_iteration_ns) / wall_s;
        const double whole = static_cast<double>(std::max(summary.wall_ns, covered_ns));
        TimeFractions& share = summary.time_share;
        share.compute = static_cast<double>(shares_.compute_ns) / whole;
        share.bubble = static_cast<double>(shares_.bubble_ns) / whole;
        share.tensor = static_cast<double>(shares_.tensor_ns) / whole;
        share.pipeline = static_cast<double>(shares_.pipeline_ns) / whole;
        share.data = static_cast<double>(shares_.data_ns) / whole;
        share.straggling = static_cast<double>(shares_.straggling_ns) / whole;
        share.recovery =
            static_cast<double>(covered_ns - sum_of_shares(shares_) + shares_.recovery_ns + summary.uncovered_ns) /
            whole;
    }

    summary.disturbances = costs_;
    for (DisturbanceCost& cost : summary.disturbances) {
        if (wall_s > 0.0) cost.share = summary_seconds(cost.cost_ns()) / wall_s;
    }

    std::vector<GpuSummary> slow;
    if (ended_) {
        std::copy_if(footer_.gpus.begin(), footer_.gpus.end(), std::back_inserter(slow),
                     [](const GpuSummary& gpu) { return gpu.mean_speed < kNominalSpeed; });
    }
    std::sort(slow.begin(), slow.end(), [](const GpuSummary& a, const GpuSummary& b) {
        return a.mean_speed != b.mean_speed ? a.mean_speed < b.mean_speed : a.gpu < b.gpu;
    });
    if (slow.size() > kSlowestListed) slow.resize(kSlowestListed);
    for (const GpuSummary& gpu : slow) summary.slowest.push_back(place_gpu(header_, gpu));
    return summary;
}

RecordSummary summarize_record(const std::filesystem::path& file) {
    SummarySink sink;
    RecordReader reader(file);
    const RecordStatus status = reader.poll(sink);
    if (!sink.begun()) throw ConfigError(why_no_run(file, status));
    if (reader.level() == RecordLevel::kDecisions) {
        throw ConfigError(file.string() + ": recorded at level 'decisions', which holds no iterations to sum up");
    }
    return {sink.summary(), status.problem};
}

}  // namespace headway::scenarios
