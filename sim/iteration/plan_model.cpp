#include "sim/iteration/plan_model.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>
#include <set>

namespace headway::sim {
namespace {

using scenarios::Layout;
using scenarios::StepTimes;

constexpr std::size_t kMemoEntries = 8192;     // then it starts afresh: memory stays flat
constexpr std::size_t kMemoWorkers = 1 << 18;  // of all entries together
constexpr std::size_t kExecutors = 6;
constexpr double kPaceGrid = 32.0;

std::uint64_t mix_key(std::uint64_t z) {
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
    return z ^ (z >> 31);
}

std::size_t position(int i) {
    return static_cast<std::size_t>(i);
}

template <class T>
void remember(T& memo, std::size_t most) {
    if (memo.size() >= most) memo.clear();
}

}  // namespace

FlowNetwork& SharedNetwork::get() {
    if (!network_) {
        const std::vector<double> capacity(position(topology_.links()), 1.0);
        network_ = std::make_unique<FlowNetwork>(capacity, topology_.sources(), topology_.sinks());
    }
    return *network_;
}

PlanModel::PlanModel(const scenarios::Cluster& cluster, const Topology& topology, SharedNetwork& network,
                     const scenarios::Plan& plan, scenarios::IterationCosts costs, bool tied_embedding,
                     const SimulationOptions& options)
    : cluster_(cluster),
      topology_(topology),
      network_(network),
      plan_(plan),
      options_(options),
      tied_embedding_(tied_embedding),
      costs_(std::move(costs)),
      timer_(costs_, plan_, cluster_),
      evaluator_(plan, tied_embedding) {
    healthy_ = timer_.at({});
    for (int replica = 0; replica < plan_.layout.data; ++replica)
        for (int stage = 0; stage < plan_.layout.pipeline; ++stage)
            for (int member = 1; member < plan_.layout.ranks_per_worker(); ++member)
                workers_span_nodes_ =
                    workers_span_nodes_ || topology_.node_of_gpu(plan_.gpu_of_worker(replica, stage, member)) !=
                                               topology_.node_of_gpu(port(replica, stage));
    healthy_capacity_ = topology_.capacities(plan_, std::vector<bool>(position(plan_.layout.data), true));
    prepare_sends();
    prepare_rings();
    prepare_uplinks();
}

PlanModel::~PlanModel() = default;

std::vector<int> PlanModel::representatives(const StepTimes& times, const std::vector<double>& capacity) const {
    const Layout& layout = plan_.layout;
    std::vector<int> all(position(layout.data));
    std::iota(all.begin(), all.end(), 0);
    if (options_.path == Path::kFlowsUnfolded || options_.path == Path::kFlowsReference ||
        !times.micro_batch_factor.empty())
        return all;
    if (options_.path == Path::kAutomatic && uplinks_may_contend(capacity)) return all;
    const std::size_t cells = position(layout.pipeline * layout.virtual_pipeline);
    std::set<std::vector<std::uint64_t>> seen;
    std::vector<int> result;
    for (const int replica : all) {
        std::vector<std::uint64_t> look{static_cast<std::uint64_t>(plan_.micro_batches_of_replica[position(replica)])};
        const auto add = [&](const std::vector<std::int64_t>& values, std::size_t per_replica) {
            if (values.empty()) return;
            for (std::size_t i = 0; i < per_replica; ++i)
                look.push_back(static_cast<std::uint64_t>(values[position(replica) * per_replica + i]));
        };
        for (const auto* values :
             {&times.forward, &times.backward, &times.backward_input, &times.backward_weight, &times.send_activation,
              &times.send_gradient, &times.delay_activation, &times.delay_gradient})
            add(*values, cells);
        add(times.optimizer, position(layout.pipeline));
        for (const auto* paths : {&activation_, &gradient_}) {
            for (std::size_t i = 0; i < cells; ++i) {
                const SendPath& path = (*paths)[position(replica) * cells + i];
                if (!path.across) continue;
                const Route route = topology_.route(path.from, path.to, path.leaves_rack);
                for (int l = 0; l < route.count; ++l)
                    look.push_back(std::bit_cast<std::uint64_t>(capacity[position(route.links[position(l)])]));
            }
        }
        if (seen.insert(std::move(look)).second) result.push_back(replica);
    }
    return result;
}

FlowExecutor& PlanModel::executor(const std::vector<int>& replicas) {
    auto found = executors_.find(replicas);
    if (found != executors_.end()) return *found->second.executor;
    if (executors_.size() >= kExecutors) executors_.clear();
    const Layout& layout = plan_.layout;
    const bool whole = replicas.size() == position(layout.data);

    FlowExecutor::Tables tables;
    const auto message = [&](const SendPath& path) {
        MessagePath result;
        if (!path.across || path.wire_ns <= 0.0) return result;
        result.flow = true;
        result.route = topology_.route(path.from, path.to, path.leaves_rack);
        result.bytes = path.wire_ns * path.rate * 1e-9;
        return result;
    };
    for (const SendPath& path : activation_) tables.activation.push_back(message(path));
    for (const SendPath& path : gradient_) tables.gradient.push_back(message(path));
    tables.rings.resize(rings_.size());
    for (std::size_t stage = 0; stage < rings_.size(); ++stage) {
        for (RingHop hop : rings_[stage]) {
            if (!std::binary_search(replicas.begin(), replicas.end(), hop.replica)) continue;
            // Where the neighbour is folded away, the replica's own receiving side stands for the neighbour's.
            const int gpu = port(hop.replica, static_cast<int>(stage));
            if (!whole) hop.route = topology_.route(gpu, gpu, false);
            tables.rings[stage].push_back(hop);
        }
    }
    tables.reduce_bytes = reduce_bytes_;
    tables.gather_bytes = gather_bytes_;

    std::vector<int> micro_batches;
    std::vector<bool> simulated(position(layout.data), false);
    for (const int replica : replicas) {
        micro_batches.push_back(plan_.micro_batches_of_replica[position(replica)]);
        simulated[position(replica)] = true;
    }
    Folded folded;
    folded.healthy_capacity = topology_.capacities(plan_, simulated);
    folded.executor =
        std::make_unique<FlowExecutor>(scenarios::iteration_graph(layout, tied_embedding_, replicas, micro_batches),
                                       layout, replicas, std::move(tables), topology_.links());
    folded.executor->hand_over_everything(options_.path == Path::kFlowsReference);
    return *executors_.emplace(replicas, std::move(folded)).first->second.executor;
}

Duration PlanModel::flows(const std::vector<std::pair<Duration, ClusterState>>& states, bool contention, Spans* spans) {
    // Replicas are folded that are equal in every state.
    std::vector<StepTimes> times;
    std::vector<int> replicas;
    for (const auto& [at, state] : states) {
        times.push_back(times_of(state));
        const std::vector<int> now = representatives(times.back(), capacities(state, healthy_capacity_));
        std::vector<int> both;
        std::set_union(replicas.begin(), replicas.end(), now.begin(), now.end(), std::back_inserter(both));
        replicas = std::move(both);
    }
    if (spans != nullptr) {
        replicas.resize(position(plan_.layout.data));
        std::iota(replicas.begin(), replicas.end(), 0);
    }
    FlowExecutor& engine = executor(replicas);
    const std::vector<double>& healthy = executors_.at(replicas).healthy_capacity;
    std::vector<IterationChange> changes;
    IterationState first;
    for (std::size_t i = 0; i < states.size(); ++i) {
        IterationState state{
            scenarios::task_durations(engine.graph(), plan_.layout, plan_.micro_batches_of_replica, times[i]),
            capacities(states[i].second, healthy), capacities(states[i].second, healthy_capacity_)};
        if (i == 0)
            first = std::move(state);
        else
            changes.push_back({states[i].first.ns(), std::move(state)});
    }
    const IterationOutcome outcome = engine.run(first, changes, contention ? &network_.get() : nullptr, spans);
    ++flow_iterations_;
    contended_flows_ += outcome.contended_flows;
    return Duration::nanoseconds(outcome.duration_ns);
}

PlanModel::Key PlanModel::key_of(const StepTimes& times, const std::vector<double>& capacity) const {
    Key key{0x243f6a8885a308d3ULL, 0x13198a2e03707344ULL};
    const auto add = [&](std::uint64_t value) {
        key.a = mix_key(key.a + value + 0x9e3779b97f4a7c15ULL);
        key.b = mix_key((key.b ^ value) + 0xc2b2ae3d27d4eb4fULL);
    };
    for (const auto* values :
         {&times.forward, &times.backward, &times.backward_input, &times.backward_weight, &times.send_activation,
          &times.send_gradient, &times.delay_activation, &times.delay_gradient, &times.reduce_gradients,
          &times.reduce_last_bucket, &times.reduce_tied_embedding, &times.optimizer, &times.gather_parameters,
          &times.gather_first_bucket}) {
        add(values->size());
        for (const std::int64_t value : *values) add(static_cast<std::uint64_t>(value));
    }
    for (const double value : times.micro_batch_factor) add(std::bit_cast<std::uint64_t>(value));
    add(capacity.size());
    for (const double value : capacity) add(std::bit_cast<std::uint64_t>(value));
    return key;
}

Duration PlanModel::flows_of(const ClusterState& state, const StepTimes& times) {
    const Key key = key_of(times, capacities(state, healthy_capacity_));
    if (options_.memo) {
        if (const auto found = flow_memo_.find(key); found != flow_memo_.end()) return found->second;
    }
    const Duration result = flows({{Duration(), state}}, true);
    if (options_.memo) {
        remember(flow_memo_, kMemoEntries);
        flow_memo_.emplace(key, result);
    }
    return result;
}

IterationTimes PlanModel::steady(const ClusterState& state, const ClusterState* contention_of) {
    const StepTimes times = times_of(state);
    Key key;
    if (options_.memo && contention_of == nullptr) {
        key = key_of(times, capacities(state, healthy_capacity_));
        if (const auto found = memo_.find(key); found != memo_.end()) {
            ++memo_hits_;
            return found->second;
        }
    }
    scenarios::Evaluation evaluation = evaluator_.evaluate(times);
    IterationTimes result;
    if (uses_flows()) {
        if (contention_of == nullptr) {
            result.contention = flows_of(state, times) - evaluation.iteration;
        } else {
            ClusterState rounded_state = *contention_of;
            rounded_state.micro_batch_factor.clear();
            for (scenarios::GpuPace& pace : rounded_state.paces) {
                for (double* part : {&pace.compute, &pace.memory, &pace.fabric})
                    *part = std::max(1.0, std::round(*part * kPaceGrid)) / kPaceGrid;
            }
            const StepTimes rounded_times = times_of(rounded_state);
            result.contention = flows_of(rounded_state, rounded_times) - evaluator_.iteration_time(rounded_times);
        }
    }
    result.duration = evaluation.iteration + result.contention;
    result.workers = std::move(evaluation.workers);
    for (scenarios::WorkerTimes& worker : result.workers) worker.idle += result.contention;
    if (options_.memo && contention_of == nullptr) {
        remember(memo_, std::clamp<std::size_t>(kMemoWorkers / position(plan_.workers()), 64, kMemoEntries));
        memo_.emplace(key, result);
    }
    return result;
}

IterationTimes PlanModel::changing(const std::vector<std::pair<Duration, ClusterState>>& states) {
    IterationTimes result;
    result.duration = flows(states, uses_flows());
    // Where the time of a worker went: each state's own share of it, in proportion to how long the state lasted.
    result.workers.resize(position(plan_.workers()));
    for (std::size_t i = 0; i < states.size(); ++i) {
        const Duration begin = std::min(states[i].first, result.duration);
        const Duration end = i + 1 < states.size() ? std::min(states[i + 1].first, result.duration) : result.duration;
        if (end <= begin) continue;
        const scenarios::Evaluation part = evaluator_.evaluate(times_of(states[i].second));
        const double share = (end - begin) / part.iteration;
        for (std::size_t w = 0; w < result.workers.size(); ++w) {
            result.workers[w].compute += part.workers[w].compute.scaled(share);
            result.workers[w].data_exposed += part.workers[w].data_exposed.scaled(share);
        }
    }
    for (scenarios::WorkerTimes& worker : result.workers)
        worker.idle = result.duration - worker.compute - worker.data_exposed;
    return result;
}

scenarios::HealthyShares PlanModel::healthy_shares() {
    return scenarios::healthy_shares(costs_, plan_, cluster_, tied_embedding_);
}

Duration PlanModel::longest_path(const ClusterState& state) {
    return evaluator_.iteration_time(times_of(state));
}

std::vector<scenarios::TimelineEntry> PlanModel::timeline(
    const std::vector<std::pair<Duration, ClusterState>>& states) {
    Spans spans;
    flows(states, uses_flows(), &spans);
    std::vector<int> all(position(plan_.layout.data));
    std::iota(all.begin(), all.end(), 0);
    return scenarios::timeline_of(executor(all).graph(), plan_.layout, spans);
}

}  // namespace headway::sim
