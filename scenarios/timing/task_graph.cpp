#include "scenarios/timing/task_graph.h"

#include <algorithm>
#include <stdexcept>

namespace headway::scenarios {

std::int32_t TaskGraph::add(const Task& task, std::span<const std::int32_t> predecessors) {
    tasks_.push_back(task);
    predecessors_.insert(predecessors_.end(), predecessors.begin(), predecessors.end());
    first_.push_back(static_cast<std::int32_t>(predecessors_.size()));
    return size() - 1;
}

TaskGraph::Successors TaskGraph::successors() const {
    Successors out;
    out.first.assign(tasks_.size() + 1, 0);
    out.task.resize(predecessors_.size());
    out.in_degree.resize(tasks_.size());
    for (const std::int32_t p : predecessors_) ++out.first[static_cast<std::size_t>(p) + 1];
    for (std::size_t i = 0; i < tasks_.size(); ++i) out.first[i + 1] += out.first[i];
    std::vector<std::int32_t> next(out.first.begin(), out.first.end() - 1);
    for (std::int32_t i = 0; i < size(); ++i) {
        out.in_degree[static_cast<std::size_t>(i)] = static_cast<std::int32_t>(predecessors(i).size());
        for (const std::int32_t p : predecessors(i))
            out.task[static_cast<std::size_t>(next[static_cast<std::size_t>(p)]++)] = i;
    }
    return out;
}

namespace {

/// Reads a vector of StepTimes where empty means zeros.
std::int64_t step_value(const std::vector<std::int64_t>& values, std::size_t i) {
    return values.empty() ? 0 : values.at(i);
}

}  // namespace

std::vector<std::int64_t> task_durations(const TaskGraph& graph, const Layout& layout,
                                         std::span<const int> micro_batches, const StepTimes& times) {
    const auto p = static_cast<std::size_t>(layout.pipeline), v = static_cast<std::size_t>(layout.virtual_pipeline);
    std::vector<std::size_t> first_micro_batch{0};
    for (const int m : micro_batches)
        first_micro_batch.push_back(first_micro_batch.back() + static_cast<std::size_t>(m));

    std::vector<std::int64_t> durations;
    durations.reserve(static_cast<std::size_t>(graph.size()));
    for (const Task& task : graph.tasks()) {
        const auto stage = static_cast<std::size_t>(task.stage), chunk = static_cast<std::size_t>(task.chunk);
        const std::size_t place = stage * v + chunk;  // of the stage, whatever the replica
        const auto replica = static_cast<std::size_t>(std::max(task.replica, 0));
        const std::size_t cell = replica * p * v + place;
        const auto worked = [&](const std::vector<std::int64_t>& values) {
            const std::int64_t value = step_value(values, cell);
            if (times.micro_batch_factor.empty()) return value;
            const std::size_t i = first_micro_batch.at(replica) + static_cast<std::size_t>(task.micro_batch);
            return scaled_ns(value, times.micro_batch_factor.at(i));
        };
        const auto split = [&](const std::vector<std::int64_t>& all, const std::vector<std::int64_t>& part) {
            return std::min(step_value(part, place), step_value(all, place));
        };
        std::int64_t ns = 0;
        switch (task.kind) {
            case TaskKind::kForward:
                ns = worked(times.forward);
                break;
            case TaskKind::kBackward:
                ns = worked(times.backward);
                break;
            case TaskKind::kBackwardInput:
                ns = worked(times.backward_input);
                break;
            case TaskKind::kBackwardWeight:
                ns = worked(times.backward_weight);
                break;
            case TaskKind::kActivation:
                ns = step_value(times.send_activation, cell);
                break;
            case TaskKind::kGradient:
                ns = step_value(times.send_gradient, cell);
                break;
            case TaskKind::kActivationDelay:
                ns = step_value(times.delay_activation, cell);
                break;
            case TaskKind::kGradientDelay:
                ns = step_value(times.delay_gradient, cell);
                break;
            case TaskKind::kJoin:
                break;
            case TaskKind::kReduceBuckets:
                ns =
                    step_value(times.reduce_gradients, place) - split(times.reduce_gradients, times.reduce_last_bucket);
                break;
            case TaskKind::kReduce:
                ns = layout.overlap_grad_reduce ? split(times.reduce_gradients, times.reduce_last_bucket)
                                                : step_value(times.reduce_gradients, place);
                break;
            case TaskKind::kReduceTied:
                ns = std::max(step_value(times.reduce_tied_embedding, 0),
                              step_value(times.reduce_tied_embedding, p - 1));
                break;
            case TaskKind::kOptimizer:
                ns = step_value(times.optimizer, replica * p + stage);
                break;
            case TaskKind::kGatherFirst:
                ns = split(times.gather_parameters, times.gather_first_bucket);
                break;
            case TaskKind::kGather:
                ns = step_value(times.gather_parameters, place) -
                     (layout.overlap_param_gather ? split(times.gather_parameters, times.gather_first_bucket) : 0);
                break;
        }
        durations.push_back(ns);
    }
    return durations;
}

}  // namespace headway::scenarios
