#include "scenarios/transfer/difference.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <numeric>

namespace headway::scenarios {

namespace {

Interval common_part(const Interval& a, const Interval& b) {
    return {std::max(a.begin, b.begin), std::min(a.end, b.end)};
}

bool equal_degrees(const Layout& a, const Layout& b) {
    return a.tensor == b.tensor && a.pipeline == b.pipeline && a.data == b.data && a.context == b.context &&
           a.distributed_optimizer == b.distributed_optimizer;
}

std::vector<char> workers_that_stay(const Plan& from, const Plan& to) {
    const Layout& layout = to.layout;
    const auto members = static_cast<std::ptrdiff_t>(layout.ranks_per_worker());
    std::vector<char> stays(static_cast<std::size_t>(layout.data * layout.pipeline));
    for (int replica = 0; replica < layout.data; ++replica)
        for (int stage = 0; stage < layout.pipeline; ++stage) {
            const std::ptrdiff_t first = to.rank(0, 0, replica, stage);
            const auto was = from.gpu_of_rank.begin() + first, is = to.gpu_of_rank.begin() + first;
            stays[static_cast<std::size_t>(to.worker(replica, stage))] = std::equal(was, was + members, is);
        }
    return stays;
}

}  // namespace

Difference::Difference(const LinkMap& map, const PlacedPlan& from, const PlacedPlan& to, std::span<const int> lost)
    : map_(map), from_(from), to_(to) {
    if (!lost.empty()) lost_.assign(static_cast<std::size_t>(map.gpus()), 0);
    for (const int gpu : lost) lost_[static_cast<std::size_t>(gpu)] = 1;
    comparable_ = lost.empty() && equal_degrees(from.layout(), to.layout());
    if (comparable_) worker_stays_ = workers_that_stay(from.plan(), to.plan());
    folded_ = lost.empty() && from.layout().tensor == to.layout().tensor && from.tensor_groups_aligned() &&
              to.tensor_groups_aligned();
    group_layers();
}

/// Layers of one class stand in the same stages of every replica, under both plans.
void Difference::group_layers() {
    const int layers = from_.job().model.layers;
    const int replicas_from = from_.uniform() ? 1 : from_.layout().data;
    const int replicas_to = to_.uniform() ? 1 : to_.layout().data;
    std::vector<int> key(static_cast<std::size_t>(layers), 0);
    if (replicas_from == 1 && replicas_to == 1) {
        for (int layer = 0; layer < layers; ++layer)
            key[static_cast<std::size_t>(layer)] =
                from_.stage_of_layer(0, layer) * to_.layout().pipeline + to_.stage_of_layer(0, layer);
    } else {
        const auto as_before = [](const PlacedPlan& side, int replicas, int layer) {
            for (int replica = 0; replica < replicas; ++replica)
                if (side.stage_of_layer(replica, layer) != side.stage_of_layer(replica, layer - 1)) return false;
            return true;
        };
        for (int layer = 1; layer < layers; ++layer)
            key[static_cast<std::size_t>(layer)] =
                key[static_cast<std::size_t>(layer - 1)] +
                (as_before(from_, replicas_from, layer) && as_before(to_, replicas_to, layer) ? 0 : 1);
    }
    layer_order_.resize(static_cast<std::size_t>(layers));
    std::iota(layer_order_.begin(), layer_order_.end(), 0);
    const auto key_of = [&](int layer) { return key[static_cast<std::size_t>(layer)]; };
    std::stable_sort(layer_order_.begin(), layer_order_.end(), [&](int a, int b) { return key_of(a) < key_of(b); });
    for (std::size_t i = 1; i <= layer_order_.size(); ++i)
        if (i == layer_order_.size() || key_of(layer_order_[i]) != key_of(layer_order_[i - 1]))
            class_ends_.push_back(i);
}

void Difference::walk(LinkLoads& loads, std::vector<Move>* moves) {
    loads_ = &loads;
    moves_ = moves;
    if (moves != nullptr) folded_ = false;
    loads.stand_for(folded_ ? to_.layout().tensor : 1);

    const Model& model = from_.job().model;
    for (const BlockKind kind :
         {BlockKind::kEmbedding, BlockKind::kPositions, BlockKind::kFinalNorm, BlockKind::kHead}) {
        if (from_.elements(kind) == 0) continue;
        const std::vector<int> was = stages_of_edge_block(model, from_.layout(), kind);
        const std::vector<int> is = stages_of_edge_block(model, to_.layout(), kind);
        if (is.empty()) continue;
        BlockClass edge;
        edge.kind = kind;
        edge.from_copies = static_cast<int>(was.size());
        edge.to_copies = static_cast<int>(is.size());
        std::copy(was.begin(), was.end(), edge.from_stages);
        std::copy(is.begin(), is.end(), edge.to_stages);
        walk_class(edge);
    }
    std::size_t begin = 0;
    for (const std::size_t end : class_ends_) {
        BlockClass blocks;
        blocks.layers = std::span<const int>(layer_order_).subspan(begin, end - begin);
        for (const BlockKind kind : {BlockKind::kLayerSplit, BlockKind::kLayerReplicated}) {
            blocks.kind = kind;
            walk_class(blocks);
        }
        begin = end;
    }
}

void Difference::walk_class(const BlockClass& blocks) {
    holders_known_ = false;
    from_cuts_ = cuts_of(from_, blocks.kind);
    to_cuts_ = cuts_of(to_, blocks.kind);
    const Layout& layout = to_.layout();
    for (int replica = 0; replica < layout.data; ++replica)
        for (int copy = 0; copy < blocks.to_copies; ++copy) {
            const int stage = stage_of(to_, blocks, replica, copy);
            if (comparable_ && worker_stays_[static_cast<std::size_t>(to_.plan().worker(replica, stage))] != 0 &&
                held_by(blocks, replica, stage))
                continue;
            for (int context = 0; context < layout.context; ++context)
                for (int tensor = 0; tensor < (folded_ ? 1 : layout.tensor); ++tensor)
                    receive(blocks, to_.gpu(tensor, context, replica, stage), tensor,
                            std::int64_t{replica} * layout.context + context);
        }
}

int Difference::stage_of(const PlacedPlan& side, const BlockClass& blocks, int replica, int copy) const {
    if (!blocks.layers.empty()) return side.stage_of_layer(replica, blocks.layers.front());
    return (&side == &from_ ? blocks.from_stages : blocks.to_stages)[copy];
}

bool Difference::held_by(const BlockClass& blocks, int replica, int stage) const {
    for (int copy = 0; copy < blocks.from_copies; ++copy)
        if (stage_of(from_, blocks, replica, copy) == stage) return true;
    return false;
}

Difference::Cuts Difference::cuts_of(const PlacedPlan& side, BlockKind kind) {
    Cuts cuts;
    cuts.elements = side.elements(kind);
    const std::int64_t tensor = is_split(kind) ? side.layout().tensor : 1;
    cuts.column = (cuts.elements + tensor - 1) / tensor;
    cuts.shards = side.layout().distributed_optimizer ? side.shards() : 1;
    cuts.shard = (cuts.column + cuts.shards - 1) / cuts.shards;
    return cuts;
}

/// Ownership::slice, with the block's cuts at hand.
Interval Difference::slice(const Cuts& cuts, StateKind state, int tensor, std::int64_t shard) {
    const Interval column = cuts.column_of(tensor);
    if (state == StateKind::kWeights || cuts.shards == 1) return column;
    const std::int64_t each = cuts.shard_of(column);
    return {std::min(column.begin + shard * each, column.end), std::min(column.begin + (shard + 1) * each, column.end)};
}

/// What the GPU needs under the new plan less what it has; padding that the old plan lacks is made, not moved.
void Difference::receive(const BlockClass& blocks, int gpu, int tensor, std::int64_t shard) {
    const Layout& layout = from_.layout();
    int tensor_was = 0;
    std::int64_t shard_was = 0;
    bool had = false;
    if (const int rank = from_.rank_of(gpu); rank >= 0 && !is_lost(gpu)) {
        tensor_was = rank % layout.tensor;
        const int replica = from_.replica_of_rank(rank);
        shard_was = std::int64_t{replica} * layout.context + rank / layout.tensor % layout.context;
        had = held_by(blocks, replica, from_.stage_of_rank(rank));
    }
    const Interval exists{0, from_cuts_.elements};
    const bool split = is_split(blocks.kind);
    for (const StateKind kind : {StateKind::kWeights, StateKind::kOptimizer}) {
        const Interval needed = common_part(slice(to_cuts_, kind, split ? tensor : 0, shard), exists);
        if (needed.empty()) continue;
        const Interval has =
            had ? common_part(slice(from_cuts_, kind, split ? tensor_was : 0, shard_was), needed) : Interval{};
        if (has.empty()) {
            need(blocks, gpu, kind, needed);
        } else {
            need(blocks, gpu, kind, {needed.begin, has.begin});
            need(blocks, gpu, kind, {has.end, needed.end});
        }
    }
}

/// Cuts what is needed where its senders change.
void Difference::need(const BlockClass& blocks, int gpu, StateKind kind, Interval elements) {
    const bool sharded = kind == StateKind::kOptimizer && from_cuts_.shards > 1;
    while (!elements.empty()) {
        const int tensor = static_cast<int>(elements.begin / from_cuts_.column);
        const Interval column = from_cuts_.column_of(tensor);
        Interval part = common_part(column, elements);
        if (sharded) {
            const std::int64_t each = from_cuts_.shard_of(column);
            const std::int64_t shard = (part.begin - column.begin) / each;
            part.end = std::min(part.end, column.begin + (shard + 1) * each);
            send(blocks, nearest_of_shard(blocks, tensor, shard, gpu), gpu, kind, part);
        } else {
            send(blocks, nearest_holder(blocks, folded_ ? 0 : tensor, gpu), gpu, kind, part);
        }
        elements.begin = part.end;
    }
}

void Difference::send(const BlockClass& blocks, int from, int gpu, StateKind kind, const Interval& elements) {
    const Precision precision = from_.job().precision;
    loads_->add(from, gpu, kind, elements.size() * bytes_of_element(kind, precision) * blocks.count());
    if (moves_ == nullptr) return;
    if (blocks.layers.empty()) moves_->push_back({from, gpu, kind, {blocks.kind, -1}, elements, precision});
    for (const int layer : blocks.layers)
        moves_->push_back({from, gpu, kind, {blocks.kind, layer}, elements, precision});
}

/// Per column, tied to nodes and racks. A folded walk looks at the first GPU of each tensor group only.
void Difference::find_holders(const BlockClass& blocks) {
    holders_known_ = true;
    const Layout& layout = from_.layout();
    const int tensor_ranks = folded_ ? 1 : layout.tensor;
    const bool by_column = is_split(blocks.kind);
    const auto columns = static_cast<std::size_t>(by_column ? tensor_ranks : 1);
    holders_.clear();
    columns_.resize(columns);
    for (Column& column : columns_) {
        column.all.clear();
        column.cursor = 0;
        column.last_served = -1;
    }
    const auto nodes = static_cast<std::size_t>(map_.nodes()), racks = static_cast<std::size_t>(map_.racks());
    on_node_.assign(columns * nodes, -1);
    first_in_rack_.assign(columns * racks, -1);
    for (int replica = 0; replica < layout.data; ++replica)
        for (int copy = 0; copy < blocks.from_copies; ++copy) {
            const int stage = stage_of(from_, blocks, replica, copy);
            for (int context = 0; context < layout.context; ++context)
                for (int tensor = 0; tensor < tensor_ranks; ++tensor) {
                    const int gpu = from_.gpu(tensor, context, replica, stage);
                    if (is_lost(gpu)) continue;
                    const auto column = static_cast<std::size_t>(by_column ? tensor : 0);
                    const auto node = static_cast<std::size_t>(map_.node_of(gpu));
                    const auto rack = static_cast<std::size_t>(map_.rack_of(gpu));
                    const int index = static_cast<int>(holders_.size());
                    holders_.push_back({gpu, on_node_[column * nodes + node], first_in_rack_[column * racks + rack]});
                    on_node_[column * nodes + node] = index;
                    first_in_rack_[column * racks + rack] = index;
                    columns_[column].all.push_back(index);
                }
        }
    next_in_rack_ = first_in_rack_;
}

/// Weights and optimizer state of a GPU come from one sender where one has both.
int Difference::nearest_holder(const BlockClass& blocks, int column, int gpu) {
    if (!holders_known_) find_holders(blocks);
    const auto place = static_cast<std::size_t>(is_split(blocks.kind) ? column : 0);
    Column& at = columns_[place];
    if (at.last_served != gpu) {
        at.last_served = gpu;
        at.last_sender = choose_holder(place, gpu);
    }
    return at.last_sender;
}

int Difference::choose_holder(std::size_t place, int gpu) {
    const auto holder = [&](int index) -> const Holder& { return holders_[static_cast<std::size_t>(index)]; };

    int best = kFromCheckpoint;
    for (int index =
             on_node_[place * static_cast<std::size_t>(map_.nodes()) + static_cast<std::size_t>(map_.node_of(gpu))];
         index >= 0; index = holder(index).next_on_node) {
        const int sender = holder(index).gpu;
        if (best == kFromCheckpoint ||
            loads_->of_gpu(sender).fabric_out.total() < loads_->of_gpu(best).fabric_out.total())
            best = sender;
    }
    if (best != kFromCheckpoint) return best;

    // Farther away, two at a time, in turn.
    const auto less_to_send = [&](int a, int b) { return sent(holder(b).gpu) < sent(holder(a).gpu) ? b : a; };
    const std::size_t rack =
        place * static_cast<std::size_t>(map_.racks()) + static_cast<std::size_t>(map_.rack_of(gpu));
    if (first_in_rack_[rack] >= 0) {
        const auto after = [&](int index) {
            const int next = holder(index).next_in_rack;
            return next >= 0 ? next : first_in_rack_[rack];
        };
        const int turn = next_in_rack_[rack];
        next_in_rack_[rack] = after(turn);
        return holder(less_to_send(turn, after(turn))).gpu;
    }
    Column& everywhere = columns_[place];
    if (everywhere.all.empty()) return kFromCheckpoint;
    const int turn = everywhere.all[everywhere.cursor];
    everywhere.cursor = (everywhere.cursor + 1) % everywhere.all.size();
    return holder(less_to_send(turn, everywhere.all[everywhere.cursor])).gpu;
}

/// One rank has a shard, or few: a tied embedding has a copy on either end, a block held whole one a tensor rank.
int Difference::nearest_of_shard(const BlockClass& blocks, int column, std::int64_t shard, int gpu) const {
    const Layout& layout = from_.layout();
    const int replica = static_cast<int>(shard / layout.context), context = static_cast<int>(shard % layout.context);
    const bool split = is_split(blocks.kind);
    const int first = split ? column : 0, last = split ? column : folded_ ? 0 : layout.tensor - 1;
    int best = kFromCheckpoint;
    for (int copy = 0; copy < blocks.from_copies; ++copy) {
        const int stage = stage_of(from_, blocks, replica, copy);
        for (int tensor = first; tensor <= last; ++tensor) {
            const int sender = from_.gpu(tensor, context, replica, stage);
            if (is_lost(sender)) continue;
            if (best == kFromCheckpoint) {
                best = sender;
                continue;
            }
            const int farther = distance(sender, gpu) - distance(best, gpu);
            if (farther < 0 || (farther == 0 && sent(sender) < sent(best))) best = sender;
        }
    }
    return best;
}

int Difference::distance(int a, int b) const {
    if (map_.node_of(a) == map_.node_of(b)) return 0;
    return map_.rack_of(a) == map_.rack_of(b) ? 1 : 2;
}

std::int64_t Difference::sent(int gpu) const {
    const GpuLoads& loads = loads_->of_gpu(gpu);
    return loads.fabric_out.total() + loads.network_out.total();
}

}  // namespace headway::scenarios
