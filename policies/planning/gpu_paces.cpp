#include "policies/planning/gpu_paces.h"

#include <algorithm>
#include <cmath>

namespace headway::policies {

namespace {

using scenarios::Duration;
using scenarios::GpuPace;
using scenarios::Work;

constexpr double kLeastNoise = 0.0015;
constexpr double kMostFirstNoise = 0.03;    ///< ranks differ for good reasons too
constexpr double kDifference = 0.01;        ///< of paces, not worth telling
constexpr double kClockDifference = 0.015;  ///< about one step
constexpr double kMadToDeviation = 1.4826;
constexpr double kSteadyShare = 0.4;           ///< of the ranks: a slow node is up to half of a small job
constexpr double kSteadyToDeviation = 1.9069;  ///< deviation over that quantile of absolute values, normal law
constexpr double kMuchSlower = 0.1;
constexpr double kModelError = 0.1;        ///< beyond this the median rank is slow, not the model wrong
constexpr double kMedianMoves = 0.1;       ///< share of the way that the usual median goes at a decision
constexpr double kForgotten = 0.15;        ///< of the noise, each interval
constexpr double kSureOfChange = 4.0;      ///< deviations
constexpr double kFasterThanUsual = 0.05;  ///< than the middle one: more is not believed of a part of an interval

double quantile_of(std::vector<double>& values, double share) {
    const auto place = values.begin() + static_cast<std::ptrdiff_t>(static_cast<double>(values.size()) * share);
    std::nth_element(values.begin(), place, values.end());
    return *place;
}
double median_of(std::vector<double>& values) {
    return quantile_of(values, 0.5);
}

/// What a rank of a worker computes in an iteration with its GPU healthy.
Work work_of_rank(const scenarios::IterationCosts& costs, const scenarios::Plan& plan, int gpu, int type, int replica,
                  int stage) {
    const scenarios::Layout& layout = plan.layout;
    const scenarios::GpuScale scale =
        costs.gpu_scales.empty() ? scenarios::GpuScale() : costs.gpu_scales[static_cast<std::size_t>(gpu)];
    Work work;
    for (int chunk = 0; chunk < layout.virtual_pipeline; ++chunk) {
        const auto& cell = costs.of(type, layout, replica, chunk * layout.pipeline + stage);
        const Work once = cell.forward.scaled(scale.forward) + cell.backward.scaled(scale.backward);
        work += once * plan.micro_batches_of_replica[static_cast<std::size_t>(replica)];
        work += cell.optimizer;
    }
    work += costs.stages[static_cast<std::size_t>(stage)].optimizer;
    return work;
}

double own_part(const Work& work) {
    return (work.compute + work.memory).s();
}
double shared_part(const Work& work) {
    return (work.fixed + work.communication).s();
}

/// Beside a much slower member of its worker a GPU looks faster than it is: of the worker's time it is told the part
/// that its pace makes of the slow one's, fixed costs included. Not faster than healthy. `slow`: log of a time over
/// what costs say.
double beside(const Work& work, double slow, const Work& slowest_work, double slowest) {
    const double slowest_pace =
        own_part(slowest_work) / std::max(1e-3 * slowest_work.total().s(),
                                          slowest_work.total().s() * std::exp(slowest) - shared_part(slowest_work));
    const double pace =
        (own_part(work) + shared_part(work) * std::min(1.0, slowest_pace)) / (work.total().s() * std::exp(slow));
    return std::max(0.0, std::log((own_part(work) / pace + shared_part(work)) / work.total().s()));
}

}  // namespace

GpuPaces::GpuPaces(const scenarios::Cluster& cluster) {
    int types = 0;
    for (int node = 0; node < cluster.nodes(); ++node) {
        const int type = scenarios::gpu_type_index(cluster, cluster.first_gpu(node));
        types = std::max(types, type + 1);
        for (int slot = 0; slot < cluster.node(node).gpus; ++slot) {
            type_of_gpu_.push_back(type);
            node_of_gpu_.push_back(node);
        }
    }
    best_clock_.resize(static_cast<std::size_t>(types));
    start_episode();
}

void GpuPaces::start_episode(double model_error) {
    const std::size_t gpus = type_of_gpu_.size();
    paces_.assign(gpus, GpuPace());
    slow_.assign(gpus, SteadyValue());
    known_slow_.assign(gpus, 0.0);
    const std::size_t nodes = gpus > 0 ? static_cast<std::size_t>(node_of_gpu_.back()) + 1 : 0;
    slow_of_node_.assign(nodes, SteadyValue());
    by_node_.resize(nodes);
    slow_of_all_ = SteadyValue();
    clock_.assign(gpus, 1.0);
    seen_.start(gpus);
    was_unavailable_.assign(gpus, 0);
    std::fill(best_clock_.begin(), best_clock_.end(), 0.0);
    last_slow_.assign(gpus, std::nan(""));
    plan_ = scenarios::Plan();
    before_.clear();
    has_baseline_ = false;
    baseline_ = std::log(model_error);
    noise_ = sure_noise_ = 0.0;
    judged_ = 0;
}

/// Another machine stands where one was lost.
void GpuPaces::forget_replaced(const Observation& observation) {
    std::vector<char> now(was_unavailable_.size(), 0);
    for (const int gpu : observation.unavailable_gpus) now[static_cast<std::size_t>(gpu)] = 1;
    for (std::size_t gpu = 0; gpu < now.size(); ++gpu) {
        if (!was_unavailable_[gpu] || now[gpu]) continue;
        forget(gpu);
        seen_.replaced(gpu);
    }
    was_unavailable_ = std::move(now);
}

void GpuPaces::forget(std::size_t gpu) {
    slow_[gpu] = SteadyValue();
    known_slow_[gpu] = 0.0;
    paces_[gpu] = GpuPace();
    clock_[gpu] = 1.0;
}

bool GpuPaces::forget_what_is_long_ago(Duration now) {
    bool any = false;
    for (std::size_t gpu = 0; gpu < paces_.size(); ++gpu) {
        if (known_slow_[gpu] == 0.0 || !seen_.may_be_well(gpu, now)) continue;
        forget(gpu);
        any = true;
    }
    return any;
}

void GpuPaces::read_ranks(const Observation& observation, const scenarios::IterationCosts& costs) {
    const scenarios::Plan& plan = observation.plan;
    const scenarios::Layout& layout = plan.layout;
    ranks_.assign(observation.ranks.size(), Rank());
    for (int stage = 0; stage < layout.pipeline; ++stage)
        for (int replica = 0; replica < layout.data; ++replica) {
            int type = -1;
            Work work;
            for (int member = 0; member < layout.ranks_per_worker(); ++member) {
                const auto r =
                    static_cast<std::size_t>(plan.rank(member % layout.tensor, member / layout.tensor, replica, stage));
                const RankMeasurement& measured = observation.ranks[r].measured;
                Rank& rank = ranks_[r];
                rank.gpu = plan.gpu_of_rank[r];
                const auto gpu = static_cast<std::size_t>(rank.gpu);
                if (type_of_gpu_[gpu] != type || !costs.gpu_scales.empty())
                    work = work_of_rank(costs, plan, rank.gpu, type_of_gpu_[gpu], replica, stage);
                type = type_of_gpu_[gpu];
                rank.work = work;
                double& best = best_clock_[static_cast<std::size_t>(type)];
                best = std::max(best, measured.sm_clock_mhz);
                rank.measured = measured.compute > Duration() && work.total() > Duration();
                if (rank.measured) rank.slow = std::log(measured.compute / work.total());
            }
        }
}

/// A mean over two states: what a rank takes longer, or shorter, than before is due to the share of the second.
void GpuPaces::take_the_end(double share) {
    const double sure = std::max(kDifference, kSureOfChange * sure_noise_);
    for (std::size_t r = 0; r < ranks_.size(); ++r) {
        Rank& rank = ranks_[r];
        if (!rank.measured || std::isnan(before_[r]) || std::abs(rank.slow - before_[r]) < sure) continue;
        const double before = std::exp(before_[r]);
        const double end = before + (std::exp(rank.slow) - before) / share;
        rank.slow = std::log(std::max(end, std::min(before, std::exp(baseline_ - kFasterThanUsual))));
        rank.rough = true;
    }
}

void GpuPaces::judge_noise() {
    scratch_.clear();
    for (const Rank& rank : ranks_)
        if (rank.measured) scratch_.push_back(rank.slow);
    const double median = median_of(scratch_);
    if (!has_baseline_ && std::abs(median - baseline_) < kModelError) baseline_ = median;
    usual_median_ += (median - usual_median_) * (has_baseline_ ? kMedianMoves : 1.0);
    baseline_ = std::min(baseline_, usual_median_);
    has_baseline_ = true;
    // What every rank has in common moves no share: ranks are compared with their median.
    scratch_.clear();
    for (const Rank& rank : ranks_) {
        const double before = last_slow_[static_cast<std::size_t>(rank.gpu)];
        if (rank.measured && !std::isnan(before)) scratch_.push_back(std::abs(rank.slow - median - before));
    }
    if (2 * scratch_.size() > ranks_.size()) {
        // Up at once and down slowly: most ranks do not become stragglers at the same time.
        const double deviation = kSteadyToDeviation * quantile_of(scratch_, kSteadyShare) / std::sqrt(2.0);
        noise_ = judged_++ == 0 ? deviation : std::max(deviation, noise_ + kForgotten * (deviation - noise_));
    } else if (judged_ == 0) {
        for (const Rank& rank : ranks_)
            if (rank.measured) scratch_.push_back(std::abs(rank.slow - median));
        noise_ = std::min(kMostFirstNoise, kMadToDeviation * median_of(scratch_));
    }
    noise_ = std::max(noise_, kLeastNoise);
    // Few differences tell it roughly only.
    sure_noise_ = noise_ * (1.0 + 2.0 / std::sqrt(static_cast<double>(ranks_.size()) * std::max(1, judged_)));
    std::fill(last_slow_.begin(), last_slow_.end(), std::nan(""));
    for (const Rank& rank : ranks_)
        if (rank.measured) last_slow_[static_cast<std::size_t>(rank.gpu)] = rank.slow - median;
}

void GpuPaces::judge_gpus() {
    const auto members = static_cast<std::size_t>(plan_.layout.ranks_per_worker());
    for (auto& of_node : by_node_) of_node.clear();
    scratch_.clear();
    for (std::size_t first = 0; first < ranks_.size(); first += members) {
        std::size_t slowest = first;
        for (std::size_t r = first; r < first + members; ++r)
            if (ranks_[r].slow > ranks_[slowest].slow) slowest = r;
        for (std::size_t r = first; r < first + members; ++r) {
            Rank& rank = ranks_[r];
            if (!rank.measured) continue;
            rank.own = rank.slow - baseline_;
            if (ranks_[slowest].slow - rank.slow > kMuchSlower)
                rank.own = beside(rank.work, rank.own, ranks_[slowest].work, ranks_[slowest].slow - baseline_);
            by_node_[static_cast<std::size_t>(node_of(rank.gpu))].push_back(rank.own);
            scratch_.push_back(rank.own);
        }
    }
    // A median is as noisy as 2 / pi as many single values; the ranks of a replica, which share its data, are one.
    const auto noise_of = [&](std::size_t count) {
        const auto apart = std::min(count, static_cast<std::size_t>(plan_.layout.data));
        return sure_noise_ * 1.25 / std::sqrt(static_cast<double>(apart));
    };
    const double of_all = median_of(scratch_);
    const bool rough = std::any_of(ranks_.begin(), ranks_.end(), [](const Rank& rank) { return rank.rough; });
    slow_of_all_.update(of_all, noise_of(scratch_.size()), kDifference, rough);
    for (std::size_t node = 0; node < by_node_.size(); ++node)
        if (by_node_[node].size() > 1)
            slow_of_node_[node].update(median_of(by_node_[node]) - slow_of_all_.published(),
                                       noise_of(by_node_[node].size()), kDifference, rough);
}

double GpuPaces::common(int node) const {
    return slow_of_all_.published() + slow_of_node_[static_cast<std::size_t>(node)].published();
}

/// Healthy where that explains what was measured of a GPU that differs from the others of its node.
double GpuPaces::total(int gpu) const {
    const SteadyValue& own = slow_[static_cast<std::size_t>(gpu)];
    const double slow = common(node_of(gpu)) + own.published();
    return own.published() != 0.0 && std::abs(slow) < own.within() ? 0.0 : slow;
}

GpuPace GpuPaces::pace_of(const Rank& rank, double slow, double clock, double fabric) const {
    if (slow == 0.0) return GpuPace();
    const Work& work = rank.work;
    const double measured = work.total().s() * std::exp(slow);
    const double others = work.fixed.s() + work.communication.s() / fabric;
    const double own = std::max(measured - others, 0.1 * measured);
    const double share = (work.compute.s() / clock + work.memory.s()) / own;
    GpuPace pace;
    pace.compute = clock * share;
    pace.memory = share;
    return pace;
}

bool GpuPaces::update(const Observation& observation, const scenarios::IterationCosts& costs,
                      const std::vector<double>& fabric, double share) {
    forget_replaced(observation);
    if (observation.ranks.empty() || observation.iteration <= Duration()) return false;
    read_ranks(observation, costs);
    if (std::none_of(ranks_.begin(), ranks_.end(), [](const Rank& rank) { return rank.measured; })) return false;
    const bool same_plan = plan_ == observation.plan;
    if (!same_plan) {
        plan_ = observation.plan;
        before_.assign(ranks_.size(), std::nan(""));
    }
    if (share < 1.0) take_the_end(share);
    for (std::size_t r = 0; r < ranks_.size(); ++r) before_[r] = ranks_[r].measured ? ranks_[r].slow : std::nan("");
    judge_noise();

    judge_gpus();
    bool changed = !same_plan;
    for (std::size_t r = 0; r < ranks_.size(); ++r) {
        const Rank& rank = ranks_[r];
        if (!rank.measured) continue;
        const auto gpu = static_cast<std::size_t>(rank.gpu);
        slow_[gpu].update(rank.own - common(node_of(rank.gpu)), sure_noise_, kDifference, rank.rough);
        const double slow = total(rank.gpu);
        bool moved = slow != known_slow_[gpu];
        known_slow_[gpu] = slow;
        const double best = best_clock_[static_cast<std::size_t>(type_of_gpu_[gpu])];
        const double mhz = observation.ranks[r].measured.sm_clock_mhz;
        double clock = best > 0.0 && mhz > 0.0 ? mhz / best : 1.0;
        if (clock > 1.0 - kClockDifference) clock = 1.0;
        if (std::abs(clock - clock_[gpu]) > kClockDifference) {
            clock_[gpu] = clock;
            moved = moved || slow != 0.0;
        }
        if (!moved && same_plan) continue;
        const double inside = fabric.empty() ? 1.0 : fabric[static_cast<std::size_t>(node_of_gpu_[gpu])];
        paces_[gpu] = pace_of(rank, slow, clock_[gpu], inside);
        changed = changed || moved;
    }
    for (const Rank& rank : ranks_)
        if (rank.measured) {
            const auto gpu = static_cast<std::size_t>(rank.gpu);
            seen_.measured(gpu, known_slow_[gpu] != 0.0, observation.now);
        }
    return forget_what_is_long_ago(observation.now) || changed;
}

}  // namespace headway::policies
