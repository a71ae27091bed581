#pragma once

#include <string>
#include <vector>

/// How the job is laid out on the cluster. A `Layout` is the degrees and switches; a `Plan` adds everything that a
/// policy may change at run time. Non-uniform is normal, uniform is the special case.
namespace headway::scenarios {

enum class Schedule { kGPipe, kOneForwardOneBackward, kInterleaved, kZeroBubble };
enum class Recompute { kNone, kSelective, kFull };

struct Layout {
    int tensor = 1;
    int pipeline = 1;
    int data = 1;
    int context = 1;
    int virtual_pipeline = 1;  ///< chunks a stage; more than 1 only with kInterleaved
    int zero_bubble_memory =
        1;  ///< zero-bubble: activations a stage may hold, in units of what 1F1B holds at most (1 or 2)
    bool sequence_parallel = false;
    Schedule schedule = Schedule::kOneForwardOneBackward;
    Recompute recompute = Recompute::kNone;
    bool distributed_optimizer = false;  ///< optimizer state sharded over the replicas (ZeRO-1)
    bool overlap_grad_reduce = false;    ///< gradient buckets are reduced while backward still runs
    bool overlap_param_gather = false;   ///< with distributed_optimizer: gathered behind the next forward
    bool overlap_tensor_comm = false;
    bool overlap_pipeline_comm = false;

    int world_size() const { return tensor * pipeline * data * context; }
    int ranks_per_worker() const { return tensor * context; }
    int virtual_stages() const { return pipeline * virtual_pipeline; }
    bool operator==(const Layout&) const = default;
};

/// The ranks of one replica and one pipeline stage are a *worker*: its tensor x context ranks work in lock step.
/// Rank order is Megatron's: tensor fastest, then context, then data, then pipeline (Narayanan et al. 2021;
/// Megatron-Core `parallel_state` default order tp-cp-ep-dp-pp).
struct Plan {
    Layout layout;
    std::vector<int> gpu_of_rank;  ///< [world_size], GPU numbers of the cluster, all distinct
    /// [data * virtual_stages], replica by replica; each replica's sum is the model's layers. Virtual stage k is chunk
    /// k / pipeline of stage k % pipeline. Replicas may split the model differently (a slow GPU in one of them): then a
    /// layer's gradient is reduced between the ranks that hold it, wherever they stand in their pipelines.
    std::vector<int> layers_of_cell;
    std::vector<int> micro_batches_of_replica;  ///< [data], sum = global_batch / micro_batch

    int rank(int tensor, int context, int data, int pipeline) const {
        return ((pipeline * layout.data + data) * layout.context + context) * layout.tensor + tensor;
    }
    int layers(int replica, int virtual_stage) const {
        return layers_of_cell[static_cast<std::size_t>(replica * layout.virtual_stages() + virtual_stage)];
    }
    /// Whether all replicas split the model alike.
    bool same_layers_everywhere() const;
    int workers() const { return layout.data * layout.pipeline; }
    int worker(int replica, int stage) const { return replica * layout.pipeline + stage; }
    /// GPU of member `member` (0..ranks_per_worker-1: tensor fastest, then context) of a worker.
    int gpu_of_worker(int replica, int stage, int member) const {
        return gpu_of_rank[static_cast<std::size_t>(
            rank(member % layout.tensor, member / layout.tensor, replica, stage))];
    }
    bool operator==(const Plan&) const = default;
};

/// `split` [virtual_stages] for each of `data` replicas: what Plan::layers_of_cell holds when all are alike.
std::vector<int> same_layers(const std::vector<int>& split, int data);

/// "t8 p8 d24 c1 v2 interleaved, recompute full": for reports.
std::string describe(const Layout& layout);

}  // namespace headway::scenarios
