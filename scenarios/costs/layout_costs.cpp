#include "scenarios/costs/layout_costs.h"

#include <algorithm>
#include <array>
#include <stdexcept>

#include "scenarios/costs/kernel.h"
#include "scenarios/costs/layer.h"
#include "scenarios/costs/measured_scales.h"
#include "scenarios/costs/parameters.h"
#include "scenarios/costs/virtual_stage.h"

namespace headway::scenarios {

namespace {

constexpr std::size_t kKinds = 4;  ///< of virtual stages: first, last, both or neither

bool same_shape(const GroupShape& a, const GroupShape& b) {
    return a.nodes == b.nodes && a.ranks_per_node == b.ranks_per_node && a.groups_per_node == b.groups_per_node;
}

double element_bytes_sent(const Job& job) {
    return static_cast<double>(bytes_of_element(job.precision));
}

MessageCosts message_costs(const RankContext& rank, const Placement& placement) {
    const SoftwareStack& stack = rank.job.stack;
    const double whole = rank.tokens() * rank.job.model.hidden * element_bytes_sent(rank.job);
    const bool sliced = rank.layout.sequence_parallel || stack.scatter_gather;
    MessageCosts costs;
    costs.bytes_per_rank = Bytes(static_cast<std::int64_t>(sliced ? whole / rank.layout.tensor : whole));
    costs.overhead = stack.host_message;
    if (stack.scatter_gather && !rank.layout.sequence_parallel) {
        costs.overhead +=
            collective_time(Collective::kAllGather, Bytes(static_cast<std::int64_t>(whole)), rank.tensor, rank.node);
    }
    costs.inside_node = costs.overhead + collective_time(Collective::kSendReceive, costs.bytes_per_rank,
                                                         {.ranks_per_node = 2}, rank.node);
    costs.across_nodes = costs.overhead;
    if (rank.node.nics > 0) {
        costs.across_nodes +=
            collective_time(Collective::kSendReceive, costs.bytes_per_rank, placement.message_across(), rank.node);
    }
    return costs;
}

/// The node as a stack's gradient collectives see it.
Node node_of_group(const Node& node, const GroupShape& shape, const SoftwareStack& stack) {
    Node seen = node;
    if (shape.nodes == 1) return seen;
    double nics = node.nics;
    if (stack.node_nics > 0.0 && shape.ranks_per_node > 1 && node.nics < node.gpus) {
        nics = std::min(nics, stack.node_nics);
        seen.network.efficiency *= nics / node.nics;
    }
    if (shape.groups_per_node > nics) seen.network.efficiency *= stack.shared_nic_efficiency;
    return seen;
}

FlopsPerSecond peak_of(const Job& job, const GpuType& gpu) {
    return job.precision == Precision::kFp8 ? gpu.peak_fp8 : working_peak(gpu, job.precision);
}

template <class T>
using ByKindAndLayers = std::array<std::vector<std::optional<T>>, kKinds>;

template <class T>
std::optional<T>& entry_of(ByKindAndLayers<T>& table, std::size_t kind, int layers, int usual) {
    auto& of_kind = table[kind];
    const auto at = static_cast<std::size_t>(layers);
    if (of_kind.size() <= at) of_kind.resize(static_cast<std::size_t>(std::max(layers, usual)) + 1);
    return of_kind[at];
}

}  // namespace

class LayoutCosts::Impl {
  public:
    Impl(const Job& job, const Cluster& cluster, const Layout& layout, std::vector<int> gpu_of_rank)
        : job_(job),
          cluster_(cluster),
          layout_(layout),
          gpu_of_rank_(std::move(gpu_of_rank)),
          placement_(layout_, gpu_of_rank_, cluster),
          type_of_group_(gpu_types_of_groups(cluster)) {
        kernels_.resize(
            type_of_group_.empty()
                ? 0
                : static_cast<std::size_t>(*std::max_element(type_of_group_.begin(), type_of_group_.end())) + 1);
        model_flops_ = headway::scenarios::model_flops(job);
        hardware_flops_ = headway::scenarios::hardware_flops(job, layout.recompute);
        gpu_scales_ = measured_scales(job, cluster).healthy;
        prepare();
    }

    void place(std::vector<int> gpu_of_rank) {
        const GroupShape tensor = placement_.tensor(), context = placement_.context();
        placement_ = Placement(layout_, gpu_of_rank, cluster_);
        gpu_of_rank_ = std::move(gpu_of_rank);
        if (!same_shape(tensor, placement_.tensor()) || !same_shape(context, placement_.context()))
            for (auto& kernels : kernels_) kernels.reset();
        prepare();
    }

    const VirtualStageCosts& cell(int type, int virtual_stage, int layers) {
        auto& kernels = kernels_.at(static_cast<std::size_t>(type));
        if (!kernels) throw std::invalid_argument("the layout uses no GPU of this type");
        auto& known = entry_of(kernels->cells, kind_of(virtual_stage), layers, job_.model.layers);
        if (!known) {
            known = virtual_stage_costs(rank_on(kernels->group), virtual_stage, layers, kernels->layer,
                                        kernels->embedding, kernels->head);
            if (job_.measured) known->optimizer = Work();
        }
        return *known;
    }

    void costs(const Plan& plan, IterationCosts& out) {
        const int stages = layout_.virtual_stages();
        if (plan.layout != layout_ || plan.gpu_of_rank != gpu_of_rank_ ||
            plan.layers_of_cell.size() != static_cast<std::size_t>(layout_.data * stages))
            throw std::invalid_argument("the plan has another layout or other GPUs than these costs");
        cells(plan, out);
        fullest_.assign(static_cast<std::size_t>(stages), 0);
        for (std::size_t cell = 0; cell < plan.layers_of_cell.size();)
            for (int& most : fullest_) most = std::max(most, plan.layers_of_cell[cell++]);
        out.gpu_scales = gpu_scales_;
        out.activation = activation_;
        out.stages.resize(static_cast<std::size_t>(layout_.pipeline));
        for (int stage = 0; stage < layout_.pipeline; ++stage)
            put_stage(stage, out.stages[static_cast<std::size_t>(stage)]);
        out.model_flops = model_flops_;
        out.hardware_flops = hardware_flops_;
        out.peak = peak_;
    }

    const Layout& layout() const { return layout_; }
    const std::vector<int>& gpu_of_rank() const { return gpu_of_rank_; }
    const Placement& placement() const { return placement_; }

  private:
    /// Of one GPU type.
    struct Kernels {
        int group = 0;  ///< node group of the cluster that stands for the type
        LayerCosts layer;
        EdgeCosts embedding, head;
        ByKindAndLayers<VirtualStageCosts> cells;
    };
    /// Of one chunk on a stage.
    struct ChunkTail {
        Duration reduce, gather;
        Bytes gradients, weights;
    };
    /// Of stages that lie alike.
    struct Tails {
        GroupShape shape;
        std::vector<int> groups;
        ByKindAndLayers<ChunkTail> chunks;
    };

    std::size_t kind_of(int virtual_stage) const {
        return (virtual_stage == 0 ? 1u : 0u) + (virtual_stage == layout_.virtual_stages() - 1 ? 2u : 0u);
    }
    const Node& node_of(int group) const { return cluster_.node_groups[static_cast<std::size_t>(group)].node; }
    RankContext rank_on(int group) const {
        return {job_, layout_, node_of(group), placement_.tensor(), placement_.context()};
    }

    /// What depends on where the ranks are.
    void prepare() {
        peak_ = FlopsPerSecond();
        std::vector<char> used(kernels_.size(), 0);
        for (const int group : placement_.node_groups()) {
            const auto type = static_cast<std::size_t>(type_of_group_[static_cast<std::size_t>(group)]);
            const double gpus = placement_.gpus_of_group()[static_cast<std::size_t>(group)];
            peak_.value += peak_of(job_, node_of(group).gpu).value * gpus;
            if (used[type]) continue;
            used[type] = 1;
            if (kernels_[type] && kernels_[type]->group == group) continue;
            const RankContext rank = rank_on(group);
            kernels_[type] = Kernels{group, layer_costs(rank), embedding_costs(rank), head_costs(rank), {}};
        }
        for (std::size_t type = 0; type < used.size(); ++type)
            if (!used[type]) kernels_[type].reset();
        prepare_messages();
        prepare_tied();
        tails_of_stage_.clear();
        for (int stage = 0; stage < layout_.pipeline; ++stage) {
            const GroupShape shape = placement_.data(stage);
            const std::vector<int>& groups = placement_.node_groups(stage);
            std::size_t i = 0;
            while (i < tails_.size() && (!same_shape(tails_[i].shape, shape) || tails_[i].groups != groups)) ++i;
            if (i == tails_.size()) tails_.push_back({shape, groups, {}});
            tails_of_stage_.push_back(i);
        }
    }

    void prepare_messages() {
        activation_ = MessageCosts();
        if (layout_.pipeline == 1) return;
        for (const int group : placement_.node_groups()) {
            const MessageCosts of_group = message_costs(rank_on(group), placement_);
            activation_.bytes_per_rank = of_group.bytes_per_rank;
            for (const auto part : {&MessageCosts::inside_node, &MessageCosts::across_nodes, &MessageCosts::overhead})
                activation_.*part = std::max(activation_.*part, of_group.*part);
        }
    }

    void prepare_tied() {
        tied_ = Duration();
        tied_bytes_ = Bytes();
        const std::int64_t tied = tied_parameters(job_, layout_, 0);
        if (tied == 0 || job_.measured) return;
        tied_bytes_ = Bytes(static_cast<std::int64_t>(static_cast<double>(tied) * job_.stack.gradient_bytes));
        for (const int stage : {0, layout_.pipeline - 1})
            for (const int group : placement_.node_groups(stage))
                tied_ = std::max(tied_,
                                 collective(Collective::kAllReduce, tied_bytes_, placement_.tied_embedding(), group));
    }

    Duration collective(Collective what, Bytes bytes, const GroupShape& shape, int group) const {
        return collective_time(what, bytes, shape, node_of_group(node_of(group), shape, job_.stack));
    }

    /// Reduction and gathering of `layers` layers of a virtual stage, on the slowest kind of node of its stage.
    const ChunkTail& tail(Tails& tails, int virtual_stage, int layers) {
        auto& known = entry_of(tails.chunks, kind_of(virtual_stage), layers, job_.model.layers);
        if (known) return *known;
        const auto count = static_cast<double>(rank_parameters(job_, layout_, virtual_stage, layers));
        ChunkTail chunk;
        chunk.gradients = Bytes(static_cast<std::int64_t>(count * job_.stack.gradient_bytes));
        const bool shared = layout_.distributed_optimizer;
        if (shared) chunk.weights = Bytes(static_cast<std::int64_t>(count * element_bytes_sent(job_)));
        const auto reduction = shared ? Collective::kReduceScatter : Collective::kAllReduce;
        for (const int group : tails.groups) {
            if (job_.measured) break;  // in the rest of the step
            chunk.reduce = std::max(chunk.reduce, collective(reduction, chunk.gradients, tails.shape, group));
            if (shared)
                chunk.gather =
                    std::max(chunk.gather, collective(Collective::kAllGather, chunk.weights, tails.shape, group));
        }
        known = chunk;
        return *known;
    }

    void cells(const Plan& plan, IterationCosts& out) {
        const int stages = layout_.virtual_stages();
        out.virtual_stages.resize(kernels_.size());
        for (auto& of_type : out.virtual_stages) of_type.clear();
        out.class_of_cell.clear();
        const auto add = [&](int virtual_stage, int layers) {
            for (std::size_t type = 0; type < kernels_.size(); ++type)
                if (kernels_[type])
                    out.virtual_stages[type].push_back(cell(static_cast<int>(type), virtual_stage, layers));
        };
        if (plan.same_layers_everywhere()) {
            for (int k = 0; k < stages; ++k) add(k, plan.layers(0, k));
            return;
        }
        int most = 0;
        for (const int layers : plan.layers_of_cell) most = std::max(most, layers);
        const std::size_t row = static_cast<std::size_t>(most) + 1;
        classes_.assign(kKinds * row, -1);
        int next = 0;
        for (int replica = 0; replica < layout_.data; ++replica)
            for (int k = 0; k < stages; ++k) {
                const int layers = plan.layers(replica, k);
                int& known = classes_[kind_of(k) * row + static_cast<std::size_t>(layers)];
                if (known < 0) {
                    known = next++;
                    add(k, layers);
                }
                out.class_of_cell.push_back(known);
            }
    }

    void put_stage(int stage, StageCosts& out) {
        const SoftwareStack& stack = job_.stack;
        Tails& tails = tails_[tails_of_stage_[static_cast<std::size_t>(stage)]];
        const auto chunks = static_cast<std::size_t>(layout_.virtual_pipeline);
        for (auto* times :
             {&out.reduce_gradients, &out.reduce_last_bucket, &out.gather_parameters, &out.gather_first_bucket})
            times->resize(chunks);
        out.reduce_bytes_per_rank.resize(chunks);
        out.gather_bytes_per_rank.resize(chunks);
        out.optimizer = Work();
        out.optimizer.fixed = job_.measured ? job_.measured->rest_of_step : stack.host_step;
        out.reduce_tied_embedding = Duration();
        out.tied_bytes_per_rank = Bytes();
        for (std::size_t chunk = 0; chunk < chunks; ++chunk) {
            const int k = static_cast<int>(chunk) * layout_.pipeline + stage;
            const ChunkTail& of_chunk = tail(tails, k, fullest_[static_cast<std::size_t>(k)]);
            out.reduce_gradients[chunk] = of_chunk.reduce;
            out.reduce_last_bucket[chunk] = of_chunk.reduce.scaled(stack.exposed_bucket);
            out.reduce_bytes_per_rank[chunk] = of_chunk.gradients;
            out.gather_parameters[chunk] = of_chunk.gather;
            out.gather_first_bucket[chunk] = of_chunk.gather.scaled(stack.exposed_bucket);
            out.gather_bytes_per_rank[chunk] = of_chunk.weights;
            if (kind_of(k) != 0) {
                out.reduce_tied_embedding = tied_;
                out.tied_bytes_per_rank = tied_bytes_;
            }
            // Collectives beside compute take SMs and memory bandwidth from it.
            if (layout_.overlap_grad_reduce)
                out.optimizer.communication += of_chunk.reduce.scaled(stack.overlap_interference);
            if (layout_.overlap_param_gather)
                out.optimizer.communication += of_chunk.gather.scaled(stack.overlap_interference);
        }
    }

    const Job& job_;
    const Cluster& cluster_;
    Layout layout_;
    std::vector<int> gpu_of_rank_;
    Placement placement_;
    std::vector<int> type_of_group_;               // [node groups]
    std::vector<std::optional<Kernels>> kernels_;  // [GPU types]
    std::vector<Tails> tails_;
    std::vector<std::size_t> tails_of_stage_;  // [pipeline]
    std::vector<GpuScale> gpu_scales_;
    MessageCosts activation_;
    Duration tied_;
    Bytes tied_bytes_;
    Flops model_flops_, hardware_flops_;
    FlopsPerSecond peak_;
    std::vector<int> fullest_, classes_;
};

LayoutCosts::LayoutCosts(const Job& job, const Cluster& cluster, const Layout& layout, std::vector<int> gpu_of_rank)
    : impl_(std::make_unique<Impl>(job, cluster, layout, std::move(gpu_of_rank))) {}
LayoutCosts::~LayoutCosts() = default;
LayoutCosts::LayoutCosts(LayoutCosts&&) noexcept = default;
LayoutCosts& LayoutCosts::operator=(LayoutCosts&&) noexcept = default;

void LayoutCosts::place(std::vector<int> gpu_of_rank) {
    impl_->place(std::move(gpu_of_rank));
}
const Layout& LayoutCosts::layout() const {
    return impl_->layout();
}
const std::vector<int>& LayoutCosts::gpu_of_rank() const {
    return impl_->gpu_of_rank();
}
const Placement& LayoutCosts::placement() const {
    return impl_->placement();
}
const VirtualStageCosts& LayoutCosts::cell(int type, int virtual_stage, int layers) {
    return impl_->cell(type, virtual_stage, layers);
}
IterationCosts LayoutCosts::costs(const Plan& plan) {
    IterationCosts out;
    impl_->costs(plan, out);
    return out;
}
void LayoutCosts::costs(const Plan& plan, IterationCosts& out) {
    impl_->costs(plan, out);
}

}  // namespace headway::scenarios
