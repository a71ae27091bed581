#pragma once

#include <cstdint>
#include <vector>

#include "scenarios/language/job.h"
#include "scenarios/language/plan.h"

/// Who owns which slice of which weight and optimizer state under a plan, to the element.
namespace headway::scenarios {

/// The model in blocks. A block is held whole, or split over the tensor ranks, and moves with its layer.
enum class BlockKind : std::uint8_t {
    kEmbedding,        ///< vocabulary rows, split; first stage, and the last too where it is tied to the logits
    kPositions,        ///< learned positions, whole; first stage
    kLayerSplit,       ///< matrices of a layer and biases of its column-parallel parts, split
    kLayerReplicated,  ///< norms of a layer and biases of its row-parallel parts, whole
    kFinalNorm,        ///< whole; last stage
    kHead,             ///< logits rows that are not tied to the embedding, split; last stage
};

/// `layer` is -1 outside the layers.
struct Block {
    BlockKind kind = BlockKind::kEmbedding;
    int layer = -1;
    bool operator==(const Block&) const = default;
};

constexpr bool is_split(BlockKind kind) {
    return kind == BlockKind::kEmbedding || kind == BlockKind::kLayerSplit || kind == BlockKind::kHead;
}

/// Blocks that have elements, in model order.
std::vector<Block> blocks_of(const Model& model);

/// Elements of a block under a layout. Only embedding and head depend on the layout: their rows are padded
/// (costs/parameters.h), and the padding stands at the end.
///
/// Canonical order of elements. Embedding and head: row by row. Positions, norms, row biases: as stored. The split part
/// of a layer: `split_units` units, one after the other, each the next equal part of every tensor in `split_tensors`
/// along the dimension that tensor parallelism cuts. So the shard of any tensor rank is one interval under every degree
/// that divides heads, kv_heads and ffn, and shards of two degrees meet in one interval.
std::int64_t block_elements(const Job& job, const Layout& layout, BlockKind kind);

/// gcd of heads, kv_heads and ffn: the finest cut that leaves heads whole.
int split_units(const Model& model);

/// One tensor of a layer's split part.
struct SplitTensor {
    const char* name = "";
    std::int64_t rows_of_unit = 0;  ///< heads times head_dim, or inner width of the MLP, that a unit has
    std::int64_t row = 0;           ///< elements a row: hidden, or 1 for a bias
    bool operator==(const SplitTensor&) const = default;
};
/// In the order in which a unit holds them. Rows of the projection and of the MLP's output are those of its transpose.
std::vector<SplitTensor> split_tensors(const Model& model);

/// Elements [begin, end) of a block.
struct Interval {
    std::int64_t begin = 0;
    std::int64_t end = 0;
    std::int64_t size() const { return end - begin; }
    bool empty() const { return begin >= end; }
    bool operator==(const Interval&) const = default;
};

/// Part `index` of `parts` of an interval: as long as the others, the last ones shorter where it does not divide.
Interval part_of(const Interval& whole, std::int64_t index, std::int64_t parts);

enum class StateKind : std::uint8_t { kWeights, kOptimizer };

constexpr std::int64_t kStateOptimizerBytes = 12;  ///< fp32 master weight and two Adam moments

/// Weights as the job computes with them; fp8 copies are cast anew, not moved.
constexpr std::int64_t bytes_of_element(StateKind kind, Precision precision) {
    return kind == StateKind::kWeights ? bytes_of_element(precision) : kStateOptimizerBytes;
}

/// Ownership under one plan. What a rank owns of one block and kind is one interval.
///
/// Weights: each rank of a stage holds its tensor shard of every split block of the stage, and the others whole.
/// Optimizer state lies as the weights do; with `distributed_optimizer` each block's part of a tensor rank is divided
/// evenly over the ranks that hold the same part (replicas x context ranks, data slower than context), as Megatron-Core
/// divides each gradient bucket over the data-parallel group: here a bucket is a block. So a layer that moves takes its
/// optimizer state along and no other layer's shards shift, and replicas that split the model differently need no
/// other rule: shard d x context + c of a layer lies with rank c of whichever worker holds it in replica d. A tied
/// embedding has two copies, on the first and on the last stage, each with an optimizer state of its own.
///
/// Keeps no reference to plan or job. Throws std::invalid_argument for a plan that does not fit the job.
class Ownership {
  public:
    Ownership(const Job& job, const Plan& plan);

    const std::vector<Block>& blocks() const { return blocks_; }
    std::int64_t elements(BlockKind kind) const { return elements_[static_cast<std::size_t>(kind)]; }
    int world_size() const { return layout_.world_size(); }
    /// Whether `replica`'s worker of `stage` holds the block.
    bool holds(int replica, int stage, const Block& block) const;
    /// Empty where the rank does not hold the block.
    Interval owned(int rank, const Block& block, StateKind kind) const;
    /// Interval of any holder with this tensor rank and this place among data x context ranks.
    Interval slice(BlockKind kind, StateKind state, int tensor, int shard) const;
    /// Stage of a layer in a replica.
    int stage_of_layer(int replica, int layer) const {
        return stage_of_layer_[static_cast<std::size_t>(replica * layers_ + layer)];
    }

  private:
    Layout layout_;
    int layers_ = 0;
    bool tied_ = false;
    std::vector<Block> blocks_;
    std::vector<std::int64_t> elements_;  ///< [BlockKind]
    std::vector<int> stage_of_layer_;     ///< [data * layers]
};

/// Stages that hold a block that is no layer's: one, or two for a tied embedding. Empty for a tied head.
std::vector<int> stages_of_edge_block(const Model& model, const Layout& layout, BlockKind kind);

/// [data * layers], or [layers] of the first replica when all are alike and `once`.
std::vector<int> stages_of_layers(const Job& job, const Plan& plan, bool once = false);

}  // namespace headway::scenarios
