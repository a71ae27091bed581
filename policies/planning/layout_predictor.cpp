#include "policies/planning/layout_predictor.h"

#include <algorithm>
#include <utility>

namespace headway::policies {

using scenarios::Bytes;
using scenarios::Conditions;
using scenarios::Duration;
using scenarios::PlacedPaces;
using scenarios::Plan;

LayoutPredictor::LayoutPredictor(const scenarios::Job& job, const scenarios::Cluster& cluster,
                                 std::span<const Bytes> memory_of_gpu, const Plan& plan, Shared shared)
    : job_(job),
      memory_of_gpu_(memory_of_gpu),
      shared_(std::move(shared)),
      costs_(job, cluster, plan.layout, plan.gpu_of_rank),
      timer_(costs_.costs(plan), plan, cluster) {
    for (int replica = 0; replica < plan.layout.data; ++replica)
        for (int stage = 0; stage < plan.layout.pipeline; ++stage) {
            Bytes least = memory_of_gpu_[static_cast<std::size_t>(plan.gpu_of_worker(replica, stage, 0))];
            for (int member = 1; member < plan.layout.ranks_per_worker(); ++member)
                least = std::min(least,
                                 memory_of_gpu_[static_cast<std::size_t>(plan.gpu_of_worker(replica, stage, member))]);
            room_.push_back(least);
        }
}

void LayoutPredictor::set(const Conditions& conditions) {
    if (conditions_ && *conditions_ == conditions) return;
    conditions_ = conditions;
    // Delays of hops belong to one number of stages: of other pipelines they say nothing.
    if (conditions.hop_delay.size() == static_cast<std::size_t>(layout().pipeline - 1)) {
        paces_ = timer_.paces(conditions);
    } else {
        scenarios::Conditions without = conditions;
        without.hop_delay.clear();
        paces_ = timer_.paces(without);
    }
    classify();
}

void LayoutPredictor::classify() {
    const int replicas = layout().data, stages = layout().pipeline;
    const auto alike = [&](int a, int b) {
        for (int stage = 0; stage < stages; ++stage) {
            const auto x = static_cast<std::size_t>(a * stages + stage),
                       y = static_cast<std::size_t>(b * stages + stage);
            const auto first = paces_.members.begin();
            if (!std::equal(first + static_cast<std::ptrdiff_t>(paces_.first_member[x]),
                            first + static_cast<std::ptrdiff_t>(paces_.first_member[x + 1]),
                            first + static_cast<std::ptrdiff_t>(paces_.first_member[y]),
                            first + static_cast<std::ptrdiff_t>(paces_.first_member[y + 1]),
                            [](const PlacedPaces::Member& p, const PlacedPaces::Member& q) {
                                return p.type == q.type && p.pace == q.pace && p.forward == q.forward &&
                                       p.backward == q.backward;
                            }) ||
                room_[x] != room_[y])
                return false;
        }
        return true;
    };
    std::vector<int> first_of_class;
    class_of_replica_.assign(static_cast<std::size_t>(replicas), 0);
    for (int replica = 0; replica < replicas; ++replica) {
        const auto found = std::find_if(first_of_class.begin(), first_of_class.end(),
                                        [&](int other) { return alike(replica, other); });
        class_of_replica_[static_cast<std::size_t>(replica)] = static_cast<int>(found - first_of_class.begin());
        if (found == first_of_class.end()) first_of_class.push_back(replica);
    }
    classes_ = static_cast<int>(first_of_class.size());
}

void LayoutPredictor::put_times(const Plan& plan) {
    costs_.costs(plan, costs_of_plan_);
    timer_.times(costs_of_plan_, paces_, times_);
}

Duration LayoutPredictor::iteration(const Plan& plan) {
    put_times(plan);
    return scenarios::Evaluator(plan, job_.model.tied_embedding, shared_.programs).iteration_time(times_);
}

scenarios::Evaluation LayoutPredictor::evaluate(const Plan& plan) {
    put_times(plan);
    return scenarios::Evaluator(plan, job_.model.tied_embedding, shared_.programs).evaluate(times_);
}

std::vector<Duration> LayoutPredictor::replica_times(const Plan& plan, std::span<const int> micro_batches) {
    put_times(plan);
    Plan other;
    other.layout = plan.layout;
    other.micro_batches_of_replica.assign(micro_batches.begin(), micro_batches.end());
    return scenarios::Evaluator(other, job_.model.tied_embedding, shared_.programs).replica_times(times_);
}

std::pair<int, int> LayoutPredictor::counts_around(int micro_batches) const {
    const auto [below, above] = shared_.programs->around(micro_batches);
    if (above > below) return {below, above};
    const int unit = layout().schedule == scenarios::Schedule::kInterleaved ? layout().pipeline : 1;
    const int more = shared_.programs->around(below + std::max(1, below / 4 / unit) * unit).second;
    return {below, more};
}

void LayoutPredictor::prepare(const Plan& plan) {
    constexpr double kShares[] = {0.7, 0.85, 1.0, 1.1};
    constexpr int kFew = 32;
    const int unit = layout().schedule == scenarios::Schedule::kInterleaved ? layout().pipeline : 1;
    const auto& shares = plan.micro_batches_of_replica;
    for (const int share :
         {*std::min_element(shares.begin(), shares.end()), *std::max_element(shares.begin(), shares.end())})
        for (const double part : kShares) {
            const int count = static_cast<int>(part * share) / unit * unit;
            if (count < kFew) continue;
            const auto [below, above] = shared_.programs->around(count);
            shared_.programs->program(below, false);
            shared_.programs->program(above, false);
        }
}

double LayoutPredictor::worker_seconds(int worker, int virtual_stage, int layers) {
    const auto at = static_cast<std::size_t>(worker);
    double longest = 0.0;
    for (std::size_t m = paces_.first_member[at]; m < paces_.first_member[at + 1]; ++m) {
        const PlacedPaces::Member& member = paces_.members[m];
        const scenarios::VirtualStageCosts& cell = costs_.cell(member.type, virtual_stage, layers);
        const auto seconds = [&](const scenarios::Work& work) {
            return work.compute.s() / member.pace.compute + work.memory.s() / member.pace.memory + work.fixed.s() +
                   work.communication.s() / member.pace.fabric;
        };
        longest = std::max(longest, seconds(cell.forward) * member.forward + seconds(cell.backward) * member.backward);
    }
    return longest;
}

double LayoutPredictor::cell_seconds(int replica, int virtual_stage, int layers) {
    return worker_seconds(replica * layout().pipeline + virtual_stage % layout().pipeline, virtual_stage, layers);
}

double LayoutPredictor::plain_seconds(int replica, int stage, int layers) {
    return worker_seconds(replica * layout().pipeline + stage, layout().virtual_stages() > 2 ? 1 : 0, layers);
}

const scenarios::IterationCosts& LayoutPredictor::costs(const Plan& plan) {
    costs_.costs(plan, costs_of_plan_);
    return costs_of_plan_;
}

bool LayoutPredictor::can_be_scheduled(const Plan& plan) {
    const scenarios::Layout& layout = plan.layout;
    if (layout.schedule != scenarios::Schedule::kInterleaved) return layout.virtual_pipeline == 1;
    return layout.pipeline > 1 &&
           std::all_of(plan.micro_batches_of_replica.begin(), plan.micro_batches_of_replica.end(),
                       [&](int count) { return count % layout.pipeline == 0; });
}

bool LayoutPredictor::fits_memory(const Plan& plan) {
    return scenarios::fits_memory(*shared_.memory, memory_of_gpu_, plan);
}

bool LayoutPredictor::fits_memory(int replica, int stage, std::span<const int> layers, int micro_batches) {
    return shared_.memory->worker(stage, layers, micro_batches).total() <=
           room_[static_cast<std::size_t>(replica * layout().pipeline + stage)];
}

Bytes LayoutPredictor::memory(const Plan& plan) {
    Bytes most;
    for (int replica = 0; replica < plan.layout.data; ++replica)
        for (int stage = 0; stage < plan.layout.pipeline; ++stage)
            most = std::max(most, shared_.memory->worker(plan, replica, stage).total());
    return most;
}

}  // namespace headway::policies
