#include "scenarios/transfer/switch_costs.h"

#include <algorithm>
#include <cstddef>
#include <optional>

#include "scenarios/language/plan_check.h"

namespace headway::scenarios {

namespace {

// Communicators and programs of the new plan are made beside the running job, so that the boundary only takes them into
// use. No published figure separates these parts (a re-split of micro-batches that reloads data takes about 2 s in
// GREYHOUND's log, a whole change of a 70B layout under 2 s with DynaTrain); the constants are assumed, from what
// each step does.

/// All ranks agree on the iteration to switch at, and swap programs: a small all-reduce.
const Duration kSwapPrograms = Duration::milliseconds(2);
/// Layers come or go: buffers of the ranks concerned are swapped, pointers of communicators registered anew.
const Duration kSwapLayers = Duration::milliseconds(10);
/// Other groups of ranks: connections of new communicators are opened in the background, the first collective on each
/// is slow.
const Duration kSwapCommunicators = Duration::milliseconds(100);
/// Until the communicators of the new plan are there.
const Duration kMakeCommunicators = Duration::seconds(2);
/// Until processes have started on GPUs that the old plan leaves idle.
const Duration kStartRanks = Duration::seconds(30);

bool moves_nothing(const Plan& from, const Plan& to) {
    const Layout &a = from.layout, &b = to.layout;
    return a.tensor == b.tensor && a.pipeline == b.pipeline && a.data == b.data && a.context == b.context &&
           a.virtual_pipeline == b.virtual_pipeline && a.distributed_optimizer == b.distributed_optimizer &&
           from.layers_of_cell == to.layers_of_cell && from.gpu_of_rank == to.gpu_of_rank;
}

/// Whether the ranks form other groups than before. Replicas that split the model differently reduce some layers in
/// groups of their own.
bool regroups(const Plan& from, const Plan& to) {
    const Layout &a = from.layout, &b = to.layout;
    if (a.tensor != b.tensor || a.pipeline != b.pipeline || a.data != b.data || a.context != b.context) return true;
    if (from.gpu_of_rank != to.gpu_of_rank) return true;
    return from.layers_of_cell != to.layers_of_cell && !(from.same_layers_everywhere() && to.same_layers_everywhere());
}

}  // namespace

struct SwitchEstimate::Room {
    std::int64_t extra = 0;
    std::int64_t peak = 0;
    bool fits = true;
};

SwitchEstimate::SwitchEstimate(const Job& job, const Cluster& cluster, const Plan& from)
    : job_(job),
      cluster_(cluster),
      from_((check_plan(job, cluster, from), from)),
      map_(cluster),
      placed_(job, map_, from_),
      memory_(job, from_.layout),
      checkpoint_(checkpoint_costs(job, cluster, from_)),
      loads_(map_) {}

SwitchCosts SwitchEstimate::to(const Plan& plan) {
    SwitchCosts costs;
    if (plan == from_) return costs;
    check_plan(job_, cluster_, plan);
    const bool same_state = moves_nothing(from_, plan);
    costs.restart_pause =
        checkpoint_.save + (same_state ? checkpoint_ : checkpoint_costs(job_, cluster_, plan)).restart;
    costs.live_pause = kSwapPrograms;
    if (same_state) return costs;

    const PlacedPlan placed(job_, map_, plan);
    loads_.clear();
    Difference(map_, placed_, placed, {}).walk(loads_);
    const double gradients = job_.stack.gradient_bytes / static_cast<double>(kStateOptimizerBytes);
    const Load moved = loads_.moved();
    costs.moved = Bytes(moved.total());
    costs.at_boundary = Bytes(static_cast<std::int64_t>(static_cast<double>(moved.optimizer) * gradients + 0.5));
    costs.background = Duration::seconds(loads_.seconds(1.0, 1.0) / kBackgroundShare);
    costs.gradients = Duration::seconds(loads_.seconds(0.0, gradients));
    costs.live_pause += kSwapLayers + costs.gradients;
    if (regroups(from_, plan)) {
        costs.live_pause += kSwapCommunicators;
        const bool idle_ones_join = std::any_of(plan.gpu_of_rank.begin(), plan.gpu_of_rank.end(),
                                                [&](int gpu) { return placed_.rank_of(gpu) < 0; });
        costs.preparation = idle_ones_join ? kStartRanks : kMakeCommunicators;
    }
    const Room needed = room(placed);
    costs.extra_memory = Bytes(needed.extra);
    costs.peak_memory = Bytes(needed.peak);
    costs.fits_live = needed.fits;
    return costs;
}

namespace {

/// What the workers of a plan need, each asked for once.
class MemoryOfWorkers {
  public:
    MemoryOfWorkers(MemoryTable& table, const PlacedPlan& placed)
        : table_(table), placed_(placed), known_(static_cast<std::size_t>(placed.plan().workers())) {}

    const StageMemory& of_rank(int rank) {
        const int replica = placed_.replica_of_rank(rank), stage = placed_.stage_of_rank(rank);
        std::optional<StageMemory>& memory = known_[static_cast<std::size_t>(placed_.plan().worker(replica, stage))];
        if (!memory) memory = table_.worker(placed_.plan(), replica, stage);
        return *memory;
    }

  private:
    MemoryTable& table_;
    const PlacedPlan& placed_;
    std::vector<std::optional<StageMemory>> known_;
};

}  // namespace

/// A rank that receives keeps all of its old plan meanwhile; at the boundary activations have gone when gradients come.
SwitchEstimate::Room SwitchEstimate::room(const PlacedPlan& to) {
    MemoryTable table(job_, to.layout());
    MemoryOfWorkers memory_was(memory_, placed_), memory_is(table, to);
    const double gradients = job_.stack.gradient_bytes / static_cast<double>(kStateOptimizerBytes);
    Room room;
    for (const int gpu : loads_.touched()) {
        const Load in = loads_.of_gpu(gpu).in();
        if (in.total() == 0) continue;
        const int was = placed_.rank_of(gpu), is = to.rank_of(gpu);
        const StageMemory& next = memory_is.of_rank(is);
        StageMemory old;
        old.reserve = next.reserve;
        if (was >= 0) old = memory_was.of_rank(was);
        const auto gradient = static_cast<std::int64_t>(static_cast<double>(in.optimizer) * gradients);
        const std::int64_t streaming = old.total().count() + in.total();
        const std::int64_t boundary = streaming - old.activations.count() + gradient;
        const std::int64_t most = std::max(streaming, boundary);
        room.extra = std::max(room.extra, most - std::max(old.total().count(), next.total().count()));
        room.peak = std::max(room.peak, most);
        room.fits = room.fits && most <= map_.node(map_.node_of(gpu)).gpu.memory.count();
    }
    return room;
}

SwitchCosts switch_costs(const Job& job, const Cluster& cluster, const Plan& from, const Plan& to) {
    if (from == to) {
        check_plan(job, cluster, from);
        return {};
    }
    return SwitchEstimate(job, cluster, from).to(to);
}

}  // namespace headway::scenarios
