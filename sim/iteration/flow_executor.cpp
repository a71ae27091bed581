#include "sim/iteration/flow_executor.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <utility>

#include "sim/iteration/event_queue.h"
#include "sim/iteration/flow_table.h"

namespace headway::sim {
namespace {

using scenarios::Task;
using scenarios::TaskKind;

// The network counts in parts of a byte, so that its whole numbers stay exact on links that are nearly down.
constexpr double kPartsOfByte = 1024.0;

bool is_reduction(TaskKind kind) {
    return kind == TaskKind::kReduceBuckets || kind == TaskKind::kReduce;
}
bool is_gathering(TaskKind kind) {
    return kind == TaskKind::kGatherFirst || kind == TaskKind::kGather;
}

}  // namespace

class FlowExecutor::Impl final : public FlowNetwork::Client {
    using Event = EventQueue::Event;
    using EventKind = EventQueue::Kind;

  public:
    Impl(scenarios::IterationGraph graph, const scenarios::Layout& layout, std::vector<int> replicas, Tables tables,
         int links)
        : graph_(std::move(graph)),
          successors_(graph_.graph.successors()),
          layout_(layout),
          replicas_(std::move(replicas)),
          tables_(std::move(tables)),
          flows_(links) {
        const auto tasks = static_cast<std::size_t>(graph_.graph.size());
        version_.resize(tasks);
        start_.resize(tasks);
        end_.resize(tasks);
        running_.resize(tasks);
        closing_.resize(tasks);
        hops_left_.resize(tasks);
        position_of_replica_.assign(static_cast<std::size_t>(layout.data), -1);
        for (std::size_t i = 0; i < replicas_.size(); ++i)
            position_of_replica_[static_cast<std::size_t>(replicas_[i])] = static_cast<int>(i);
    }

    const scenarios::TaskGraph& graph() const { return graph_.graph; }
    const std::vector<int>& replicas() const { return replicas_; }
    void hand_over_everything(bool everything) { everything_ = everything; }

    IterationOutcome run(const IterationState& state, const std::vector<IterationChange>& changes, FlowNetwork* network,
                         std::vector<std::pair<std::int64_t, std::int64_t>>* times) {
        network_ = network;
        changes_ = &changes;
        reset(state);
        for (std::size_t i = 0; i < changes.size(); ++i)
            queue_.push(changes[i].at_ns, static_cast<std::int32_t>(i), 0, EventKind::kChange);
        for (std::int32_t i = 0; i < graph().size(); ++i)
            if (in_degree_[index(i)] == 0) ready_.push_back(i);
        start_ready(0);
        while (finished_ < graph().size()) {
            if (network_ != nullptr && network_->flows_in_flight() > 0) {
                inside_network_ = true;
                network_->run(*this);
                inside_network_ = false;
            } else if (!queue_.empty()) {
                advance(queue_.next_at());
            } else {
                throw std::logic_error("the iteration stands still: a task waits for something that never ends");
            }
        }
        IterationOutcome outcome;
        outcome.duration_ns = last_end_;
        outcome.compute_ns = compute_ns_;
        outcome.contended_flows = contended_;
        if (times != nullptr) {
            times->clear();
            for (std::size_t i = 0; i < start_.size(); ++i) times->emplace_back(start_[i], end_[i]);
        }
        return outcome;
    }

    // ---- FlowNetwork::Client ----
    std::int64_t next_event_ns() const override { return queue_.empty() ? -1 : queue_.next_at(); }

    void advance(std::int64_t now) override {
        while (!queue_.empty() && queue_.next_at() <= now) handle(queue_.pop());
    }

    void flow_done(int tag, std::int64_t now) override { finish_flow(tag, now); }

  private:
    static std::size_t index(std::int32_t i) { return static_cast<std::size_t>(i); }

    void reset(const IterationState& state) {
        in_degree_ = successors_.in_degree;
        std::fill(version_.begin(), version_.end(), 0u);
        std::fill(running_.begin(), running_.end(), 0);
        queue_.clear();
        flows_.clear();
        compute_ns_.assign(replicas_.size() * static_cast<std::size_t>(layout_.pipeline), 0);
        finished_ = 0;
        last_end_ = 0;
        contended_ = 0;
        durations_ = state.durations;
        set_capacities(state);
        split_collectives();
    }

    void set_capacities(const IterationState& state) {
        alone_ = state.alone.empty() ? state.capacity : state.alone;
        capacity_ = network_ != nullptr ? state.capacity : alone_;
        if (network_ == nullptr) return;
        for (std::size_t i = 0; i < capacity_.size(); ++i)
            if (network_->capacity(static_cast<int>(i)) != capacity_[i] * kPartsOfByte)
                network_->set_capacity(static_cast<int>(i), capacity_[i] * kPartsOfByte);
    }

    /// A collective may be two tasks (what overlaps with compute, and the rest): they share its bytes as they share its
    /// time.
    void split_collectives() {
        const auto places = static_cast<std::size_t>(layout_.pipeline * layout_.virtual_pipeline);
        reduce_ns_.assign(places, 0);
        gather_ns_.assign(places, 0);
        for (std::int32_t i = 0; i < graph().size(); ++i) {
            const Task& task = graph().task(i);
            if (is_reduction(task.kind)) reduce_ns_[place(task)] += durations_[index(i)];
            if (is_gathering(task.kind)) gather_ns_[place(task)] += durations_[index(i)];
        }
    }
    std::size_t place(const Task& task) const {
        return static_cast<std::size_t>(task.stage * layout_.virtual_pipeline + task.chunk);
    }

    void handle(const Event& event) {
        switch (event.kind) {
            case EventKind::kTaskEnds:
                if (version_[index(event.id)] == event.version) finish_task(event.id, event.at);
                break;
            case EventKind::kFlowEnds:
                if (flows_[event.id].version == event.version) finish_flow(event.id, event.at);
                break;
            case EventKind::kFlowStarts:
                if (flows_[event.id].version == event.version) put_on_wire(event.id, event.at, flows_[event.id].bytes);
                break;
            case EventKind::kChange:
                change((*changes_)[index(event.id)], event.at);
                break;
        }
    }

    // ---- tasks ----
    void start_ready(std::int64_t now) {
        // Tasks without duration end at once and may make others ready; the list grows while it is walked.
        for (std::size_t i = 0; i < ready_.size(); ++i) start_task(ready_[i], now);
        ready_.clear();
    }

    void start_task(std::int32_t i, std::int64_t now) {
        const Task& task = graph().task(i);
        const std::int64_t duration = durations_[index(i)];
        start_[index(i)] = now;
        if (is_message(task.kind)) {
            const auto& table = task.kind == TaskKind::kActivation ? tables_.activation : tables_.gradient;
            const MessagePath& path =
                table[static_cast<std::size_t>(task.replica * layout_.pipeline * layout_.virtual_pipeline) +
                      place(task)];
            if (path.flow && duration > 0) {
                hops_left_[index(i)] = 1;
                closing_[index(i)] = 0;
                const double alone = rate_of(path.route, alone_);
                const std::int64_t wire_start = now + duration - std::min(wire_ns(path.bytes, alone), duration);
                start_flow(i, path.route, std::min(path.bytes, alone * static_cast<double>(duration) * 1e-9),
                           wire_start, now);
                return;
            }
        } else if ((is_reduction(task.kind) || is_gathering(task.kind)) && duration > 0 &&
                   start_ring(i, task, duration, now)) {
            return;
        }
        if (duration == 0) {
            finish_task_now(i, now);
            return;
        }
        running_[index(i)] = 1;
        end_[index(i)] = now + duration;
        queue_.push(now + duration, i, version_[index(i)], EventKind::kTaskEnds);
    }

    void finish_task(std::int32_t i, std::int64_t now) {
        finish_task_now(i, now);
        start_ready(now);
    }

    void finish_task_now(std::int32_t i, std::int64_t now) {
        const Task& task = graph().task(i);
        running_[index(i)] = 0;
        end_[index(i)] = now;
        last_end_ = std::max(last_end_, now);
        ++finished_;
        if ((is_compute(task.kind) || task.kind == TaskKind::kOptimizer) && task.replica >= 0)
            compute_ns_[static_cast<std::size_t>(
                position_of_replica_[static_cast<std::size_t>(task.replica)] * layout_.pipeline + task.stage)] +=
                now - start_[index(i)];
        for (std::int32_t s = successors_.first[index(i)]; s < successors_.first[index(i) + 1]; ++s) {
            const std::int32_t next = successors_.task[index(s)];
            if (--in_degree_[index(next)] == 0) ready_.push_back(next);
        }
    }

    bool start_ring(std::int32_t i, const Task& task, std::int64_t duration, std::int64_t now) {
        const std::vector<RingHop>& ring = tables_.rings[static_cast<std::size_t>(task.stage)];
        const bool reduction = is_reduction(task.kind);
        const std::vector<double>& bytes = reduction ? tables_.reduce_bytes : tables_.gather_bytes;
        const std::int64_t whole = (reduction ? reduce_ns_ : gather_ns_)[place(task)];
        if (ring.empty() || bytes.empty() || whole <= 0) return false;
        const double own = bytes[place(task)] * static_cast<double>(duration) / static_cast<double>(whole);
        if (own <= 0.0) return false;
        std::int64_t longest = 0;
        for (const RingHop& hop : ring)
            longest = std::max(longest, std::min(wire_ns(own, rate_of(hop.route, alone_)), duration));
        hops_left_[index(i)] = static_cast<int>(ring.size());
        closing_[index(i)] = duration - longest;
        for (const RingHop& hop : ring)
            start_flow(i, hop.route, std::min(own, rate_of(hop.route, alone_) * static_cast<double>(duration) * 1e-9),
                       now, now);
        return true;
    }

    // ---- flows ----
    static double rate_of(const Route& route, const std::vector<double>& capacity) {
        double rate = capacity[index(route.links[0])];
        for (int l = 1; l < route.count; ++l)
            rate = std::min(rate, capacity[index(route.links[static_cast<std::size_t>(l)])]);
        return rate;
    }
    static std::int64_t wire_ns(double bytes, double rate) { return std::llround(bytes / rate * 1e9); }

    void start_flow(std::int32_t task, const Route& route, double bytes, std::int64_t wire_start, std::int64_t now) {
        const double rate = rate_of(route, capacity_);
        const std::int64_t end = wire_start + wire_ns(bytes, rate);
        const std::int32_t id = flows_.add({task, route, rate, bytes, wire_start, end});
        bool crowded = false;
        for (int l = 0; l < route.count; ++l)
            crowded = crowded || flows_.overloaded(FlowTable::link_of(flows_[id], l), capacity_);
        if (network_ != nullptr && everything_) {
            hand_over(id, now);
            --contended_;
        } else if (crowded && network_ != nullptr) {
            for (int l = 0; l < route.count; ++l) {
                const std::size_t link = FlowTable::link_of(flows_[id], l);
                if (flows_.overloaded(link, capacity_)) hand_over_all(link, now);
            }
        } else {
            queue_.push(end, id, flows_[id].version, EventKind::kFlowEnds);
        }
    }

    void hand_over_all(std::size_t link, std::int64_t now) {
        for (const std::int32_t id : flows_.on_link(link)) hand_over(id, now);
    }

    /// From here on the network says when the flow ends.
    void hand_over(std::int32_t id, std::int64_t now) {
        Flow& flow = flows_[id];
        if (flow.contends) return;
        flow.contends = true;
        ++contended_;
        ++flow.version;
        if (now < flow.wire_start) {
            queue_.push(flow.wire_start, id, flow.version, EventKind::kFlowStarts);
        } else {
            const std::int64_t whole = flow.end - flow.wire_start;
            const double left = whole > 0 ? static_cast<double>(flow.end - now) / static_cast<double>(whole) : 0.0;
            put_on_wire(id, now, flow.bytes * left);
        }
    }

    void put_on_wire(std::int32_t id, std::int64_t now, double bytes) {
        Flow& flow = flows_[id];
        flow.on_wire = true;
        if (network_->flows_in_flight() == 0 && !inside_network_) network_->open_span(now);
        network_->start(flow.route.source, flow.route.sink,
                        std::max<std::int64_t>(1, std::llround(bytes * kPartsOfByte)), id);
    }

    void finish_flow(std::int32_t id, std::int64_t now) {
        const std::int32_t task = flows_[id].task;
        flows_.remove(id);
        if (--hops_left_[index(task)] > 0) return;
        if (closing_[index(task)] > 0) {
            queue_.push(now + closing_[index(task)], task, version_[index(task)], EventKind::kTaskEnds);
        } else {
            finish_task(task, now);
        }
    }

    // ---- the state changes within the iteration ----
    void change(const IterationChange& change, std::int64_t now) {
        // Running work keeps the share that is done and does the rest at the new pace.
        for (std::int32_t i = 0; i < graph().size(); ++i) {
            if (!running_[index(i)]) continue;
            const std::int64_t before = durations_[index(i)];
            const std::int64_t after = change.state.durations[index(i)];
            if (before == after || before <= 0) continue;
            const double left = static_cast<double>(end_[index(i)] - now) / static_cast<double>(before);
            end_[index(i)] = now + std::llround(left * static_cast<double>(after));
            queue_.push(end_[index(i)], i, ++version_[index(i)], EventKind::kTaskEnds);
        }
        // Flows on a link that changes go to the network with what they still have to carry (or, where nothing
        // contends, take their new rate).
        std::vector<bool> changed(capacity_.size(), false);
        for (std::size_t l = 0; l < capacity_.size(); ++l)
            changed[l] = capacity_[l] != change.state.capacity[l];  // only asked with a network
        for (std::int32_t id = 0; id < flows_.size(); ++id) {
            const Flow& flow = flows_[id];
            if (!flow.active) continue;
            bool touched = false;
            for (int l = 0; l < flow.route.count; ++l) touched = touched || changed[FlowTable::link_of(flow, l)];
            if (touched && network_ != nullptr) hand_over(id, now);
        }
        durations_ = change.state.durations;
        set_capacities(change.state);
        split_collectives();
        for (std::int32_t id = 0; id < flows_.size(); ++id) {
            Flow& flow = flows_[id];
            if (!flow.active) continue;
            const double rate = rate_of(flow.route, capacity_);
            if (rate == flow.rate) continue;
            if (!flow.contends) {
                const std::int64_t begun = std::max(now, flow.wire_start);
                flow.end = begun + std::llround(static_cast<double>(flow.end - begun) * flow.rate / rate);
                queue_.push(flow.end, id, ++flow.version, EventKind::kFlowEnds);
            }
            flows_.set_rate(id, rate);
        }
    }

    scenarios::IterationGraph graph_;
    scenarios::TaskGraph::Successors successors_;
    scenarios::Layout layout_;
    std::vector<int> replicas_;
    std::vector<int> position_of_replica_;
    Tables tables_;

    FlowNetwork* network_ = nullptr;
    const std::vector<IterationChange>* changes_ = nullptr;
    bool inside_network_ = false;

    std::vector<std::int64_t> durations_;
    std::vector<double> capacity_;
    std::vector<double> alone_;
    std::vector<std::int64_t> reduce_ns_;  // [places] all tasks of the chunk's reduction
    std::vector<std::int64_t> gather_ns_;

    std::vector<std::int32_t> in_degree_;
    std::vector<std::uint32_t> version_;
    std::vector<std::int64_t> start_;
    std::vector<std::int64_t> end_;
    std::vector<char> running_;          // plain events: compute, fixed delays
    std::vector<std::int64_t> closing_;  // after the last hop
    std::vector<std::int32_t> hops_left_;
    std::vector<std::int32_t> ready_;
    EventQueue queue_;
    std::int32_t finished_ = 0;
    std::int64_t last_end_ = 0;
    int contended_ = 0;
    bool everything_ = false;

    FlowTable flows_;
    std::vector<std::int64_t> compute_ns_;
};

FlowExecutor::FlowExecutor(scenarios::IterationGraph graph, const scenarios::Layout& layout, std::vector<int> replicas,
                           Tables tables, int links)
    : impl_(std::make_unique<Impl>(std::move(graph), layout, std::move(replicas), std::move(tables), links)) {}
FlowExecutor::~FlowExecutor() = default;
FlowExecutor::FlowExecutor(FlowExecutor&&) noexcept = default;
FlowExecutor& FlowExecutor::operator=(FlowExecutor&&) noexcept = default;

const scenarios::TaskGraph& FlowExecutor::graph() const {
    return impl_->graph();
}
const std::vector<int>& FlowExecutor::replicas() const {
    return impl_->replicas();
}
void FlowExecutor::hand_over_everything(bool everything) {
    impl_->hand_over_everything(everything);
}
IterationOutcome FlowExecutor::run(const IterationState& state, const std::vector<IterationChange>& changes,
                                   FlowNetwork* network, std::vector<std::pair<std::int64_t, std::int64_t>>* times) {
    return impl_->run(state, changes, network, times);
}

}  // namespace headway::sim
