#include "scenarios/timing/evaluator.h"

#include <algorithm>
#include <span>
#include <stdexcept>
#include <string>

#include "scenarios/language/program.h"
#include "scenarios/timing/replica_programs.h"
#include "scenarios/timing/task_graph.h"

namespace headway::scenarios {

namespace {

std::int64_t value_or_zero(const std::vector<std::int64_t>& values, std::size_t i) {
    return values.empty() ? 0 : values[i];
}

bool has_delays(const StepTimes& times) {
    const auto positive = [](std::int64_t ns) { return ns != 0; };
    return std::any_of(times.delay_activation.begin(), times.delay_activation.end(), positive) ||
           std::any_of(times.delay_gradient.begin(), times.delay_gradient.end(), positive);
}

template <class T>
bool equal_parts(const std::vector<T>& values, std::size_t a, std::size_t b, std::size_t count) {
    return values.empty() || std::equal(values.begin() + static_cast<std::ptrdiff_t>(a),
                                        values.begin() + static_cast<std::ptrdiff_t>(a + count),
                                        values.begin() + static_cast<std::ptrdiff_t>(b));
}

/// Length of [start, end] that lies after `from`.
std::int64_t part_after(std::int64_t start, std::int64_t end, std::int64_t from) {
    return std::max<std::int64_t>(0, end - std::max(start, from));
}

}  // namespace

class Evaluator::Impl {
  public:
    Impl(const Plan& plan, bool tied_embedding, std::shared_ptr<ReplicaPrograms> programs)
        : layout_(plan.layout),
          programs_(std::move(programs)),
          micro_batches_(plan.micro_batches_of_replica),
          replicas_(static_cast<std::size_t>(plan.layout.data)),
          stages_(static_cast<std::size_t>(plan.layout.pipeline)),
          chunks_(static_cast<std::size_t>(plan.layout.virtual_pipeline)),
          tied_embedding_(tied_embedding) {
        if (micro_batches_.size() != replicas_)
            throw std::invalid_argument("micro_batches_of_replica has one entry a replica");
        if (!(programs_->layout() == layout_)) throw std::invalid_argument("programs of another layout");
        first_micro_batch_.push_back(0);
        for (const int m : micro_batches_) {
            first_micro_batch_.push_back(first_micro_batch_.back() + static_cast<std::size_t>(m));
            programs_->check(m);
        }
        between_.resize(replicas_);
        parts_.resize(replicas_);
    }

    void fold_equal_replicas(bool fold) { fold_ = fold; }

    Duration iteration_time(const StepTimes& times) {
        evaluate_replicas(times);
        return Duration::nanoseconds(finish(times, nullptr));
    }

    Evaluation evaluate(const StepTimes& times) {
        Evaluation out;
        out.workers.resize(replicas_ * stages_);
        evaluate_replicas(times);
        std::vector<std::int64_t> data_exposed(replicas_ * stages_, 0);
        out.iteration = Duration::nanoseconds(finish(times, &data_exposed));
        for (std::size_t r = 0; r < replicas_; ++r) {
            for (std::size_t s = 0; s < stages_; ++s) {
                WorkerTimes& worker = out.workers[r * stages_ + s];
                worker.compute = Duration::nanoseconds(compute_time(times, r, s));
                worker.data_exposed = Duration::nanoseconds(data_exposed[r * stages_ + s]);
                worker.idle = out.iteration - worker.compute - worker.data_exposed;
            }
        }
        return out;
    }

    std::vector<Duration> replica_times(const StepTimes& times) {
        evaluate_replicas(times);
        std::vector<Duration> out;
        for (std::size_t r = 0; r < replicas_; ++r)
            out.push_back(Duration::nanoseconds(*std::max_element(ends(r).stage.begin(), ends(r).stage.end())));
        return out;
    }

    std::vector<TimelineEntry> timeline(const StepTimes& times);

  private:
    using Ends = CompiledReplica::Ends;

    void check(const StepTimes& times) const {
        const std::size_t places = stages_ * chunks_, cells = replicas_ * places;
        const auto expect = [](const auto& values, std::size_t size, const char* name) {
            if (!values.empty() && values.size() != size)
                throw std::invalid_argument(std::string("StepTimes::") + name + " has " +
                                            std::to_string(values.size()) + " entries, not " + std::to_string(size));
        };
        expect(times.forward, cells, "forward");
        expect(times.backward, cells, "backward");
        expect(times.backward_input, cells, "backward_input");
        expect(times.backward_weight, cells, "backward_weight");
        expect(times.send_activation, cells, "send_activation");
        expect(times.send_gradient, cells, "send_gradient");
        expect(times.delay_activation, cells, "delay_activation");
        expect(times.delay_gradient, cells, "delay_gradient");
        expect(times.reduce_gradients, places, "reduce_gradients");
        expect(times.reduce_last_bucket, places, "reduce_last_bucket");
        expect(times.reduce_tied_embedding, stages_, "reduce_tied_embedding");
        expect(times.optimizer, replicas_ * stages_, "optimizer");
        expect(times.gather_parameters, places, "gather_parameters");
        expect(times.gather_first_bucket, places, "gather_first_bucket");
        expect(times.micro_batch_factor, first_micro_batch_.back(), "micro_batch_factor");
    }

    /// Whether two replicas that train as many micro-batches take the same time.
    bool equal_replicas(const StepTimes& times, std::size_t a, std::size_t b) const {
        const std::size_t cells = stages_ * chunks_, x = a * cells, y = b * cells;
        return equal_parts(times.forward, x, y, cells) && equal_parts(times.backward, x, y, cells) &&
               equal_parts(times.backward_input, x, y, cells) && equal_parts(times.backward_weight, x, y, cells) &&
               equal_parts(times.send_activation, x, y, cells) && equal_parts(times.send_gradient, x, y, cells) &&
               equal_parts(times.delay_activation, x, y, cells) && equal_parts(times.delay_gradient, x, y, cells) &&
               (times.micro_batch_factor.empty() ||
                (micro_batches_[a] == micro_batches_[b] &&
                 equal_parts(times.micro_batch_factor, first_micro_batch_[a], first_micro_batch_[b],
                             static_cast<std::size_t>(micro_batches_[a]))));
    }

    /// Number of the run that stands for `replica` with this count of micro-batches.
    std::size_t run_of(const StepTimes& times, std::size_t replica, int micro_batches) {
        for (std::size_t i = 0; fold_ && i < runs_used_; ++i)
            if (runs_[i].micro_batches == micro_batches && equal_replicas(times, replica, runs_[i].replica)) return i;
        if (runs_used_ == runs_.size()) runs_.emplace_back();
        runs_[runs_used_].micro_batches = micro_batches;
        runs_[runs_used_].replica = replica;
        return runs_used_++;
    }

    /// Fills `parts_`, the `ends` of all runs, and `between_` of the replicas that lie between two.
    void evaluate_replicas(const StepTimes& times) {
        check(times);
        const bool delays = has_delays(times);
        runs_used_ = 0;
        for (std::size_t r = 0; r < replicas_; ++r) {
            auto [below, above] = programs_->around(micro_batches_[r]);
            // Micro-batches that differ cannot be interpolated.
            if (!times.micro_batch_factor.empty()) below = above = micro_batches_[r];
            parts_[r].low = run_of(times, r, below);
            parts_[r].high = above == below ? parts_[r].low : run_of(times, r, above);
            parts_[r].share = above == below ? 0.0 : static_cast<double>(micro_batches_[r] - below) / (above - below);
        }
        // Lanes of one evaluation share a program, that is, a count of micro-batches.
        order_.resize(runs_used_);
        for (std::size_t i = 0; i < runs_used_; ++i) order_[i] = i;
        std::stable_sort(order_.begin(), order_.end(),
                         [&](std::size_t a, std::size_t b) { return runs_[a].micro_batches < runs_[b].micro_batches; });
        for (std::size_t i = 0; i < order_.size();) {
            const int m = runs_[order_[i]].micro_batches;
            int lanes[CompiledReplica::kLanes];
            std::size_t first[CompiledReplica::kLanes];
            Ends* ends[CompiledReplica::kLanes];
            std::size_t count = 0;
            for (; count < CompiledReplica::kLanes && i < order_.size() && runs_[order_[i]].micro_batches == m;
                 ++i, ++count) {
                Run& run = runs_[order_[i]];
                lanes[count] = static_cast<int>(run.replica);
                first[count] = first_micro_batch_[run.replica];
                ends[count] = &run.ends;
            }
            programs_->program(m, delays).evaluate(times, std::span(lanes, count), std::span(first, count),
                                                   std::span(ends, count));
        }
        for (std::size_t r = 0; r < replicas_; ++r)
            if (parts_[r].low != parts_[r].high) interpolate(parts_[r], between_[r]);
    }

    struct Part {
        std::size_t low = 0, high = 0;  // runs
        double share = 0.0;             // of the way from one to the other
    };
    void interpolate(const Part& part, Ends& out) const {
        const Ends &low = runs_[part.low].ends, &high = runs_[part.high].ends;
        const auto fill = [&](const std::vector<std::int64_t>& a, const std::vector<std::int64_t>& b,
                              std::vector<std::int64_t>& to) {
            to.resize(a.size());
            for (std::size_t k = 0; k < a.size(); ++k) to[k] = a[k] + scaled_ns(b[k] - a[k], part.share);
        };
        fill(low.stage, high.stage, out.stage);
        fill(low.gradient, high.gradient, out.gradient);
        if (layout_.overlap_grad_reduce) fill(low.buckets, high.buckets, out.buckets);
    }

    const Ends& ends(std::size_t r) const {
        return parts_[r].low == parts_[r].high ? runs_[parts_[r].low].ends : between_[r];
    }

    std::int64_t compute_time(const StepTimes& times, std::size_t r, std::size_t s) const;
    std::int64_t finish(const StepTimes& times, std::vector<std::int64_t>* data_exposed);
    void reduce(const StepTimes& times, std::vector<std::int64_t>* data_exposed);
    void reduce_tied(const StepTimes& times, std::vector<std::int64_t>* data_exposed);

    Layout layout_;
    std::shared_ptr<ReplicaPrograms> programs_;
    std::vector<int> micro_batches_;
    std::size_t replicas_, stages_, chunks_;
    bool tied_embedding_;
    bool fold_ = true;
    std::vector<std::size_t> first_micro_batch_;  // [replicas + 1] into micro_batch_factor
    /// One replica with a count of micro-batches, which stands for all that are equal.
    struct Run {
        int micro_batches = 0;
        std::size_t replica = 0;
        Ends ends;
    };
    std::vector<Run> runs_;
    std::size_t runs_used_ = 0;
    std::vector<std::size_t> order_;
    std::vector<Part> parts_;         // [replicas]
    std::vector<Ends> between_;       // [replicas] of those that lie between two runs
    std::vector<std::int64_t> free_;  // [workers] when the worker's own work is done so far
};

std::int64_t Evaluator::Impl::compute_time(const StepTimes& times, std::size_t r, std::size_t s) const {
    std::int64_t sum = value_or_zero(times.optimizer, r * stages_ + s);
    const std::size_t first = first_micro_batch_[r], m = static_cast<std::size_t>(micro_batches_[r]);
    for (std::size_t c = 0; c < chunks_; ++c) {
        const std::size_t cell = (r * stages_ + s) * chunks_ + c;
        const auto add = [&](const std::vector<std::int64_t>& values) {
            if (values.empty()) return;
            if (times.micro_batch_factor.empty()) {
                sum += values[cell] * static_cast<std::int64_t>(m);
            } else {
                for (std::size_t i = 0; i < m; ++i) sum += scaled_ns(values[cell], times.micro_batch_factor[first + i]);
            }
        };
        add(times.forward);
        if (layout_.schedule == Schedule::kZeroBubble) {
            add(times.backward_input);
            add(times.backward_weight);
        } else {
            add(times.backward);
        }
    }
    return sum;
}

/// The end of the iteration, by the rules of iteration_graph.
std::int64_t Evaluator::Impl::finish(const StepTimes& times, std::vector<std::int64_t>* data_exposed) {
    const bool replicated = layout_.data * layout_.context > 1;
    const bool tied = tied_embedding_ && stages_ > 1;
    const bool tied_first = layout_.distributed_optimizer && !layout_.overlap_grad_reduce;
    free_.resize(replicas_ * stages_);
    for (std::size_t r = 0; r < replicas_; ++r)
        std::copy(ends(r).stage.begin(), ends(r).stage.end(), free_.begin() + static_cast<std::ptrdiff_t>(r * stages_));
    if (tied && tied_first) reduce_tied(times, data_exposed);
    if (replicated) reduce(times, data_exposed);
    if (tied && !tied_first) reduce_tied(times, data_exposed);

    const std::int64_t norm = *std::max_element(free_.begin(), free_.end());
    const bool gathers = replicated && layout_.distributed_optimizer && !layout_.overlap_param_gather;
    std::int64_t end = norm;
    for (std::size_t s = 0; s < stages_; ++s) {
        std::int64_t stage_end = norm;
        for (std::size_t r = 0; r < replicas_; ++r)
            stage_end = std::max(stage_end, norm + value_or_zero(times.optimizer, r * stages_ + s));
        if (gathers) {
            const std::int64_t start = stage_end;
            for (std::size_t c = 0; c < chunks_; ++c)
                stage_end += value_or_zero(times.gather_parameters, s * chunks_ + c);
            if (data_exposed)
                for (std::size_t r = 0; r < replicas_; ++r) (*data_exposed)[r * stages_ + s] += stage_end - start;
        }
        end = std::max(end, stage_end);
    }
    return end;
}

void Evaluator::Impl::reduce(const StepTimes& times, std::vector<std::int64_t>* data_exposed) {
    for (std::size_t s = 0; s < stages_; ++s) {
        std::int64_t stream = 0;  // when the data communication stream of the stage is free
        const auto run = [&](std::int64_t start, std::int64_t length) {
            stream = std::max(stream, start) + length;
            if (data_exposed)
                for (std::size_t r = 0; r < replicas_; ++r)
                    (*data_exposed)[r * stages_ + s] += part_after(stream - length, stream, ends(r).stage[s]);
        };
        if (layout_.overlap_grad_reduce) {
            for (std::size_t c = chunks_; c-- > 0;) {
                const std::size_t place = s * chunks_ + c;
                std::int64_t backward_start = 0, gradient = 0;
                for (std::size_t r = 0; r < replicas_; ++r) {
                    backward_start = std::max(backward_start, ends(r).buckets[place]);
                    gradient = std::max(gradient, ends(r).gradient[place]);
                }
                const std::int64_t all = value_or_zero(times.reduce_gradients, place);
                const std::int64_t last = std::min(value_or_zero(times.reduce_last_bucket, place), all);
                run(backward_start, all - last);
                run(gradient, last);
            }
        } else {
            std::int64_t ready = 0;
            for (std::size_t r = 0; r < replicas_; ++r) ready = std::max(ready, free_[r * stages_ + s]);
            for (std::size_t c = 0; c < chunks_; ++c)
                run(ready, value_or_zero(times.reduce_gradients, s * chunks_ + c));
        }
        for (std::size_t r = 0; r < replicas_; ++r) free_[r * stages_ + s] = std::max(free_[r * stages_ + s], stream);
    }
}

void Evaluator::Impl::reduce_tied(const StepTimes& times, std::vector<std::int64_t>* data_exposed) {
    const std::int64_t length = std::max(value_or_zero(times.reduce_tied_embedding, 0),
                                         value_or_zero(times.reduce_tied_embedding, stages_ - 1));
    for (std::size_t r = 0; r < replicas_; ++r) {
        std::int64_t& first = free_[r * stages_];
        std::int64_t& last = free_[r * stages_ + stages_ - 1];
        first = last = std::max(first, last) + length;
        if (data_exposed) {
            (*data_exposed)[r * stages_] += length;
            (*data_exposed)[r * stages_ + stages_ - 1] += length;
        }
    }
}

namespace {

std::uint8_t timeline_op(TaskKind kind) {
    switch (kind) {
        case TaskKind::kForward:
            return static_cast<std::uint8_t>(Op::kForward);
        case TaskKind::kBackward:
            return static_cast<std::uint8_t>(Op::kBackward);
        case TaskKind::kBackwardInput:
            return static_cast<std::uint8_t>(Op::kBackwardInput);
        case TaskKind::kBackwardWeight:
            return static_cast<std::uint8_t>(Op::kBackwardWeight);
        case TaskKind::kActivation:
        case TaskKind::kActivationDelay:
            return static_cast<std::uint8_t>(Op::kSendActivation);
        case TaskKind::kGradient:
        case TaskKind::kGradientDelay:
            return static_cast<std::uint8_t>(Op::kSendGradient);
        case TaskKind::kReduceBuckets:
        case TaskKind::kReduce:
            return static_cast<std::uint8_t>(Op::kReduceGradients);
        case TaskKind::kReduceTied:
            return static_cast<std::uint8_t>(Op::kReduceTiedEmbedding);
        case TaskKind::kOptimizer:
            return static_cast<std::uint8_t>(Op::kOptimizerStep);
        case TaskKind::kGatherFirst:
        case TaskKind::kGather:
            return static_cast<std::uint8_t>(Op::kGatherParameters);
        case TaskKind::kJoin:
            break;
    }
    throw std::logic_error("a join is not an operation");
}

}  // namespace

std::vector<TimelineEntry> Evaluator::Impl::timeline(const StepTimes& times) {
    check(times);
    std::vector<int> all(replicas_);
    for (std::size_t r = 0; r < replicas_; ++r) all[r] = static_cast<int>(r);
    const IterationGraph iteration = iteration_graph(layout_, tied_embedding_, all, micro_batches_);
    const TaskGraph& graph = iteration.graph;
    const std::vector<std::int64_t> durations = task_durations(graph, layout_, micro_batches_, times);
    std::vector<std::pair<std::int64_t, std::int64_t>> spans(durations.size());
    for (std::int32_t i = 0; i < graph.size(); ++i) {
        std::int64_t start = 0;
        for (const std::int32_t p : graph.predecessors(i))
            start = std::max(start, spans[static_cast<std::size_t>(p)].second);
        spans[static_cast<std::size_t>(i)] = {start, start + durations[static_cast<std::size_t>(i)]};
    }
    return timeline_of(graph, layout_, spans);
}

std::vector<TimelineEntry> timeline_of(const TaskGraph& graph, const Layout& layout,
                                       const std::vector<std::pair<std::int64_t, std::int64_t>>& spans) {
    std::vector<TimelineEntry> entries;
    for (std::int32_t i = 0; i < graph.size(); ++i) {
        const auto [start, end] = spans.at(static_cast<std::size_t>(i));
        const std::int64_t duration = end - start;
        const Task& task = graph.task(i);
        const bool delay = task.kind == TaskKind::kActivationDelay || task.kind == TaskKind::kGradientDelay;
        if (task.kind == TaskKind::kJoin || (duration == 0 && (delay || !is_compute(task.kind)))) continue;
        TimelineEntry entry{0, timeline_op(task.kind), task.chunk, task.micro_batch, start, end};
        for (int r = 0; r < layout.data; ++r) {
            if (task.replica >= 0 && task.replica != r) continue;
            entry.worker = r * layout.pipeline + task.stage;
            entries.push_back(entry);
            if (task.kind != TaskKind::kReduceTied) continue;
            entry.worker = r * layout.pipeline + layout.pipeline - 1;
            entries.push_back(entry);
        }
    }
    std::stable_sort(entries.begin(), entries.end(), [](const TimelineEntry& a, const TimelineEntry& b) {
        return std::pair(a.worker, a.start_ns) < std::pair(b.worker, b.start_ns);
    });
    return entries;
}

Evaluator::Evaluator(const Plan& plan, bool tied_embedding)
    : Evaluator(plan, tied_embedding, std::make_shared<ReplicaPrograms>(plan.layout)) {}
Evaluator::Evaluator(const Plan& plan, bool tied_embedding, std::shared_ptr<ReplicaPrograms> programs)
    : impl_(std::make_unique<Impl>(plan, tied_embedding, std::move(programs))) {}
Evaluator::~Evaluator() = default;
Evaluator::Evaluator(Evaluator&&) noexcept = default;
Evaluator& Evaluator::operator=(Evaluator&&) noexcept = default;

Duration Evaluator::iteration_time(const StepTimes& times) {
    return impl_->iteration_time(times);
}
Evaluation Evaluator::evaluate(const StepTimes& times) {
    return impl_->evaluate(times);
}
std::vector<Duration> Evaluator::replica_times(const StepTimes& times) {
    return impl_->replica_times(times);
}
std::vector<TimelineEntry> Evaluator::timeline(const StepTimes& times) {
    return impl_->timeline(times);
}
void Evaluator::fold_equal_replicas(bool fold) {
    impl_->fold_equal_replicas(fold);
}

}  // namespace headway::scenarios
