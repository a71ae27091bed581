#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "scenarios/language/job.h"
#include "scenarios/language/plan.h"
#include "scenarios/transfer/link_loads.h"
#include "scenarios/transfer/ownership.h"

/// The walk behind switch_costs.h and transfer_schedule.h: which GPU lacks what under the new plan, and who sends it.
namespace headway::scenarios {

/// One slice that one GPU sends to another.
struct Move {
    int from_gpu = 0;  ///< or kFromCheckpoint
    int to_gpu = 0;
    StateKind what = StateKind::kWeights;
    Block block;
    Interval elements;
    Precision precision = Precision::kBf16;
    Bytes bytes() const { return Bytes(elements.size() * bytes_of_element(what, precision)); }
    bool operator==(const Move&) const = default;
};

/// A plan with what the walk looks up in it again and again.
class PlacedPlan {
  public:
    /// Keeps references to job and plan.
    PlacedPlan(const Job& job, const LinkMap& map, const Plan& plan);

    const Job& job() const { return job_; }
    const Plan& plan() const { return plan_; }
    const Layout& layout() const { return plan_.layout; }
    bool uniform() const { return uniform_; }
    int stage_of_layer(int replica, int layer) const {
        return stage_of_layer_[static_cast<std::size_t>(uniform_ ? layer : replica * layers_ + layer)];
    }
    int gpu(int tensor, int context, int replica, int stage) const {
        return plan_.gpu_of_rank[static_cast<std::size_t>(plan_.rank(tensor, context, replica, stage))];
    }
    std::int64_t elements(BlockKind kind) const { return elements_[static_cast<std::size_t>(kind)]; }
    std::int64_t shards() const { return shards_; }  ///< data x context
    /// Rank of a GPU, or -1.
    int rank_of(int gpu) const { return rank_of_gpu_[static_cast<std::size_t>(gpu)]; }
    int replica_of_rank(int rank) const { return rank / layout().ranks_per_worker() % layout().data; }
    int stage_of_rank(int rank) const { return rank / layout().ranks_per_worker() / layout().data; }
    /// Each tensor group occupies neighbouring GPUs of one node, in order, from a multiple of its size on.
    bool tensor_groups_aligned() const { return aligned_; }

  private:
    const Job& job_;
    const Plan& plan_;
    int layers_ = 0;
    bool uniform_ = true;
    bool aligned_ = true;
    std::int64_t shards_ = 1;
    std::vector<int> stage_of_layer_;  ///< [layers], or [data * layers]
    std::vector<std::int64_t> elements_;
    std::vector<int> rank_of_gpu_;
};

/// Finds the moves from one plan to another: every element that a GPU lacks once, from the nearest GPU that has it
/// (same node, same rack, elsewhere), among equally near ones from the one that has least to send of those looked at.
/// Layers with the same holders under both plans are walked once.
class Difference {
  public:
    /// `lost` GPUs own nothing. All references are kept.
    Difference(const LinkMap& map, const PlacedPlan& from, const PlacedPlan& to, std::span<const int> lost = {});

    /// Adds all transfers to `loads`; with `moves`, also lists them one by one. Without, tensor groups that move as one
    /// are walked once: see LinkLoads::stand_for.
    void walk(LinkLoads& loads, std::vector<Move>* moves = nullptr);

  private:
    /// Blocks with the same holders under both plans.
    struct BlockClass {
        BlockKind kind = BlockKind::kEmbedding;
        std::span<const int> layers;  ///< empty: the block is no layer's
        int from_stages[2] = {0, 0};  ///< that hold it when it is no layer's
        int to_stages[2] = {0, 0};
        int from_copies = 1;
        int to_copies = 1;
        int count() const { return layers.empty() ? 1 : static_cast<int>(layers.size()); }
    };
    /// How a plan cuts a block: `tensor` columns, each in `shards`. Divisions are done once a class.
    struct Cuts {
        std::int64_t elements = 0;
        std::int64_t column = 0;  ///< of the first column; the last may be shorter
        std::int64_t shards = 1;  ///< of optimizer state
        std::int64_t shard = 0;   ///< of a column of full length

        Interval column_of(std::int64_t tensor) const {
            return {std::min(tensor * column, elements), std::min((tensor + 1) * column, elements)};
        }
        std::int64_t shard_of(const Interval& of) const {
            return of.size() == column ? shard : (of.size() + shards - 1) / shards;
        }
    };
    struct Holder {
        int gpu = 0;
        int next_on_node = -1;
        int next_in_rack = -1;
    };
    /// The holders of one column: a tensor rank's part of a split block, or all of a block that is held whole.
    struct Column {
        std::vector<int> all;
        std::size_t cursor = 0;
        int last_served = -1;  ///< GPU that was served last; its next slice comes from the same sender
        int last_sender = kFromCheckpoint;
    };

    void group_layers();
    void walk_class(const BlockClass& blocks);
    void receive(const BlockClass& blocks, int gpu, int tensor, std::int64_t shard);
    void need(const BlockClass& blocks, int gpu, StateKind kind, Interval elements);
    void send(const BlockClass& blocks, int from, int gpu, StateKind kind, const Interval& elements);
    int stage_of(const PlacedPlan& side, const BlockClass& blocks, int replica, int copy) const;
    bool held_by(const BlockClass& blocks, int replica, int stage) const;  ///< under the old plan
    static Cuts cuts_of(const PlacedPlan& side, BlockKind kind);
    static Interval slice(const Cuts& cuts, StateKind state, int tensor, std::int64_t shard);
    void find_holders(const BlockClass& blocks);
    int nearest_holder(const BlockClass& blocks, int column, int gpu);
    int choose_holder(std::size_t column, int gpu);
    int nearest_of_shard(const BlockClass& blocks, int column, std::int64_t shard, int gpu) const;
    int distance(int a, int b) const;
    bool is_lost(int gpu) const { return !lost_.empty() && lost_[static_cast<std::size_t>(gpu)] != 0; }
    std::int64_t sent(int gpu) const;

    const LinkMap& map_;
    const PlacedPlan& from_;
    const PlacedPlan& to_;
    std::vector<char> lost_;          ///< [GPUs], empty when none is
    bool comparable_ = false;         ///< equal degrees: a worker that stays where it was lacks nothing of its layers
    std::vector<char> worker_stays_;  ///< [data * pipeline], when comparable
    std::vector<int> layer_order_;    ///< layers, class by class
    std::vector<std::size_t> class_ends_;
    bool folded_ = false;

    LinkLoads* loads_ = nullptr;
    std::vector<Move>* moves_ = nullptr;
    // Of the class that is walked; the holders are found when first needed.
    Cuts from_cuts_, to_cuts_;
    bool holders_known_ = false;
    std::vector<Holder> holders_;
    std::vector<Column> columns_;
    std::vector<int> on_node_;        ///< [columns * nodes] first holder, or -1
    std::vector<int> first_in_rack_;  ///< [columns * racks]
    std::vector<int> next_in_rack_;   ///< [columns * racks] whose turn it is
};

}  // namespace headway::scenarios
