#include "tests/benchmark/layouts.h"

#include <random>

namespace headway::benchmarks {

namespace {

scenarios::Plan plan_of(int tensor, int pipeline, int data, int micro_batches) {
    scenarios::Plan plan;
    plan.layout.tensor = tensor;
    plan.layout.pipeline = pipeline;
    plan.layout.data = data;
    for (int rank = 0; rank < plan.layout.world_size(); ++rank) plan.gpu_of_rank.push_back(rank);
    plan.layers_of_cell.assign(static_cast<std::size_t>(plan.layout.data * pipeline), 96 / pipeline);
    plan.micro_batches_of_replica.assign(static_cast<std::size_t>(data), micro_batches);
    return plan;
}

}  // namespace

scenarios::Plan gpt3_on_1024() {
    return plan_of(8, 16, 8, 192);
}
scenarios::Plan small_4_by_4() {
    return plan_of(1, 4, 4, 16);
}

scenarios::StepTimes times_of(const scenarios::Plan& plan, bool different) {
    std::mt19937_64 random(7);
    const auto p = static_cast<std::size_t>(plan.layout.pipeline), workers = static_cast<std::size_t>(plan.workers());
    scenarios::StepTimes times;
    for (std::size_t w = 0; w < workers; ++w) {
        const auto slower = [&](std::int64_t ns) {
            return different ? ns + static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(ns / 10)) : ns;
        };
        times.forward.push_back(slower(10'000'000));
        times.backward.push_back(slower(20'000'000));
        times.send_activation.push_back(w % p + 1 < p ? 200'000 : 0);
        times.send_gradient.push_back(w % p > 0 ? 200'000 : 0);
        times.optimizer.push_back(slower(5'000'000));
    }
    times.reduce_gradients.assign(p, 100'000'000);
    times.reduce_tied_embedding.assign(p, 10'000'000);
    return times;
}

}  // namespace headway::benchmarks
