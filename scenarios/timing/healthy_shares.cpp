#include "scenarios/timing/healthy_shares.h"

#include <stdexcept>

#include "scenarios/timing/step_times.h"

namespace headway::scenarios {

HealthyShares healthy_shares(Evaluator& evaluator, const StepTimes& healthy,
                             const std::vector<std::int64_t>& tensor_ns) {
    StepTimes times = healthy;
    const std::int64_t all = evaluator.iteration_time(times).ns();
    for (auto* message : {&times.send_activation, &times.send_gradient, &times.delay_activation, &times.delay_gradient})
        message->clear();
    const std::int64_t free_messages = evaluator.iteration_time(times).ns();
    for (auto* collective : {&times.reduce_gradients, &times.reduce_last_bucket, &times.reduce_tied_embedding,
                             &times.gather_parameters, &times.gather_first_bucket})
        collective->clear();
    const Evaluation bare = evaluator.evaluate(times);

    if (tensor_ns.size() != bare.workers.size())
        throw std::invalid_argument("tensor communication has one entry a worker");
    std::int64_t busy = 0, tensor = 0;
    for (const WorkerTimes& worker : bare.workers) busy += worker.compute.ns();
    for (const std::int64_t ns : tensor_ns) tensor += ns;
    const auto workers = static_cast<std::int64_t>(bare.workers.size());

    HealthyShares shares;
    shares.iteration_ns = all;
    shares.pipeline_ns = all - free_messages;
    shares.data_ns = free_messages - bare.iteration.ns();
    shares.tensor_ns = tensor / workers;
    shares.compute_ns = busy / workers - shares.tensor_ns;
    shares.bubble_ns = bare.iteration.ns() - shares.compute_ns - shares.tensor_ns;
    return shares;
}

HealthyShares healthy_shares(const IterationCosts& costs, const Plan& plan, const Cluster& cluster,
                             bool tied_embedding) {
    IterationCosts silent = costs;
    for (auto& type : silent.virtual_stages)
        for (VirtualStageCosts& stage : type)
            for (Work* work : {&stage.forward, &stage.backward, &stage.backward_input, &stage.backward_weight})
                work->communication = Duration();
    for (StageCosts& stage : silent.stages) stage.optimizer.communication = Duration();

    Evaluator evaluator(plan, tied_embedding);
    const StepTimes healthy = step_times(costs, plan, cluster);
    const Evaluation with = evaluator.evaluate(healthy);
    const Evaluation without = evaluator.evaluate(step_times(silent, plan, cluster));
    std::vector<std::int64_t> tensor;
    for (std::size_t w = 0; w < with.workers.size(); ++w)
        tensor.push_back((with.workers[w].compute - without.workers[w].compute).ns());
    return healthy_shares(evaluator, healthy, tensor);
}

}  // namespace headway::scenarios
