#include "policies/planning/uneven_plans.h"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <limits>
#include <numeric>
#include <optional>
#include <utility>

#include "policies/planning/micro_batch_shares.h"

namespace headway::policies {

namespace {

using scenarios::Layout;
using scenarios::Plan;

constexpr double kWorthCosting = 1.25;  ///< of the best estimate

/// A stage as linear in its layers.
struct StageSpeed {
    double layer_s = 0.0;
    double rest_s = 0.0;  // embedding, logits
    int most = 0;         // layers that fit in memory
    double time(int layers) const { return rest_s + layer_s * layers; }
};

/// Layers of each stage for which the slowest one is as fast as it can be, and among those splits the sum of all is
/// least; empty where they do not fit. Each stage has at least `least`.
std::vector<int> fast_split(const std::vector<StageSpeed>& stages, int layers, int least) {
    const auto room = [&](double bound) {
        int sum = 0;
        for (const StageSpeed& stage : stages) {
            const double fit = (bound - stage.rest_s) / stage.layer_s * (1.0 + 1e-12);
            sum += std::clamp(static_cast<int>(std::clamp(fit, 0.0, 1e6)), least, stage.most);
        }
        return sum;
    };
    double low = 0.0, high = 0.0;
    for (const StageSpeed& stage : stages) {
        if (stage.most < least) return {};
        low = std::max(low, stage.time(least));
        high = std::max(high, stage.time(layers));
    }
    if (room(high) < layers || static_cast<int>(stages.size()) * least > layers) return {};
    for (int step = 0; step < 48 && room(low) < layers; ++step) {
        const double middle = 0.5 * (low + high);
        (room(middle) < layers ? low : high) = middle;
    }
    const double bound = room(low) >= layers ? low : high;
    std::vector<int> split;
    for (const StageSpeed& stage : stages) {
        const double fit = (bound - stage.rest_s) / stage.layer_s * (1.0 + 1e-12);
        split.push_back(std::clamp(static_cast<int>(std::clamp(fit, 0.0, 1e6)), least, stage.most));
    }
    // What is too much is taken from the stages that are slowest by the layer, of equals from the last.
    int excess = std::accumulate(split.begin(), split.end(), 0) - layers;
    while (excess > 0) {
        std::size_t slowest = stages.size();
        for (std::size_t s = 0; s < stages.size(); ++s)
            if (split[s] > least && (slowest == stages.size() || stages[s].layer_s > stages[slowest].layer_s ||
                                     (stages[s].layer_s == stages[slowest].layer_s &&
                                      stages[s].time(split[s]) >= stages[slowest].time(split[slowest]))))
                slowest = s;
        --split[slowest];
        --excess;
    }
    return split;
}

/// Layers of a stage over its chunks: those in the middle of the model get what does not divide.
void put_in_chunks(const Layout& layout, const std::vector<int>& split, int replica, std::vector<int>& cells) {
    for (int s = 0; s < layout.pipeline; ++s) {
        const std::vector<int> chunks =
            scenarios::even_layers(split[static_cast<std::size_t>(s)], layout.virtual_pipeline);
        for (int c = 0; c < layout.virtual_pipeline; ++c)
            cells[static_cast<std::size_t>(replica * layout.virtual_stages() + c * layout.pipeline + s)] =
                chunks[static_cast<std::size_t>(c)];
    }
}

/// Everything about one layout on one order of GPUs.
class PlacedLayout {
  public:
    PlacedLayout(const PlanningTask& task, PointBounds& speeds, const LayoutPoint& point, Plan even, PlanMemory& memory)
        : task_(task), micro_batches_(task.job.global_batch / point.micro_batch), plan_(std::move(even)) {
        const Layout& layout = plan_.layout;
        const std::vector<PointBounds::GpuSeconds>& classes = speeds.seconds_of_classes(point);
        const int most_shares =
            *std::max_element(plan_.micro_batches_of_replica.begin(), plan_.micro_batches_of_replica.end());
        for (int r = 0; r < layout.data; ++r)
            for (int s = 0; s < layout.pipeline; ++s) {
                StageSpeed stage;
                for (int member = 0; member < layout.ranks_per_worker(); ++member) {
                    const PointBounds::GpuSeconds& gpu =
                        classes[speeds.class_of_gpu(plan_.gpu_of_worker(r, s, member))];
                    stage.layer_s = std::max(stage.layer_s, gpu.layer);
                    stage.rest_s = std::max(
                        stage.rest_s, (s == 0 ? gpu.embedding : 0.0) + (s + 1 == layout.pipeline ? gpu.head : 0.0));
                }
                stage.most = memory.most_layers(plan_, most_shares, r, s);
                stages_.push_back(stage);
            }
    }

    void add_to(std::vector<std::pair<double, Plan>>& candidates) {
        candidates.emplace_back(estimate(plan_), plan_);
        const bool shares_open = task_.strategy.micro_batches_per_replica.empty();
        if (shares_open) add(candidates, plan_);
        if (!task_.strategy.layers_per_stage.empty()) return;
        if (const auto together = split_together()) add(candidates, *together);
        if (task_.layers_apart)
            if (const auto apart = split_apart()) add(candidates, *apart);
    }

  private:
    int layers() const { return task_.job.model.layers; }
    const StageSpeed& stage(int replica, int s) const {
        return stages_[static_cast<std::size_t>(replica * plan_.layout.pipeline + s)];
    }

    std::optional<Plan> split_together() const {
        const Layout& layout = plan_.layout;
        std::vector<StageSpeed> slowest(static_cast<std::size_t>(layout.pipeline));
        for (int s = 0; s < layout.pipeline; ++s) {
            StageSpeed& together = slowest[static_cast<std::size_t>(s)];
            together.most = layers();
            for (int r = 0; r < layout.data; ++r) {
                together.layer_s = std::max(together.layer_s, stage(r, s).layer_s);
                together.rest_s = std::max(together.rest_s, stage(r, s).rest_s);
                together.most = std::min(together.most, stage(r, s).most);
            }
        }
        const std::vector<int> split = fast_split(slowest, layers(), layout.virtual_pipeline);
        if (split.empty()) return std::nullopt;
        Plan plan = plan_;
        for (int r = 0; r < layout.data; ++r) put_in_chunks(layout, split, r, plan.layers_of_cell);
        return plan;
    }

    std::optional<Plan> split_apart() const {
        const Layout& layout = plan_.layout;
        Plan plan = plan_;
        for (int r = 0; r < layout.data; ++r) {
            const auto first = stages_.begin() + static_cast<std::ptrdiff_t>(r) * layout.pipeline;
            const std::vector<int> split =
                fast_split({first, first + layout.pipeline}, layers(), layout.virtual_pipeline);
            if (split.empty()) return std::nullopt;
            put_in_chunks(layout, split, r, plan.layers_of_cell);
        }
        return plan;
    }

    int layers_of(const Plan& plan, int replica, int s) const {
        int layers = 0;
        for (int c = 0; c < plan.layout.virtual_pipeline; ++c)
            layers += plan.layers(replica, c * plan.layout.pipeline + s);
        return layers;
    }

    /// Slowest stage and all stages once (interleaved: a chunk of each).
    std::pair<double, double> replica_seconds(const Plan& plan, int replica) const {
        double slowest = 0.0, sum = 0.0;
        for (int s = 0; s < plan.layout.pipeline; ++s) {
            const double time = stage(replica, s).time(layers_of(plan, replica, s));
            slowest = std::max(slowest, time);
            sum += time;
        }
        return {slowest, slowest + (sum - slowest) / plan.layout.virtual_pipeline};
    }

    double estimate(const Plan& plan) const {
        double longest = 0.0;
        for (int r = 0; r < plan.layout.data; ++r) {
            const auto [slowest, once] = replica_seconds(plan, r);
            const int shares = plan.micro_batches_of_replica[static_cast<std::size_t>(r)];
            longest = std::max(longest, (shares - 1) * slowest + once);
        }
        return longest;
    }

    /// With the shares that suit its stages.
    void add(std::vector<std::pair<double, Plan>>& candidates, Plan plan) const {
        if (task_.strategy.micro_batches_per_replica.empty()) {
            std::vector<std::pair<double, double>> seconds;
            for (int r = 0; r < plan.layout.data; ++r) seconds.push_back(replica_seconds(plan, r));
            ShareLimits limits;
            limits.total = micro_batches_;
            limits.multiple = plan.layout.schedule == scenarios::Schedule::kInterleaved ? plan.layout.pipeline : 1;
            const auto shares = share_micro_batches(plan.layout.data, limits, [&](int replica, int share) {
                const auto& [slowest, once] = seconds[static_cast<std::size_t>(replica)];
                return (share - 1) * slowest + once;
            });
            if (shares) plan.micro_batches_of_replica = *shares;
        }
        const double time = estimate(plan);
        candidates.emplace_back(time, std::move(plan));
    }

    const PlanningTask& task_;
    const int micro_batches_;  // of an iteration
    Plan plan_;
    std::vector<StageSpeed> stages_;  // [workers]
};

}  // namespace

std::vector<Plan> UnevenPlans::of(const LayoutPoint& point, const GpuGroups& groups, PlanMemory& memory,
                                  std::size_t plans) {
    const Layout& layout = point.layout;
    const std::vector<PointBounds::GpuSeconds>& classes = speeds_.seconds_of_classes(point);
    std::vector<double> seconds, worth;  // of a group: a layer; the same, longer where its links are slow
    for (int group = 0; group < groups.groups(); ++group) {
        double slowest = 0.0;
        for (int member = 0; member < groups.tensor(); ++member)
            slowest = std::max(slowest, classes[speeds_.class_of_gpu(groups.gpu(group, member))].layer);
        seconds.push_back(slowest);
        worth.push_back(slowest / link_share(task_, groups, group));
    }
    const auto by = [](const std::vector<double>& values) {
        return [&](int a, int b) { return values[static_cast<std::size_t>(a)] < values[static_cast<std::size_t>(b)]; };
    };
    std::vector<int> chosen(seconds.size());
    std::iota(chosen.begin(), chosen.end(), 0);
    std::stable_sort(chosen.begin(), chosen.end(), by(worth));
    chosen.resize(static_cast<std::size_t>(layout.world_size() / layout.tensor));
    std::vector<int> in_order = chosen;
    std::sort(in_order.begin(), in_order.end());
    std::vector<int> fast_first = in_order, slow_first(in_order.rbegin(), in_order.rend());
    std::stable_sort(fast_first.begin(), fast_first.end(), by(seconds));
    std::stable_sort(slow_first.begin(), slow_first.end(), by(seconds));
    std::reverse(slow_first.begin(), slow_first.end());  // of equals the first ones stay first

    const bool ends_meet = layout.pipeline > 2 && task_.job.model.tied_embedding;
    using Candidates = std::vector<std::pair<double, Plan>>;
    const auto sort = [](Candidates& candidates) {
        std::stable_sort(candidates.begin(), candidates.end(),
                         [](const auto& a, const auto& b) { return a.first < b.first; });
    };
    Candidates best_of_places, others;
    std::vector<std::vector<int>> placed;
    for (const std::vector<int>* order : {&in_order, &slow_first, &fast_first})
        for (const GpuOrder together :
             {GpuOrder::kStagesTogether, GpuOrder::kReplicasTogether, GpuOrder::kEndsTogether}) {
            if (together == GpuOrder::kEndsTogether && !ends_meet) continue;
            Plan plan = even_plan(task_, point, groups, together, *order);
            if (std::find(placed.begin(), placed.end(), plan.gpu_of_rank) != placed.end()) continue;
            placed.push_back(plan.gpu_of_rank);
            Candidates here;
            PlacedLayout(task_, speeds_, point, std::move(plan), memory).add_to(here);
            sort(here);
            best_of_places.push_back(std::move(here.front()));
            others.insert(others.end(), std::make_move_iterator(here.begin() + 1), std::make_move_iterator(here.end()));
        }
    // The estimate knows nothing of links, which decide between places where it is nearly the same.
    sort(best_of_places);
    sort(others);
    std::vector<Plan> best;
    for (Candidates* candidates : {&best_of_places, &others})
        for (auto& [time, plan] : *candidates) {
            if (best.size() == plans || time > kWorthCosting * best_of_places.front().first) break;
            if (std::find(best.begin(), best.end(), plan) == best.end()) best.push_back(std::move(plan));
        }
    return best;
}

}  // namespace headway::policies
