#include "policies/planning/rebalance.h"

#include <algorithm>
#include <map>

#include "policies/planning/layer_split.h"
#include "policies/planning/micro_batch_shares.h"

namespace headway::policies {

using scenarios::Layout;
using scenarios::Plan;

namespace {

/// Of a replica's time: a split that gains less moves layers for nothing.
constexpr double kSplitGain = 0.005;
constexpr int kTurns = 3;

void put_chunks(const Layout& layout, int stage, int layers, std::vector<int>& out) {
    const int chunks = layout.virtual_pipeline;
    out.assign(static_cast<std::size_t>(chunks), layers / chunks);
    // The first chunk of the first stage holds the embedding: it comes last; the last one of the last stage does by its
    // place.
    const int first = stage == 0 && chunks > 1 ? 1 : 0;
    for (int extra = 0; extra < layers % chunks; ++extra) ++out[static_cast<std::size_t>((first + extra) % chunks)];
}

}  // namespace

std::vector<int> layers_of_chunks(const Layout& layout, int stage, int layers) {
    std::vector<int> out;
    put_chunks(layout, stage, layers, out);
    return out;
}

double Rebalancer::load(int replica, int stage, int layers) {
    const Layout& layout = layout_.layout();
    put_chunks(layout, stage, layers, chunks_);
    double seconds = 0.0;
    for (int chunk = 0; chunk < layout.virtual_pipeline; ++chunk)
        seconds +=
            layout_.cell_seconds(replica, chunk * layout.pipeline + stage, chunks_[static_cast<std::size_t>(chunk)]);
    return seconds;
}

double Rebalancer::stage_seconds(const Plan& plan, int replica, int stage) {
    double seconds = 0.0;
    for (int chunk = 0; chunk < plan.layout.virtual_pipeline; ++chunk) {
        const int k = chunk * plan.layout.pipeline + stage;
        seconds += layout_.cell_seconds(replica, k, plan.layers(replica, k));
    }
    return seconds;
}

double Rebalancer::slowest_stage_seconds(const Plan& plan, int replica) {
    double slowest = 0.0;
    for (int stage = 0; stage < plan.layout.pipeline; ++stage)
        slowest = std::max(slowest, stage_seconds(plan, replica, stage));
    return slowest;
}

double Rebalancer::pipeline_seconds(const Plan& plan, int replica, int micro_batches) {
    double slowest = 0.0, sum = 0.0;
    for (int stage = 0; stage < plan.layout.pipeline; ++stage) {
        const double seconds = stage_seconds(plan, replica, stage);
        slowest = std::max(slowest, seconds);
        sum += seconds;
    }
    return (micro_batches - 1) * slowest + sum;
}

int Rebalancer::most_layers(int replica, int stage, int micro_batches) {
    int fits = 0, not_tried = job_.model.layers - layout_.layout().pipeline + 2;
    while (not_tried - fits > 1) {
        const int middle = (fits + not_tried) / 2;
        put_chunks(layout_.layout(), stage, middle, chunks_);
        (layout_.fits_memory(replica, stage, chunks_, micro_batches) ? fits : not_tried) = middle;
    }
    return fits;
}

/// Only GPipe keeps the activations of all micro-batches.
int Rebalancer::most_micro_batches(const Plan& plan, int replica) {
    const auto fits = [&](int micro_batches) {
        for (int stage = 0; stage < plan.layout.pipeline; ++stage) {
            chunks_.clear();
            for (int chunk = 0; chunk < plan.layout.virtual_pipeline; ++chunk)
                chunks_.push_back(plan.layers(replica, chunk * plan.layout.pipeline + stage));
            if (!layout_.fits_memory(replica, stage, chunks_, micro_batches)) return false;
        }
        return true;
    };
    int most = 0, not_tried = job_.global_batch / job_.micro_batch + 1;
    while (not_tried - most > 1) {
        const int middle = (most + not_tried) / 2;
        (fits(middle) ? most : not_tried) = middle;
    }
    return most;
}

std::optional<Plan> Rebalancer::share(const Plan& plan) {
    const Layout& layout = plan.layout;
    const int replicas = layout.data;
    if (!adapt_.micro_batches || replicas < 2) return std::nullopt;
    ShareLimits limits;
    limits.total = job_.global_batch / job_.micro_batch;
    if (layout.schedule == scenarios::Schedule::kInterleaved) limits.multiple = layout.pipeline;
    if (layout.schedule == scenarios::Schedule::kGPipe)
        for (int r = 0; r < replicas; ++r) limits.most.push_back(most_micro_batches(plan, r));

    // A first guess from the stages alone, then the longest path around it: there the time of a replica is a straight
    // line, one more micro-batch costs one round of its slowest stage.
    std::vector<double> base, each;
    for (int r = 0; r < replicas; ++r) {
        base.push_back(pipeline_seconds(plan, r, 1));
        each.push_back(slowest_stage_seconds(plan, r));
    }
    const auto time = [&](int r, int count) {
        return base[static_cast<std::size_t>(r)] + (count - 1) * each[static_cast<std::size_t>(r)];
    };
    const auto guess = share_micro_batches(replicas, limits, time);
    if (!guess) return std::nullopt;
    std::vector<int> fewer, more;
    for (const int count : *guess) {
        const auto [below, above] = layout_.counts_around(count);
        fewer.push_back(below);
        more.push_back(above);
    }
    const auto low = layout_.replica_times(plan, fewer), high = layout_.replica_times(plan, more);
    for (std::size_t r = 0; r < low.size(); ++r) {
        each[r] = std::max(0.0, (high[r] - low[r]).s() / (more[r] - fewer[r]));
        base[r] = low[r].s() - each[r] * (fewer[r] - 1);
    }
    auto shares = share_micro_batches(replicas, limits, time);
    if (!shares || *shares == plan.micro_batches_of_replica) return std::nullopt;
    Plan result = plan;
    result.micro_batches_of_replica = std::move(*shares);
    if (!layout_.fits_memory(result)) return std::nullopt;
    return result;
}

void Rebalancer::put_split(Plan& plan, int replica, const std::vector<int>& layers_of_stage) const {
    const Layout& layout = plan.layout;
    for (int stage = 0; stage < layout.pipeline; ++stage) {
        const std::vector<int> chunks =
            layers_of_chunks(layout, stage, layers_of_stage[static_cast<std::size_t>(stage)]);
        for (int chunk = 0; chunk < layout.virtual_pipeline; ++chunk)
            plan.layers_of_cell[static_cast<std::size_t>(replica * layout.virtual_stages() + chunk * layout.pipeline +
                                                         stage)] = chunks[static_cast<std::size_t>(chunk)];
    }
}

bool Rebalancer::split_apart(Plan& plan) {
    const Layout& layout = plan.layout;
    // Replicas of one class with equal shares get the same answer.
    bool changed = false;
    for (int replica = 0; replica < layout.data; ++replica) {
        const int micro_batches = plan.micro_batches_of_replica[static_cast<std::size_t>(replica)];
        auto [entry, is_new] = splits_.try_emplace({layout_.replica_class(replica), micro_batches});
        if (is_new) {
            SplitLimits limits{job_.model.layers, layout.virtual_pipeline, {}};
            for (int stage = 0; stage < layout.pipeline; ++stage)
                limits.most.push_back(most_layers(replica, stage, micro_batches));
            const auto split = split_layers(layout.pipeline, micro_batches, limits,
                                            [&](int stage, int layers) { return load(replica, stage, layers); });
            if (split) entry->second = *split;
        }
        if (entry->second.empty()) continue;
        Plan other = plan;
        put_split(other, replica, entry->second);
        const double before = pipeline_seconds(plan, replica, micro_batches);
        if (pipeline_seconds(other, replica, micro_batches) > before * (1.0 - kSplitGain)) continue;
        plan.layers_of_cell = std::move(other.layers_of_cell);
        changed = true;
    }
    return changed;
}

bool Rebalancer::split_alike(Plan& plan) {
    const Layout& layout = plan.layout;
    // One replica of each class stands for it, with the most micro-batches that one of them trains.
    std::map<int, std::pair<int, int>> classes;
    int most = 0;
    for (int replica = 0; replica < layout.data; ++replica) {
        const int micro_batches = plan.micro_batches_of_replica[static_cast<std::size_t>(replica)];
        auto& [first, count] = classes.try_emplace(layout_.replica_class(replica), replica, 0).first->second;
        count = std::max(count, micro_batches);
        most = std::max(most, micro_batches);
    }
    SplitLimits limits{job_.model.layers, layout.virtual_pipeline,
                       std::vector<int>(static_cast<std::size_t>(layout.pipeline), job_.model.layers)};
    for (const auto& [number, of_class] : classes)
        for (int stage = 0; stage < layout.pipeline; ++stage) {
            int& fits = limits.most[static_cast<std::size_t>(stage)];
            fits = std::min(fits, most_layers(of_class.first, stage, of_class.second));
        }
    const auto split = split_layers(layout.pipeline, most, limits, [&](int stage, int layers) {
        double slowest = 0.0;
        for (const auto& [number, of_class] : classes)
            slowest = std::max(slowest, load(of_class.first, stage, layers) * of_class.second / most);
        return slowest;
    });
    if (!split) return false;
    Plan other = plan;
    for (int replica = 0; replica < layout.data; ++replica) put_split(other, replica, *split);
    if (other == plan) return false;
    plan.layers_of_cell = std::move(other.layers_of_cell);
    return true;
}

std::optional<Plan> Rebalancer::split(const Plan& plan, bool apart) {
    if (!adapt_.layers || plan.layout.pipeline < 2 || (apart && (!adapt_.layers_apart || plan.layout.data < 2)))
        return std::nullopt;
    Plan result = plan;
    if (!(apart ? split_apart(result) : split_alike(result)) || !layout_.fits_memory(result)) return std::nullopt;
    return result;
}

std::optional<Plan> Rebalancer::split_and_share(const Plan& plan, bool apart) {
    Plan result = plan;
    bool split_once = false, shared_once = false;
    for (int turn = 0; turn < kTurns; ++turn) {
        const std::optional<Plan> divided = split(result, apart);
        if (divided) result = *divided;
        split_once = split_once || divided;
        const std::optional<Plan> shared = share(result);
        if (shared) result = *shared;
        shared_once = shared_once || shared;
        if (!shared) break;
    }
    if (!split_once || !shared_once) return std::nullopt;
    return result;
}

}  // namespace headway::policies
