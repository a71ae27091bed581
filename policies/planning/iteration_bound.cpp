#include "policies/planning/iteration_bound.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "scenarios/timing/task_graph.h"

namespace headway::policies {

namespace {

using scenarios::Layout;
using scenarios::Schedule;
using scenarios::StepTimes;

std::int64_t bound_value(const std::vector<std::int64_t>& values, std::size_t i) {
    return values.empty() ? 0 : values[i];
}

/// One replica from its first forward to the last operation of each stage.
class ReplicaBound {
  public:
    ReplicaBound(const Layout& layout, const StepTimes& times, int replica, int micro_batches)
        : layout_(layout),
          times_(times),
          stages_(static_cast<std::size_t>(layout.pipeline)),
          chunks_(static_cast<std::size_t>(layout.virtual_pipeline)),
          first_cell_(static_cast<std::size_t>(replica) * stages_ * chunks_),
          micro_batches_(micro_batches),
          behind_(stages_, 0) {
        for (std::size_t s = stages_ - 1; s-- > 0;)
            behind_[s] = behind_[s + 1] + forward(s + 1, 0) + backward(s + 1, 0);
    }

    /// Raises `ends` [pipeline] to the ends of this replica's stages.
    void raise(std::vector<std::int64_t>& ends) const {
        const bool split = layout_.schedule == Schedule::kZeroBubble;
        std::vector<std::int64_t> arrival(stages_, 0);  // of the first micro-batch
        for (std::size_t s = 1; s < stages_; ++s) arrival[s] = arrival[s - 1] + forward(s - 1, 0) + activation(s - 1);
        std::int64_t last_backward = 0;  // lower bound of the end of the last (input) backward of the stage behind
        for (std::size_t s = stages_; s-- > 0;) {
            std::int64_t work = 0, weights = 0;
            for (std::size_t c = 0; c < chunks_; ++c) {
                work += (forward(s, c) + backward(s, c)) * micro_batches_;
                weights += weight(s, c) * micro_batches_;
            }
            std::int64_t own = arrival[s] + work + held_up(s) + waiting(s);
            if (s + 1 < stages_) own = std::max(own, last_backward + gradient(s + 1) + backward(s, 0));
            last_backward = own;
            const std::int64_t end = split ? std::max(own + weight(s, 0), arrival[s] + work + weights) : own;
            ends[s] = std::max(ends[s], end);
        }
    }

  private:
    std::size_t cell(std::size_t stage, std::size_t chunk) const { return first_cell_ + stage * chunks_ + chunk; }
    std::int64_t forward(std::size_t s, std::size_t c) const { return times_.forward[cell(s, c)]; }
    /// What the stage before waits for.
    std::int64_t backward(std::size_t s, std::size_t c) const {
        return layout_.schedule == Schedule::kZeroBubble ? times_.backward_input[cell(s, c)]
                                                         : times_.backward[cell(s, c)];
    }
    std::int64_t weight(std::size_t s, std::size_t c) const {
        return layout_.schedule == Schedule::kZeroBubble ? times_.backward_weight[cell(s, c)] : 0;
    }
    std::int64_t activation(std::size_t s) const {
        return bound_value(times_.send_activation, cell(s, 0)) + bound_value(times_.delay_activation, cell(s, 0));
    }
    std::int64_t gradient(std::size_t s) const {
        return bound_value(times_.send_gradient, cell(s, 0)) + bound_value(times_.delay_gradient, cell(s, 0));
    }

    /// 1F1B: from its first forward on a stage may run only as many forwards as there are stages behind it until the
    /// first gradient comes back; what that way takes longer it waits.
    std::int64_t waiting(std::size_t s) const {
        if (layout_.schedule != Schedule::kOneForwardOneBackward) return 0;
        const auto ahead = std::min<std::int64_t>(static_cast<std::int64_t>(stages_ - 1 - s), micro_batches_ - 1);
        return std::max<std::int64_t>(0, behind_[s] - ahead * forward(s, 0));
    }

    /// Messages that hold the stage's computation, besides the first one that it receives and the last one it sends.
    std::int64_t held_up(std::size_t s) const {
        if (stages_ == 1 || scenarios::message_mode(layout_) != scenarios::MessageMode::kBlocking) return 0;
        if (waiting(s) > 0) return 0;  // they may pass meanwhile
        const auto link = [&](std::size_t from, std::size_t to) { return std::min(activation(from), gradient(to)); };
        const std::int64_t m = micro_batches_;
        if (chunks_ == 1) {
            // One batch of a send and a receive for each micro-batch and neighbour.
            return (s + 1 < stages_ ? m * link(s, s + 1) : 0) + (s > 0 ? (m - 1) * link(s - 1, s) : 0);
        }
        // Up to two messages with both neighbours in a batch.
        std::int64_t shortest = std::numeric_limits<std::int64_t>::max();
        const auto consider = [&](const std::vector<std::int64_t>& values, std::size_t stage, bool any) {
            for (std::size_t c = 0; c < chunks_; ++c) {
                const bool sends = any || c + 1 < chunks_;
                if (sends) shortest = std::min(shortest, bound_value(values, cell(stage, c)));
            }
        };
        for (const std::size_t stage : {s, (s + stages_ - 1) % stages_})
            consider(times_.send_activation, stage, stage + 1 < stages_);
        for (const std::size_t stage : {s, (s + 1) % stages_}) {
            for (std::size_t c = stage == 0 ? 1 : 0; c < chunks_; ++c)
                shortest = std::min(shortest, bound_value(times_.send_gradient, cell(stage, c)));
        }
        const auto chunks = static_cast<std::int64_t>(chunks_);
        return std::max<std::int64_t>(0, m * chunks - (m + 1) / 2 - 1) * shortest;
    }

    const Layout& layout_;
    const StepTimes& times_;
    const std::size_t stages_, chunks_, first_cell_;
    const int micro_batches_;
    std::vector<std::int64_t> behind_;  // [pipeline] forwards and backwards of one micro-batch on the stages behind
};

bool same_replica(const Layout& layout, std::span<const int> micro_batches, const StepTimes& times, int a, int b) {
    if (micro_batches[static_cast<std::size_t>(a)] != micro_batches[static_cast<std::size_t>(b)]) return false;
    const auto cells = static_cast<std::ptrdiff_t>(layout.virtual_stages());
    const auto same = [&](const std::vector<std::int64_t>& values) {
        return values.empty() ||
               std::equal(values.begin() + a * cells, values.begin() + (a + 1) * cells, values.begin() + b * cells);
    };
    return same(times.forward) && same(times.backward) && same(times.backward_input) && same(times.backward_weight) &&
           same(times.send_activation) && same(times.send_gradient) && same(times.delay_activation) &&
           same(times.delay_gradient);
}

std::int64_t of_stage(const std::vector<std::int64_t>& values, const Layout& layout, int stage) {
    std::int64_t sum = 0;
    for (int c = 0; c < layout.virtual_pipeline; ++c)
        sum += bound_value(values, static_cast<std::size_t>(stage * layout.virtual_pipeline + c));
    return sum;
}

}  // namespace

scenarios::Duration iteration_lower_bound(const Layout& layout, bool tied_embedding, std::span<const int> micro_batches,
                                          const StepTimes& times) {
    std::vector<std::int64_t> ends(static_cast<std::size_t>(layout.pipeline), 0);
    for (int r = 0; r < layout.data; ++r) {
        if (r > 0 && same_replica(layout, micro_batches, times, r - 1, r)) continue;
        ReplicaBound(layout, times, r, micro_batches[static_cast<std::size_t>(r)]).raise(ends);
    }
    const bool replicated = layout.data * layout.context > 1;  // as the programs have it
    const std::int64_t tied = std::max(bound_value(times.reduce_tied_embedding, 0),
                                       bound_value(times.reduce_tied_embedding, ends.size() - 1));
    std::int64_t reduced = 0;
    for (int s = 0; s < layout.pipeline; ++s) {
        const auto stage = static_cast<std::size_t>(s);
        std::int64_t end = ends[stage];
        if (replicated && layout.overlap_grad_reduce) {
            const std::size_t first_chunk = stage * static_cast<std::size_t>(layout.virtual_pipeline);
            end += std::min(bound_value(times.reduce_last_bucket, first_chunk),
                            bound_value(times.reduce_gradients, first_chunk));
        }
        if (replicated && !layout.overlap_grad_reduce) end += of_stage(times.reduce_gradients, layout, s);
        const bool holds_tied = tied_embedding && layout.pipeline > 1 && (s == 0 || s == layout.pipeline - 1);
        if (holds_tied && layout.overlap_grad_reduce) end = std::max(end, ends[stage] + tied);
        if (holds_tied && !layout.overlap_grad_reduce) end += tied;
        reduced = std::max(reduced, end);
    }
    std::int64_t last = reduced;
    for (int s = 0; s < layout.pipeline; ++s) {
        std::int64_t optimizer = 0;
        for (int r = 0; r < layout.data; ++r)
            optimizer =
                std::max(optimizer, bound_value(times.optimizer, static_cast<std::size_t>(r * layout.pipeline + s)));
        const bool gathers = replicated && layout.distributed_optimizer && !layout.overlap_param_gather;
        const std::int64_t gather = gathers ? of_stage(times.gather_parameters, layout, s) : 0;
        last = std::max(last, reduced + optimizer + gather);
    }
    return scenarios::Duration::nanoseconds(last);
}

}  // namespace headway::policies
