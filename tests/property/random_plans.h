#pragma once

#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "scenarios/language/plan.h"
#include "scenarios/timing/durations.h"

/// Random small plans and durations for the tests of timing.
namespace headway::scenarios::timing_test {

struct RandomPlan {
    Plan plan;
    bool tied_embedding = false;
    StepTimes times;
};

/// Any schedule and any switch, 1 to 6 stages, 1 to 4 replicas, 1 to 14 micro-batches; about half of the plans have
/// equal replicas, delays, messages or varying micro-batches each.
inline RandomPlan random_plan(std::uint64_t seed) {
    std::mt19937_64 random(seed);
    const auto pick = [&](int low, int high) { return std::uniform_int_distribution<int>(low, high)(random); };
    const auto coin = [&] { return pick(0, 1) == 1; };
    RandomPlan out;
    Layout& layout = out.plan.layout;
    layout.schedule = static_cast<Schedule>(pick(0, 3));
    layout.pipeline = pick(1, 6);
    layout.data = pick(1, 4);
    layout.context = pick(1, 2);
    if (layout.schedule == Schedule::kInterleaved && layout.pipeline > 1) layout.virtual_pipeline = pick(1, 4);
    layout.zero_bubble_memory = pick(1, 2);
    layout.distributed_optimizer = coin();
    layout.overlap_grad_reduce = coin();
    layout.overlap_param_gather = coin();
    layout.overlap_pipeline_comm = coin();
    out.tied_embedding = coin();

    const int group = layout.virtual_pipeline > 1 ? layout.pipeline : 1;
    const bool equal_counts = coin();
    const int count = pick(1, layout.virtual_pipeline > 1 ? 3 : 14) * group;
    for (int r = 0; r < layout.data; ++r)
        out.plan.micro_batches_of_replica.push_back(
            equal_counts ? count : pick(1, layout.virtual_pipeline > 1 ? 3 : 14) * group);
    int micro_batches = 0;
    for (const int m : out.plan.micro_batches_of_replica) micro_batches += m;

    const auto places = static_cast<std::size_t>(layout.virtual_stages());
    const auto replicas = static_cast<std::size_t>(layout.data);
    const bool equal_replicas = coin();
    const auto fill = [&](std::vector<std::int64_t>& values, std::size_t size, int high) {
        for (std::size_t i = 0; i < size; ++i) values.push_back(pick(0, high));
    };
    const auto fill_cells = [&](std::vector<std::int64_t>& values, int high) {
        fill(values, places, high);
        for (std::size_t r = 1; r < replicas; ++r) {
            if (equal_replicas) {
                for (std::size_t i = 0; i < places; ++i) values.push_back(std::int64_t{values[i]});
            } else {
                fill(values, places, high);
            }
        }
    };
    StepTimes& times = out.times;
    fill_cells(times.forward, 1000);
    fill_cells(times.backward, 2000);
    fill_cells(times.backward_input, 1000);
    fill_cells(times.backward_weight, 1000);
    if (coin()) {
        fill_cells(times.send_activation, 300);
        fill_cells(times.send_gradient, 300);
    }
    if (coin()) {
        fill_cells(times.delay_activation, 500);
        fill_cells(times.delay_gradient, 500);
    }
    if (coin()) {
        fill(times.reduce_gradients, places, 4000);
        fill(times.reduce_last_bucket, places, 1000);
    }
    if (coin()) fill(times.reduce_tied_embedding, static_cast<std::size_t>(layout.pipeline), 3000);
    if (coin()) fill(times.optimizer, replicas * static_cast<std::size_t>(layout.pipeline), 3000);
    if (coin()) {
        fill(times.gather_parameters, places, 4000);
        fill(times.gather_first_bucket, places, 1000);
    }
    if (coin())
        for (int i = 0; i < micro_batches; ++i) times.micro_batch_factor.push_back(pick(50, 200) * 0.01);
    return out;
}

inline std::string describe(const RandomPlan& random) {
    const Layout& layout = random.plan.layout;
    std::string text = "schedule " + std::to_string(static_cast<int>(layout.schedule)) + " p" +
                       std::to_string(layout.pipeline) + " d" + std::to_string(layout.data) + " c" +
                       std::to_string(layout.context) + " v" + std::to_string(layout.virtual_pipeline) + " zb" +
                       std::to_string(layout.zero_bubble_memory) + " m";
    for (const int m : random.plan.micro_batches_of_replica) text += " " + std::to_string(m);
    if (layout.distributed_optimizer) text += ", distributed optimizer";
    if (layout.overlap_grad_reduce) text += ", overlapped reduction";
    if (layout.overlap_param_gather) text += ", overlapped gathering";
    if (layout.overlap_pipeline_comm) text += ", overlapped messages";
    if (random.tied_embedding) text += ", tied embedding";
    return text;
}

}  // namespace headway::scenarios::timing_test
