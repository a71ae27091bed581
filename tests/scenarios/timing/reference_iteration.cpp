#include "tests/scenarios/timing/reference_iteration.h"

#include <algorithm>
#include <map>
#include <optional>
#include <stdexcept>
#include <tuple>
#include <utility>
#include <vector>

#include "scenarios/language/program.h"

namespace headway::scenarios::timing_test {

namespace {

using Time = std::int64_t;

Time entry(const std::vector<Time>& values, int i) {
    return values.empty() ? 0 : values.at(static_cast<std::size_t>(i));
}

/// (gradient?, virtual stage of the sender, micro-batch)
using MessageKey = std::tuple<bool, int, int>;

struct Ends {
    std::vector<Time> stage;                    // compute stream free
    std::map<std::pair<int, int>, Time> start;  // (stage, chunk): start of the last backward
    std::map<std::pair<int, int>, Time> end;    // (stage, chunk): end of it
};

/// One replica. A worker's clock is the time at which it can start its next instruction.
class ReferenceReplica {
  public:
    ReferenceReplica(const Plan& plan, int replica, const StepTimes& times)
        : plan_(plan), layout_(plan.layout), replica_(replica), times_(times) {
        micro_batches_ = plan.micro_batches_of_replica[static_cast<std::size_t>(replica)];
        for (int r = 0; r < replica; ++r) first_factor_ += plan.micro_batches_of_replica[static_cast<std::size_t>(r)];
        const auto stages = static_cast<std::size_t>(layout_.pipeline);
        for (int s = 0; s < layout_.pipeline; ++s) programs_.push_back(make_program(layout_, false, s, micro_batches_));
        at_.resize(stages);
        clock_.resize(stages);
        batch_started_.resize(stages, -1);
        gather_clock_.resize(stages);
        previous_on_link_.resize(stages);
    }

    Ends run() {
        for (bool moved = true; moved;) {
            moved = false;
            for (int s = 0; s < layout_.pipeline; ++s)
                while (at_[index(s)] < programs_[index(s)].size() && step(s)) moved = true;
        }
        for (int s = 0; s < layout_.pipeline; ++s)
            if (at_[index(s)] != programs_[index(s)].size()) throw std::logic_error("deadlock");
        out_.stage = clock_;
        return out_;
    }

  private:
    static std::size_t index(int i) { return static_cast<std::size_t>(i); }
    int cell(int virtual_stage) const {
        const int stage = virtual_stage % layout_.pipeline, chunk = virtual_stage / layout_.pipeline;
        return (replica_ * layout_.pipeline + stage) * layout_.virtual_pipeline + chunk;
    }
    MessageKey key(int s, const Instruction& i) const {
        const int k = i.chunk * layout_.pipeline + s;
        if (i.op == Op::kSendActivation) return {false, k, i.micro_batch};
        if (i.op == Op::kReceiveActivation) return {false, k - 1, i.micro_batch};
        if (i.op == Op::kSendGradient) return {true, k, i.micro_batch};
        return {true, k + 1, i.micro_batch};
    }
    static bool sends(const Instruction& i) { return i.op == Op::kSendActivation || i.op == Op::kSendGradient; }
    Time wire(const MessageKey& m) const {
        return entry(std::get<0>(m) ? times_.send_gradient : times_.send_activation, cell(std::get<1>(m)));
    }
    Time delay(const MessageKey& m) const {
        return entry(std::get<0>(m) ? times_.delay_gradient : times_.delay_activation, cell(std::get<1>(m)));
    }

    bool step(int s) {
        const Instruction& i = programs_[index(s)][at_[index(s)]];
        if (is_message(i.op)) {
            if (layout_.overlap_pipeline_comm) return beside(s, i);
            return layout_.schedule == Schedule::kZeroBubble ? posted(s, i) : batch(s);
        }
        if (is_compute(i.op)) return compute(s, i);
        if (i.op == Op::kGatherParameters && layout_.overlap_param_gather) {
            const int place = s * layout_.virtual_pipeline + i.chunk;
            const Time all = entry(times_.gather_parameters, place);
            first_bucket_[{s, i.chunk}] =
                gather_clock_[index(s)] + std::min(all, entry(times_.gather_first_bucket, place));
            gather_clock_[index(s)] += all;
            parameters_[{s, i.chunk}] = gather_clock_[index(s)];
        }
        ++at_[index(s)];
        return true;
    }

    bool compute(int s, const Instruction& i) {
        const int k = i.chunk * layout_.pipeline + s;
        Time start = clock_[index(s)];
        const bool needs_activation = i.op == Op::kForward && k > 0;
        const bool needs_gradient =
            (i.op == Op::kBackward || i.op == Op::kBackwardInput) && k + 1 < layout_.virtual_stages();
        if (needs_activation || needs_gradient) {
            const auto input = arrived_.find({needs_gradient, needs_gradient ? k + 1 : k - 1, i.micro_batch});
            if (input == arrived_.end()) return false;
            start = std::max(start, input->second);
        }
        const std::vector<Time>& values = i.op == Op::kForward         ? times_.forward
                                          : i.op == Op::kBackward      ? times_.backward
                                          : i.op == Op::kBackwardInput ? times_.backward_input
                                                                       : times_.backward_weight;
        Time length = entry(values, cell(k));
        if (!times_.micro_batch_factor.empty())
            length = scaled_ns(length, times_.micro_batch_factor[index(first_factor_ + i.micro_batch)]);
        const auto parameters = parameters_.find({s, i.chunk});
        if (i.op == Op::kForward && parameters != parameters_.end()) {
            start = std::max(start, first_bucket_[{s, i.chunk}]);
            clock_[index(s)] = std::max(start + length, parameters->second);
            parameters_.erase(parameters);
        } else {
            clock_[index(s)] = start + length;
        }
        if (i.op == Op::kBackward || i.op == Op::kBackwardWeight) {
            out_.start[{s, i.chunk}] = start;
            out_.end[{s, i.chunk}] = start + length;
        }
        ++at_[index(s)];
        return true;
    }

    /// Blocking: the stage stands still from the end of its last operation until all messages of the batch are through.
    bool batch(int s) {
        const Program& program = programs_[index(s)];
        std::size_t end = at_[index(s)] + 1;
        while (end < program.size() && program[end].batched) ++end;
        if (batch_started_[index(s)] < 0) {
            Time longest = 0;
            for (std::size_t i = at_[index(s)]; i < end; ++i)
                if (sends(program[i])) longest = std::max(longest, delay(key(s, program[i])));
            batch_started_[index(s)] = clock_[index(s)] + longest;
            for (std::size_t i = at_[index(s)]; i < end; ++i)
                (sends(program[i]) ? sent_ : received_)[key(s, program[i])] = batch_started_[index(s)];
        }
        Time through = batch_started_[index(s)];
        for (std::size_t i = at_[index(s)]; i < end; ++i) {
            const MessageKey m = key(s, program[i]);
            if (!sent_.contains(m) || !received_.contains(m)) return false;
            arrived_[m] = std::max(sent_[m], received_[m]) + wire(m);
            through = std::max(through, arrived_[m]);
        }
        clock_[index(s)] = through;
        batch_started_[index(s)] = -1;
        at_[index(s)] = end;
        return true;
    }

    /// Posted: the worker waits for the message before it on that pair's stream, and with a send for the delay.
    bool posted(int s, const Instruction& i) {
        const MessageKey m = key(s, i);
        const bool next = i.op == Op::kSendActivation || i.op == Op::kReceiveGradient;
        auto& before = previous_on_link_[index(s)][next];
        if (before) {
            const auto done = arrived_.find(*before);
            if (done == arrived_.end()) return false;
            clock_[index(s)] = std::max(clock_[index(s)], done->second);
        }
        if (sends(i)) clock_[index(s)] += delay(m);
        (sends(i) ? sent_ : received_)[m] = clock_[index(s)];
        if (sent_.contains(m) && received_.contains(m)) arrived_[m] = std::max(sent_[m], received_[m]) + wire(m);
        before = m;
        ++at_[index(s)];
        return true;
    }

    /// Overlapped: a queue for each direction that empties by itself.
    bool beside(int s, const Instruction& i) {
        if (sends(i)) {
            const MessageKey m = key(s, i);
            Time& queue = queues_[{s, i.op == Op::kSendGradient}];
            queue = std::max(queue, clock_[index(s)]) + delay(m) + wire(m);
            arrived_[m] = queue;
        }
        ++at_[index(s)];
        return true;
    }

    const Plan& plan_;
    const Layout& layout_;
    const int replica_;
    const StepTimes& times_;
    int micro_batches_ = 0;
    int first_factor_ = 0;
    std::vector<Program> programs_;
    std::vector<std::size_t> at_;
    std::vector<Time> clock_, batch_started_, gather_clock_;
    std::vector<std::map<bool, std::optional<MessageKey>>> previous_on_link_;
    std::map<MessageKey, Time> sent_, received_, arrived_;
    std::map<std::pair<int, bool>, Time> queues_;
    std::map<std::pair<int, int>, Time> first_bucket_, parameters_;
    Ends out_;
};

}  // namespace

std::int64_t reference_iteration(const Plan& plan, bool tied_embedding, const StepTimes& times) {
    const Layout& layout = plan.layout;
    const int p = layout.pipeline, v = layout.virtual_pipeline;
    std::vector<Ends> replicas;
    for (int r = 0; r < layout.data; ++r) replicas.push_back(ReferenceReplica(plan, r, times).run());

    // Every worker goes through the rest of its program; all stages have the same kinds of steps in the same order.
    std::vector<std::vector<Time>> clock;
    for (const Ends& ends : replicas) clock.push_back(ends.stage);
    const auto tied = [&] {
        if (!tied_embedding || p == 1) return;
        const Time length = std::max(entry(times.reduce_tied_embedding, 0), entry(times.reduce_tied_embedding, p - 1));
        for (auto& worker : clock) worker.front() = worker.back() = std::max(worker.front(), worker.back()) + length;
    };
    const auto reduce = [&] {
        if (layout.data * layout.context == 1) return;
        for (int s = 0; s < p; ++s) {
            Time stream = 0;
            for (int i = 0; i < v; ++i) {
                const int c = layout.overlap_grad_reduce ? v - 1 - i : i;
                const Time all = entry(times.reduce_gradients, s * v + c);
                const Time last = std::min(all, entry(times.reduce_last_bucket, s * v + c));
                Time start = 0, end = 0, worker = 0;
                for (std::size_t r = 0; r < replicas.size(); ++r) {
                    start = std::max(start, replicas[r].start[{s, c}]);
                    end = std::max(end, replicas[r].end[{s, c}]);
                    worker = std::max(worker, clock[r][static_cast<std::size_t>(s)]);
                }
                if (layout.overlap_grad_reduce)
                    stream = std::max(std::max(stream, start) + all - last, end) + last;
                else
                    stream = std::max(stream, worker) + all;
            }
            for (auto& worker : clock)
                worker[static_cast<std::size_t>(s)] = std::max(worker[static_cast<std::size_t>(s)], stream);
        }
    };
    if (layout.distributed_optimizer && !layout.overlap_grad_reduce) {
        tied();
        reduce();
    } else {
        reduce();
        tied();
    }
    Time all_ready = 0, end = 0;
    for (const auto& worker : clock) all_ready = std::max(all_ready, *std::max_element(worker.begin(), worker.end()));
    for (int s = 0; s < p; ++s) {
        Time stage = 0;
        for (int r = 0; r < layout.data; ++r) stage = std::max(stage, all_ready + entry(times.optimizer, r * p + s));
        if (layout.distributed_optimizer && !layout.overlap_param_gather && layout.data * layout.context > 1)
            for (int c = 0; c < v; ++c) stage += entry(times.gather_parameters, s * v + c);
        end = std::max(end, stage);
    }
    return end;
}

}  // namespace headway::scenarios::timing_test
