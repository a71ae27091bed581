#include <map>
#include <optional>
#include <stdexcept>

#include "scenarios/timing/task_graph.h"

namespace headway::scenarios {

namespace {

constexpr std::int32_t kAllReplicas = -1;

/// Joins replicas into an iteration. `ends_[r][s]` is what worker (r, s) has done so far.
class IterationGraphBuilder {
  public:
    IterationGraphBuilder(const Layout& layout, bool tied_embedding, std::span<const int> replicas,
                          std::span<const int> micro_batches)
        : layout_(layout),
          replicas_(replicas),
          micro_batches_(micro_batches),
          stages_(static_cast<std::size_t>(layout.pipeline)) {
        if (replicas.size() != micro_batches.size() || replicas.empty())
            throw std::invalid_argument("one count of micro-batches for each replica");
        replicated_ = layout.data * layout.context > 1;
        tied_ = tied_embedding && layout.pipeline > 1;
        gathers_ = replicated_ && layout.distributed_optimizer;
    }

    IterationGraph build() {
        if (gathers_ && layout_.overlap_param_gather) gather_before();
        for (std::size_t r = 0; r < replicas_.size(); ++r) append_replica(r);
        const bool tied_first = layout_.distributed_optimizer && !layout_.overlap_grad_reduce;
        if (tied_ && tied_first) reduce_tied();
        if (replicated_) reduce();
        if (tied_ && !tied_first) reduce_tied();
        update();
        return std::move(out_);
    }

  private:
    std::size_t cell(std::size_t stage, int chunk) const {
        return stage * static_cast<std::size_t>(layout_.virtual_pipeline) + static_cast<std::size_t>(chunk);
    }
    static Task task(TaskKind kind, std::size_t stage, int chunk, int replica) {
        return {kind, static_cast<std::int16_t>(chunk), static_cast<std::int32_t>(stage), replica, 0};
    }

    void gather_before() {
        for (std::size_t s = 0; s < stages_; ++s) {
            std::vector<std::int32_t> before;
            for (int c = 0; c < layout_.virtual_pipeline; ++c) {
                const std::int32_t first = out_.graph.add(task(TaskKind::kGatherFirst, s, c, kAllReplicas), before);
                before = {out_.graph.add(task(TaskKind::kGather, s, c, kAllReplicas), {first})};
                gather_first_.push_back(first);
                gather_.push_back(before.front());
            }
        }
    }

    /// Copies the graph of a replica with `micro_batches_[r]` micro-batches; parameters are gathered once for all
    /// replicas.
    void append_replica(std::size_t r) {
        std::optional<ReplicaGraph>& replica = graphs_[micro_batches_[r]];
        if (!replica) replica = replica_graph(layout_, micro_batches_[r]);
        const TaskGraph& graph = replica->graph;
        std::vector<std::int32_t> number(static_cast<std::size_t>(graph.size()));
        std::vector<std::int32_t> predecessors;
        for (std::int32_t i = 0; i < graph.size(); ++i) {
            Task copy = graph.task(i);
            std::int32_t& mine = number[static_cast<std::size_t>(i)];
            if (copy.kind == TaskKind::kGatherFirst || copy.kind == TaskKind::kGather) {
                const auto& shared = copy.kind == TaskKind::kGather ? gather_ : gather_first_;
                mine = shared[cell(static_cast<std::size_t>(copy.stage), copy.chunk)];
                continue;
            }
            copy.replica = replicas_[r];
            predecessors.clear();
            for (const std::int32_t p : graph.predecessors(i))
                predecessors.push_back(number[static_cast<std::size_t>(p)]);
            mine = out_.graph.add(copy, predecessors);
        }
        const auto renumbered = [&](std::vector<std::int32_t> tasks) {
            for (std::int32_t& t : tasks)
                if (t >= 0) t = number[static_cast<std::size_t>(t)];
            return tasks;
        };
        ends_.push_back(renumbered(replica->last_of_stage));
        gradients_.push_back(renumbered(replica->gradient_of_chunk));
        buckets_.push_back(renumbered(replica->buckets_of_chunk));
    }

    void reduce_tied() {
        for (std::size_t r = 0; r < replicas_.size(); ++r) {
            std::int32_t& first = ends_[r].front();
            std::int32_t& last = ends_[r].back();
            first = last = out_.graph.add(task(TaskKind::kReduceTied, 0, 0, replicas_[r]), {first, last});
        }
    }

    void reduce() {
        for (std::size_t s = 0; s < stages_; ++s) {
            std::vector<std::int32_t> after;
            if (layout_.overlap_grad_reduce) {
                for (int c = layout_.virtual_pipeline - 1; c >= 0;
                     --c) {  // in the order in which backwards complete chunks
                    for (const auto& buckets : buckets_) after.push_back(buckets[cell(s, c)]);
                    after = {out_.graph.add(task(TaskKind::kReduceBuckets, s, c, kAllReplicas), after)};
                    for (const auto& gradients : gradients_) after.push_back(gradients[cell(s, c)]);
                    after = {out_.graph.add(task(TaskKind::kReduce, s, c, kAllReplicas), after)};
                }
                for (auto& ends : ends_)
                    ends[s] = out_.graph.add(task(TaskKind::kJoin, s, 0, kAllReplicas), {ends[s], after.front()});
            } else {
                for (const auto& ends : ends_) after.push_back(ends[s]);
                for (int c = 0; c < layout_.virtual_pipeline; ++c)
                    after = {out_.graph.add(task(TaskKind::kReduce, s, c, kAllReplicas), after)};
                for (auto& ends : ends_) ends[s] = after.front();
            }
        }
    }

    void update() {
        std::vector<std::int32_t> all;
        for (const auto& ends : ends_) all.insert(all.end(), ends.begin(), ends.end());
        const std::int32_t norm = out_.graph.add(task(TaskKind::kJoin, 0, 0, kAllReplicas), all);
        for (std::size_t r = 0; r < replicas_.size(); ++r)
            for (std::size_t s = 0; s < stages_; ++s)
                ends_[r][s] = out_.graph.add(task(TaskKind::kOptimizer, s, 0, replicas_[r]), {norm});
        if (gathers_ && !layout_.overlap_param_gather) {
            for (std::size_t s = 0; s < stages_; ++s) {
                std::vector<std::int32_t> after;
                for (const auto& ends : ends_) after.push_back(ends[s]);
                for (int c = 0; c < layout_.virtual_pipeline; ++c)
                    after = {out_.graph.add(task(TaskKind::kGather, s, c, kAllReplicas), after)};
                for (auto& ends : ends_) ends[s] = after.front();
            }
        }
        for (const auto& ends : ends_) out_.last_of_worker.insert(out_.last_of_worker.end(), ends.begin(), ends.end());
    }

    const Layout& layout_;
    const std::span<const int> replicas_;
    const std::span<const int> micro_batches_;
    const std::size_t stages_;
    bool replicated_ = false, tied_ = false, gathers_ = false;
    std::map<int, std::optional<ReplicaGraph>> graphs_;                  // by count of micro-batches
    std::vector<std::int32_t> gather_first_, gather_;                    // [cell of a replica]
    std::vector<std::vector<std::int32_t>> ends_, gradients_, buckets_;  // [replica given][stage or cell]
    IterationGraph out_;
};

}  // namespace

IterationGraph iteration_graph(const Layout& layout, bool tied_embedding, std::span<const int> replicas,
                               std::span<const int> micro_batches) {
    return IterationGraphBuilder(layout, tied_embedding, replicas, micro_batches).build();
}

}  // namespace headway::scenarios
