#include "policies/planning/layout_space.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <map>
#include <numeric>

#include "scenarios/costs/kernel.h"

namespace headway::policies {

namespace {

using scenarios::Layout;
using scenarios::Recompute;
using scenarios::Schedule;

std::vector<int> divisors_up_to(int number, int most) {
    std::vector<int> divisors;
    for (int d = 1; d <= std::min(number, most); ++d)
        if (number % d == 0) divisors.push_back(d);
    return divisors;
}

/// Schedule, chunks and memory of zero-bubble go together.
struct ScheduleChoice {
    Schedule schedule;
    int chunks;
    int zero_bubble_memory;
};

/// Numbers of groups that are worth a look: all, and those within some shares of the fastest one's speed.
std::vector<int> fast_groups(const PlanningTask& task, const GpuGroups& groups) {
    std::vector<double> speeds;
    for (int group = 0; group < groups.groups(); ++group) {
        double slowest = std::numeric_limits<double>::infinity();
        for (int member = 0; member < groups.tensor(); ++member) {
            const int gpu = groups.gpu(group, member);
            const double pace =
                task.conditions.gpus.empty() ? 1.0 : task.conditions.gpus[static_cast<std::size_t>(gpu)].compute;
            slowest =
                std::min(slowest, scenarios::working_peak(task.cluster.gpu_type(gpu), task.job.precision).value * pace);
        }
        speeds.push_back(slowest * link_share(task, groups, group));
    }
    std::sort(speeds.rbegin(), speeds.rend());
    std::vector<int> counts = {groups.groups()};
    for (const double share : {0.25, 0.5, 0.75, 0.95}) {
        const auto slower =
            std::find_if(speeds.begin(), speeds.end(), [&](double speed) { return speed < share * speeds.front(); });
        counts.push_back(static_cast<int>(slower - speeds.begin()));
    }
    counts.erase(std::unique(counts.begin(), counts.end()), counts.end());
    return counts;
}

class SpaceWalk {
  public:
    SpaceWalk(const PlanningTask& task, bool across)
        : task_(task), open_(task.strategy.wildcards), fixed_(task.strategy.layout), across_(across) {}

    /// How far the most promising degrees came, when the walk ends without a point.
    enum class Reached { kNothing, kTensor, kContext, kPipeline, kSchedule };
    Reached reached() const { return reached_; }

    std::vector<LayoutPoint> walk() {
        const std::vector<int> usable = usable_gpus(task_);
        const int gpus = static_cast<int>(usable.size());
        for (const int tensor : tensors(gpus)) {
            reach(Reached::kTensor);
            const GpuGroups groups(task_.cluster, usable, tensor);
            fast_groups_[tensor] = fast_groups(task_, groups);
            for (const int context : contexts(groups.groups(), tensor)) {
                reach(Reached::kContext);
                const int workers = groups.groups() / context;
                for (const int pipeline : pipelines(workers)) {
                    reach(Reached::kPipeline);
                    for (const ScheduleChoice& choice : schedules(pipeline)) {
                        reach(Reached::kSchedule);
                        Layout layout = fixed_;
                        layout.tensor = tensor;
                        layout.context = context;
                        layout.pipeline = pipeline;
                        layout.schedule = choice.schedule;
                        layout.virtual_pipeline = choice.chunks;
                        layout.zero_bubble_memory = choice.zero_bubble_memory;
                        add_replicas(layout, most_replicas(groups, context * pipeline));
                    }
                }
            }
        }
        return std::move(points_);
    }

  private:
    void reach(Reached further) { reached_ = std::max(reached_, further); }

    std::vector<int> tensors(int gpus) const {
        const scenarios::Model& model = task_.job.model;
        int node = 1;
        for (const scenarios::NodeGroup& group : task_.cluster.node_groups) node = std::max(node, group.node.gpus);
        std::vector<int> candidates = {fixed_.tensor};
        if (open_.tensor) candidates = divisors_up_to(model.heads, gpus);
        std::erase_if(candidates, [&](int t) {
            return t > gpus || model.heads % t != 0 || model.kv_heads % t != 0 || model.hidden % t != 0 ||
                   model.ffn % t != 0 || (t > node) != across_;
        });
        return candidates;
    }

    std::vector<int> contexts(int groups, int tensor) const {
        const int sequence = task_.job.model.sequence_length;
        std::vector<int> candidates = {fixed_.context};
        if (open_.context) candidates = divisors_up_to(sequence, groups);
        std::erase_if(candidates, [&](int c) {
            return c > groups || sequence % c != 0 || (fixed_.sequence_parallel && sequence / c % tensor != 0);
        });
        return candidates;
    }

    std::vector<int> pipelines(int workers) const {
        const int most = std::min(task_.job.model.layers, workers);
        if (!open_.pipeline) return fixed_.pipeline <= most ? std::vector<int>{fixed_.pipeline} : std::vector<int>{};
        std::vector<int> all(static_cast<std::size_t>(std::max(0, most)));
        std::iota(all.begin(), all.end(), 1);
        return all;
    }

    std::vector<ScheduleChoice> schedules(int pipeline) const {
        std::vector<ScheduleChoice> choices;
        const auto add = [&](Schedule schedule) {
            if (schedule == Schedule::kInterleaved) {
                const int most = pipeline > 1 ? task_.job.model.layers / pipeline : 0;
                for (int v = 2; v <= most; ++v)
                    if (open_.virtual_pipeline || v == fixed_.virtual_pipeline) choices.push_back({schedule, v, 1});
                return;
            }
            if (!open_.virtual_pipeline && fixed_.virtual_pipeline > 1) return;
            choices.push_back({schedule, 1, 1});
            if (schedule != Schedule::kZeroBubble) return;
            if (!open_.schedule) choices.back().zero_bubble_memory = fixed_.zero_bubble_memory;
            if (open_.schedule) choices.push_back({schedule, 1, 2});
        };
        if (!open_.schedule) {
            add(fixed_.schedule);
        } else if (pipeline == 1) {
            add(Schedule::kOneForwardOneBackward);
        } else {
            for (const Schedule schedule :
                 {Schedule::kOneForwardOneBackward, Schedule::kInterleaved, Schedule::kZeroBubble, Schedule::kGPipe})
                add(schedule);
        }
        const std::size_t given = task_.strategy.layers_per_stage.size();
        std::erase_if(choices, [&](const ScheduleChoice& choice) {
            return given > 0 && static_cast<std::size_t>(pipeline * choice.chunks) != given;
        });
        return choices;
    }

    /// Replicas of so many groups that fit on all groups, or on the fast ones alone.
    std::vector<int> most_replicas(const GpuGroups& groups, int of_groups) const {
        std::vector<int> counts;
        for (const int usable : fast_groups_.at(groups.tensor()))
            if (usable >= of_groups) counts.push_back(usable / of_groups);
        counts.erase(std::unique(counts.begin(), counts.end()), counts.end());
        return counts;
    }

    void add_replicas(const Layout& layout, const std::vector<int>& most) {
        const int batch = task_.job.global_batch;
        const int unit = layout.schedule == Schedule::kInterleaved ? layout.pipeline : 1;
        const std::vector<int> sizes =
            open_.micro_batch ? divisors_up_to(batch, batch) : std::vector<int>{task_.job.micro_batch};
        for (const int micro_batch : sizes) {
            if (batch % micro_batch != 0) continue;
            for (const int data : replicas(batch / micro_batch, unit, most)) add(layout, data, micro_batch);
        }
    }

    std::vector<int> replicas(int micro_batches, int unit, const std::vector<int>& most) const {
        const std::size_t given = task_.strategy.micro_batches_per_replica.size();
        const int asked = given > 0 ? static_cast<int>(given) : open_.data ? 0 : fixed_.data;
        if (asked > 0) {
            const bool legal = !most.empty() && asked <= most.front() &&
                               (given > 0 || !even_shares(micro_batches, unit, asked).empty());
            return legal ? std::vector<int>{asked} : std::vector<int>{};
        }
        if (micro_batches % unit != 0) return {};
        const int units = micro_batches / unit;
        std::vector<int> counts;
        for (const int limit : most) {
            const int largest = std::min(limit, units);
            if (largest < 1) continue;
            const int share = (units + largest - 1) / largest;
            int even = largest;
            while (units % even != 0) --even;
            counts.insert(counts.end(), {largest, (units + share - 1) / share, even});
        }
        std::sort(counts.begin(), counts.end(), std::greater<>());
        counts.erase(std::unique(counts.begin(), counts.end()), counts.end());
        return counts;
    }

    void add(Layout layout, int data, int micro_batch) {
        layout.data = data;
        if (!open_.recompute) {
            points_.push_back({layout, micro_batch});
            return;
        }
        for (const Recompute recompute : {Recompute::kNone, Recompute::kSelective, Recompute::kFull}) {
            if (recompute == Recompute::kSelective && task_.job.stack.flash_attention) continue;
            layout.recompute = recompute;
            points_.push_back({layout, micro_batch});
        }
    }

    const PlanningTask& task_;
    const scenarios::Wildcards open_;
    const Layout fixed_;
    const bool across_;
    Reached reached_ = Reached::kNothing;
    std::map<int, std::vector<int>> fast_groups_;  // by tensor degree, all groups first
    std::vector<LayoutPoint> points_;
};

}  // namespace

scenarios::Strategy opened(scenarios::Strategy strategy) {
    const bool micro_batch = strategy.wildcards.micro_batch;
    strategy.wildcards = {.tensor = true,
                          .pipeline = true,
                          .data = true,
                          .context = true,
                          .virtual_pipeline = true,
                          .schedule = true,
                          .recompute = true,
                          .micro_batch = micro_batch};
    strategy.layers_per_stage.clear();
    strategy.micro_batches_per_replica.clear();
    return strategy;
}

GpuGroups::GpuGroups(const scenarios::Cluster& cluster, const std::vector<int>& usable, int tensor) : tensor_(tensor) {
    std::vector<int> filling;  // whole nodes of a group wider than one
    for (std::size_t begin = 0; begin < usable.size();) {
        const int node = cluster.node_of(usable[begin]);
        std::size_t end = begin;
        while (end < usable.size() && cluster.node_of(usable[end]) == node) ++end;
        const auto first = usable.begin() + static_cast<std::ptrdiff_t>(begin);
        const int here = static_cast<int>(end - begin), size = cluster.node(node).gpus;
        begin = end;
        if (tensor <= size) {
            gpus_.insert(gpus_.end(), first, first + here / tensor * tensor);
        } else if (here == size && tensor % size == 0) {
            filling.insert(filling.end(), first, first + here);
            if (static_cast<int>(filling.size()) == tensor) {
                gpus_.insert(gpus_.end(), filling.begin(), filling.end());
                filling.clear();
            } else if (static_cast<int>(filling.size()) > tensor) {
                filling.assign(first, first + here);  // nodes of another size: begin again
            }
        }
    }
}

double link_share(const PlanningTask& task, const GpuGroups& groups, int group) {
    const scenarios::Conditions& now = task.conditions;
    if (now.node_network.empty() && now.rack_uplink.empty() && now.node_delay.empty()) return 1.0;
    double share = 1.0;
    bool delayed = false;
    for (int member = 0; member < groups.tensor(); ++member) {
        const int node = task.cluster.node_of(groups.gpu(group, member));
        const auto n = static_cast<std::size_t>(node);
        if (!now.node_network.empty()) share = std::min(share, now.node_network[n]);
        if (!now.rack_uplink.empty())
            share = std::min(share, now.rack_uplink[static_cast<std::size_t>(task.cluster.rack_of_node(node))]);
        delayed = delayed || (!now.node_delay.empty() && now.node_delay[n] > scenarios::Duration());
    }
    return delayed ? share / 2.0 : share;
}

std::vector<int> usable_gpus(const PlanningTask& task) {
    std::vector<int> usable = task.strategy.placement;
    if (usable.empty()) {
        usable.resize(static_cast<std::size_t>(task.cluster.gpus() - task.strategy.idle_gpus));
        std::iota(usable.begin(), usable.end(), 0);
    }
    std::sort(usable.begin(), usable.end());
    std::erase_if(usable, [&](int gpu) {
        return std::binary_search(task.unavailable_gpus.begin(), task.unavailable_gpus.end(), gpu);
    });
    return usable;
}

std::vector<LayoutPoint> layout_points(const PlanningTask& task, bool tensor_across_nodes) {
    return SpaceWalk(task, tensor_across_nodes).walk();
}

std::string why_no_layout(const PlanningTask& task) {
    SpaceWalk inside(task, false), across(task, true);
    inside.walk();
    across.walk();
    const auto number = [](int value) { return std::to_string(value); };
    const Layout& layout = task.strategy.layout;
    const scenarios::Wildcards& open = task.strategy.wildcards;
    const std::string gpus = number(static_cast<int>(usable_gpus(task).size())) + " usable GPUs";
    switch (std::max(inside.reached(), across.reached())) {
        case SpaceWalk::Reached::kNothing:
            return "no layout: " + (open.tensor ? "no tensor degree" : "tensor " + number(layout.tensor)) +
                   " divides the model's heads, kv_heads, hidden and ffn and fits the " + gpus;
        case SpaceWalk::Reached::kTensor:
            return "no layout: " + (open.context ? "no context degree" : "context " + number(layout.context)) +
                   " divides the sequence of " + number(task.job.model.sequence_length) + " tokens and fits the " +
                   gpus + " in whole tensor groups";
        case SpaceWalk::Reached::kContext:
            return "no layout: pipeline " + number(layout.pipeline) + " does not fit the model's " +
                   number(task.job.model.layers) + " layers and the " + gpus;
        case SpaceWalk::Reached::kPipeline:
            return "no layout: no schedule with the given virtual_pipeline and layers_per_stage fits the model's " +
                   number(task.job.model.layers) + " layers";
        case SpaceWalk::Reached::kSchedule:
            break;
    }
    return "no layout: the global batch of " + number(task.job.global_batch) +
           (open.micro_batch ? std::string() : " in micro-batches of " + number(task.job.micro_batch)) +
           " cannot be shared by " +
           (open.data && task.strategy.micro_batches_per_replica.empty()
                ? "any number of replicas"
                : number(task.strategy.micro_batches_per_replica.empty()
                             ? layout.data
                             : static_cast<int>(task.strategy.micro_batches_per_replica.size())) +
                      " replicas") +
           " on the " + gpus + " (each needs a micro-batch, with the interleaved schedule a multiple of the stages)";
}

std::vector<int> even_shares(int micro_batches, int unit, int replicas) {
    if (unit < 1 || replicas < 1 || micro_batches % unit != 0 || micro_batches / unit < replicas) return {};
    const int units = micro_batches / unit;
    std::vector<int> shares;
    for (int r = 0; r < replicas; ++r) shares.push_back((units / replicas + (r < units % replicas ? 1 : 0)) * unit);
    return shares;
}

scenarios::Job job_of(const PlanningTask& task, const LayoutPoint& point) {
    scenarios::Job job = task.job;
    job.micro_batch = point.micro_batch;
    return job;
}

scenarios::Plan even_plan(const PlanningTask& task, const LayoutPoint& point, const GpuGroups& groups, GpuOrder order,
                          const std::vector<int>& group_order) {
    const Layout& layout = point.layout;
    scenarios::Plan plan;
    plan.layout = layout;
    plan.gpu_of_rank.resize(static_cast<std::size_t>(layout.world_size()));
    for (int stage = 0; stage < layout.pipeline; ++stage)
        for (int replica = 0; replica < layout.data; ++replica) {
            const int in_replica = order == GpuOrder::kEndsTogether ? (stage + 1) % layout.pipeline : stage;
            const int worker = order == GpuOrder::kStagesTogether ? stage * layout.data + replica
                                                                  : replica * layout.pipeline + in_replica;
            for (int context = 0; context < layout.context; ++context) {
                const int place = worker * layout.context + context;
                const int group = group_order.empty() ? place : group_order[static_cast<std::size_t>(place)];
                for (int tensor = 0; tensor < layout.tensor; ++tensor)
                    plan.gpu_of_rank[static_cast<std::size_t>(plan.rank(tensor, context, replica, stage))] =
                        groups.gpu(group, tensor);
            }
        }
    const std::vector<int>& layers = task.strategy.layers_per_stage;
    plan.layers_of_cell = scenarios::same_layers(
        layers.empty() ? scenarios::even_layers(task.job.model.layers, layout.virtual_stages()) : layers, layout.data);
    const std::vector<int>& shares = task.strategy.micro_batches_per_replica;
    const int unit = layout.schedule == Schedule::kInterleaved ? layout.pipeline : 1;
    plan.micro_batches_of_replica =
        shares.empty() ? even_shares(task.job.global_batch / point.micro_batch, unit, layout.data) : shares;
    return plan;
}

}  // namespace headway::policies
