#include <algorithm>
#include <initializer_list>
#include <span>
#include <stdexcept>

#include "scenarios/language/program.h"
#include "scenarios/timing/task_graph.h"

namespace headway::scenarios {

namespace {

constexpr std::int32_t kNoTask = -1;

TaskKind task_kind_of(Op op) {
    switch (op) {
        case Op::kForward:
            return TaskKind::kForward;
        case Op::kBackward:
            return TaskKind::kBackward;
        case Op::kBackwardInput:
            return TaskKind::kBackwardInput;
        default:
            return TaskKind::kBackwardWeight;
    }
}

/// Walks the programs of all stages side by side, each as far as its messages allow, and turns them into tasks. Tasks
/// come out in an order in which predecessors stand first.
class ReplicaGraphBuilder {
  public:
    ReplicaGraphBuilder(const Layout& layout, int micro_batches)
        : layout_(layout), mode_(message_mode(layout)), micro_batches_(micro_batches) {
        const auto stages = static_cast<std::size_t>(layout.pipeline);
        const auto cells = static_cast<std::size_t>(layout.virtual_stages());
        programs_ = make_programs(layout, false, micro_batches);
        // Computes, and a message and a delay for every send; joins are few.
        std::size_t instructions = 0;
        for (const Program& program : programs_) instructions += program.size();
        out_.graph.reserve(instructions + instructions / 4, 2 * instructions);
        at_.assign(stages, 0);
        posted_.assign(stages, 0);
        tails_.resize(stages);
        gradients_left_.assign(cells, micro_batches);
        lanes_.assign(stages * 2, kNoTask);
        on_link_.assign(stages * 2, nullptr);
        messages_.resize(2 * cells * static_cast<std::size_t>(micro_batches));
        out_.last_of_stage.assign(stages, kNoTask);
        out_.gradient_of_chunk.assign(cells, kNoTask);
        out_.buckets_of_chunk.assign(cells, kNoTask);
        gather_first_.assign(cells, kNoTask);
        gather_.assign(cells, kNoTask);
    }

    ReplicaGraph build() {
        bool unfinished = true;
        for (bool moved = true; moved;) {
            moved = false;
            unfinished = false;
            for (int s = 0; s < layout_.pipeline; ++s) {
                while (step(s)) moved = true;
                unfinished = unfinished || at_[index(s)] < programs_[index(s)].size();
            }
        }
        if (unfinished) throw std::logic_error("the programs of a replica wait for each other");
        for (int s = 0; s < layout_.pipeline; ++s) out_.last_of_stage[index(s)] = joined_tail(s);
        return std::move(out_);
    }

  private:
    struct Message {
        std::int32_t task = kNoTask;
        bool send_posted = false;
        bool receive_posted = false;
        std::int32_t send_after = kNoTask;
        std::int32_t receive_after = kNoTask;
    };

    /// The message of an instruction, named by its sender.
    struct Route {
        int stage;
        int chunk;
        int micro_batch;
        bool gradient;
        bool sends;  // the instruction is the send, not the receive
    };

    static std::size_t index(int i) { return static_cast<std::size_t>(i); }
    std::size_t cell(int stage, int chunk) const { return index(stage * layout_.virtual_pipeline + chunk); }

    Route route_of(int stage, const Instruction& instruction) const {
        const int p = layout_.pipeline, k = instruction.chunk * p + stage;
        switch (instruction.op) {
            case Op::kSendActivation:
                return {stage, instruction.chunk, instruction.micro_batch, false, true};
            case Op::kSendGradient:
                return {stage, instruction.chunk, instruction.micro_batch, true, true};
            case Op::kReceiveActivation:
                return {(k - 1) % p, (k - 1) / p, instruction.micro_batch, false, false};
            default:
                return {(k + 1) % p, (k + 1) / p, instruction.micro_batch, true, false};
        }
    }
    Message& message(const Route& route) {
        const std::size_t place =
            (route.gradient ? index(layout_.virtual_stages()) : 0) + cell(route.stage, route.chunk);
        return messages_[place * index(micro_batches_) + index(route.micro_batch)];
    }

    std::int32_t add(TaskKind kind, int stage, int chunk, int micro_batch, std::initializer_list<std::int32_t> after) {
        std::vector<std::int32_t>& predecessors = predecessors_;
        predecessors.clear();
        for (const std::int32_t p : after)
            if (p != kNoTask && std::find(predecessors.begin(), predecessors.end(), p) == predecessors.end())
                predecessors.push_back(p);
        return out_.graph.add({kind, static_cast<std::int16_t>(chunk), stage, 0, micro_batch}, predecessors);
    }
    std::int32_t add_join(int stage, std::span<const std::int32_t> after) {
        return out_.graph.add({TaskKind::kJoin, 0, stage, 0, 0}, after);
    }
    std::int32_t add_delay(const Route& route, std::initializer_list<std::int32_t> after) {
        return add(route.gradient ? TaskKind::kGradientDelay : TaskKind::kActivationDelay, route.stage, route.chunk,
                   route.micro_batch, after);
    }
    std::int32_t add_message(const Route& route, std::initializer_list<std::int32_t> after) {
        return add(route.gradient ? TaskKind::kGradient : TaskKind::kActivation, route.stage, route.chunk,
                   route.micro_batch, after);
    }

    /// What the worker's compute stream waits for, as one task (none at the start of the iteration).
    std::int32_t joined_tail(int stage) {
        std::vector<std::int32_t>& tail = tails_[index(stage)];
        if (tail.empty()) return kNoTask;
        if (tail.size() > 1) tail.assign(1, add_join(stage, tail));
        return tail.front();
    }

    /// Executes what comes next in the program of `stage`. False when it has to wait or is at its end.
    bool step(int stage) {
        const Program& program = programs_[index(stage)];
        std::size_t& at = at_[index(stage)];
        if (at == program.size()) return false;
        const Instruction& instruction = program[at];
        if (is_message(instruction.op)) {
            if (mode_ == MessageMode::kBlocking) return exchange_batch(stage);
            if (mode_ == MessageMode::kPosted ? !post_single(stage, instruction) : !send_beside(stage, instruction))
                return false;
        } else if (is_compute(instruction.op)) {
            if (!compute(stage, instruction)) return false;
        } else if (instruction.op == Op::kGatherParameters && layout_.overlap_param_gather) {
            gather(stage, instruction.chunk);
        }
        ++at;
        return true;
    }

    bool compute(int stage, const Instruction& instruction) {
        std::vector<std::int32_t>& tail = tails_[index(stage)];
        const std::size_t place = cell(stage, instruction.chunk);
        if (mode_ != MessageMode::kBlocking && !await_input(stage, instruction)) return false;
        const bool completes = instruction.op == Op::kBackward || instruction.op == Op::kBackwardWeight;
        const bool last = completes && --gradients_left_[place] == 0;
        if (last && layout_.overlap_grad_reduce) out_.buckets_of_chunk[place] = joined_tail(stage);
        const bool gathers = instruction.op == Op::kForward && gather_[place] != kNoTask;
        if (gathers) tail.push_back(gather_first_[place]);
        std::int32_t done =
            out_.graph.add({task_kind_of(instruction.op), instruction.chunk, stage, 0, instruction.micro_batch}, tail);
        if (last) out_.gradient_of_chunk[place] = done;
        if (gathers) {
            const std::int32_t both[] = {done, gather_[place]};
            done = add_join(stage, both);
            gather_[place] = kNoTask;
        }
        tail.assign(1, done);
        return true;
    }

    /// Lets the compute stream wait for the message that brings the operation's input. False when nobody has sent it
    /// yet.
    bool await_input(int stage, const Instruction& instruction) {
        const int k = instruction.chunk * layout_.pipeline + stage;
        Op op = Op::kReceiveActivation;
        if (instruction.op == Op::kForward) {
            if (k == 0) return true;
        } else if (instruction.op == Op::kBackwardWeight || k == layout_.virtual_stages() - 1) {
            return true;
        } else {
            op = Op::kReceiveGradient;
        }
        const std::int32_t input =
            message(route_of(stage, {op, instruction.chunk, false, instruction.micro_batch})).task;
        if (input == kNoTask) return false;
        tails_[index(stage)].push_back(input);
        return true;
    }

    void gather(int stage, int chunk) {
        const std::int32_t before = chunk == 0 ? kNoTask : gather_[cell(stage, chunk - 1)];
        const std::int32_t first = add(TaskKind::kGatherFirst, stage, chunk, 0, {before});
        gather_first_[cell(stage, chunk)] = first;
        gather_[cell(stage, chunk)] = add(TaskKind::kGather, stage, chunk, 0, {first});
    }

    /// Notes that one end of a message is ready; with both ends ready it can travel.
    void post(const Route& route, std::int32_t after) {
        Message& m = message(route);
        (route.sends ? m.send_posted : m.receive_posted) = true;
        (route.sends ? m.send_after : m.receive_after) = after;
        if (m.send_posted && m.receive_posted) m.task = add_message(route, {m.send_after, m.receive_after});
    }

    /// kBlocking. False when the batch waits for a message that the other side has not come to yet.
    bool exchange_batch(int stage) {
        const Program& program = programs_[index(stage)];
        std::size_t& at = at_[index(stage)];
        std::size_t end = at + 1;
        while (end < program.size() && program[end].batched) ++end;
        if (posted_[index(stage)] != end) {
            const std::int32_t start = batch_start(stage, std::span(&program[at], end - at));
            for (std::size_t i = at; i < end; ++i) post(route_of(stage, program[i]), start);
            posted_[index(stage)] = end;
        }
        through_.clear();  // each already waits for what the stream waited for
        for (std::size_t i = at; i < end; ++i) {
            through_.push_back(message(route_of(stage, program[i])).task);
            if (through_.back() == kNoTask) return false;
        }
        tails_[index(stage)].assign(through_.begin(), through_.end());
        at = end;
        return true;
    }

    /// The moment from which a batch can run: the stream is free and the longest delay of the batch's sends has passed.
    std::int32_t batch_start(int stage, std::span<const Instruction> batch) {
        const std::int32_t free = joined_tail(stage);
        delays_.clear();
        for (const Instruction& instruction : batch) {
            const Route route = route_of(stage, instruction);
            if (route.sends) delays_.push_back(add_delay(route, {free}));
        }
        if (delays_.empty()) return free;
        return delays_.size() == 1 ? delays_.front() : add_join(stage, delays_);
    }

    /// kPosted. False while the message before this one on the same link has not found its other end.
    bool post_single(int stage, const Instruction& instruction) {
        const Route route = route_of(stage, instruction);
        const bool next = instruction.op == Op::kSendActivation || instruction.op == Op::kReceiveGradient;
        Message*& on_link = on_link_[index(stage * 2 + (next ? 1 : 0))];
        if (on_link != nullptr && on_link->task == kNoTask) return false;
        std::vector<std::int32_t>& tail = tails_[index(stage)];
        if (on_link != nullptr) tail.push_back(on_link->task);
        std::int32_t launched = joined_tail(stage);
        if (route.sends) {
            launched = add_delay(route, {launched});
            tail.assign(1, launched);
        }
        post(route, launched);
        on_link = &message(route);
        return true;
    }

    /// kOverlapped. A receive has nothing to do: the operation that needs the message waits for it.
    bool send_beside(int stage, const Instruction& instruction) {
        const Route route = route_of(stage, instruction);
        if (!route.sends) return true;
        std::int32_t& lane = lanes_[index(stage * 2 + (route.gradient ? 1 : 0))];
        lane = message(route).task = add_message(route, {add_delay(route, {joined_tail(stage), lane})});
        return true;
    }

    const Layout& layout_;
    const MessageMode mode_;
    const int micro_batches_;
    std::vector<Program> programs_;
    std::vector<std::size_t> at_;                   // [stage] next instruction
    std::vector<std::size_t> posted_;               // [stage] end of the last batch that was posted
    std::vector<std::vector<std::int32_t>> tails_;  // [stage] what the compute stream waits for
    std::vector<int> gradients_left_;               // [cell] backwards still to come
    std::vector<std::int32_t> lanes_;               // [stage][gradient] last message sent (kOverlapped)
    std::vector<Message*> on_link_;  // [stage][next] last message on the link, as this end sees it (kPosted)
    std::vector<std::int32_t> gather_first_, gather_;            // [cell] until the first forward has used them
    std::vector<Message> messages_;                              // [gradient][cell][micro-batch], by sender
    std::vector<std::int32_t> predecessors_, through_, delays_;  // scratch
    ReplicaGraph out_;
};

}  // namespace

MessageMode message_mode(const Layout& layout) {
    if (layout.overlap_pipeline_comm) return MessageMode::kOverlapped;
    return layout.schedule == Schedule::kZeroBubble ? MessageMode::kPosted : MessageMode::kBlocking;
}

ReplicaGraph replica_graph(const Layout& layout, int micro_batches) {
    return ReplicaGraphBuilder(layout, micro_batches).build();
}

}  // namespace headway::scenarios
