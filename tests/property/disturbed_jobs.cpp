#include "tests/property/disturbed_jobs.h"

#include <random>
#include <string>

#include "scenarios/language/read.h"
#include "tests/paths.h"

namespace headway::tests {

scenarios::Scenario disturbed_job(std::uint64_t seed) {
    std::mt19937_64 random(seed);
    const auto pick = [&](int low, int high) { return std::uniform_int_distribution<int>(low, high)(random); };
    const auto share = [&](double low, double high) {
        return std::to_string(std::uniform_real_distribution<double>(low, high)(random));
    };
    struct Shape {
        const char* model;
        int tensor, pipeline, data, micro_batches;
        const char* more;
    };
    const Shape shapes[] = {
        {"gpt3-1.3b", 2, 4, 4, 8, ""},
        {"gpt3-2.7b", 1, 4, 8, 12, "distributed_optimizer: true, overlap: {grad_reduce: true, param_gather: true}"},
        {"llama2-7b", 4, 2, 4, 16, "sequence_parallel: true"},
        {"gpt3-6.7b", 4, 4, 2, 24, "schedule: interleaved, virtual_pipeline: 2, sequence_parallel: true"},
        {"llama2-13b", 8, 2, 2, 40, "distributed_optimizer: true, sequence_parallel: true, recompute: selective"},
        {"gpt3-2.7b", 2, 1, 16, 8, "distributed_optimizer: true"},
        {"gpt3-6.7b", 2, 8, 2, 64, "schedule: zero-bubble, sequence_parallel: true"},
    };
    const Shape& shape = shapes[pick(0, 6)];
    const int gpus = shape.tensor * shape.pipeline * shape.data;
    std::string causes;
    const int count = pick(1, 3);
    int cause = pick(0, 5);
    for (int i = 0; i < count; ++i) {
        causes += causes.empty() ? "{start: 0 s, " : ", {start: 0 s, ";
        // One cause on links at most: bandwidth and delay together cannot be told apart by what groups measure.
        if (i > 0) cause = pick(0, 2);
        switch (cause) {
            case 0:
                causes += "speed_factor: {gpu: " + std::to_string(pick(0, gpus - 1)) + ", factor: " + share(0.35, 0.9);
                break;
            case 1:
                causes +=
                    "speed_factor: {node: " + std::to_string(pick(0, gpus / 8 - 1)) + ", factor: " + share(0.5, 0.9);
                break;
            case 2:
                causes += "co_tenant: {gpu: " + std::to_string(pick(0, gpus - 1)) +
                          ", compute_share: " + share(0.1, 0.5) + ", memory_share: " + share(0.05, 0.4);
                break;
            case 3:
                causes += "link_bandwidth: {node_network: " + std::to_string(pick(0, gpus / 8 - 1)) +
                          ", factor: " + share(0.1, 0.7);
                break;
            case 4:
                causes += "power_cap: {node: " + std::to_string(pick(0, gpus / 8 - 1)) +
                          ", limit: " + std::to_string(pick(180, 330)) + " W";
                break;
            default:
                // Not in the last node: gradients sent there are measured by no group.
                causes += "link_delay: {node_network: " + std::to_string(pick(0, gpus / 8 - 2)) +
                          ", delay: " + std::to_string(pick(1, 20)) + " ms";
        }
        causes += "}}";
    }
    const std::string text = std::string("name: random\njob: {model: ") + shape.model +
                             ", precision: bf16, micro_batch: 1, stack: megatron-lm-2022, global_batch: " +
                             std::to_string(shape.data * shape.micro_batches) +
                             "}\ncluster: {base: selene, nodes: " + std::to_string(gpus / 8) +
                             "}\nstrategy: {tensor: " + std::to_string(shape.tensor) +
                             ", pipeline: " + std::to_string(shape.pipeline) + ", data: " + std::to_string(shape.data) +
                             (*shape.more != '\0' ? std::string(", ") + shape.more : std::string()) +
                             "}\ndisturbances: [" + causes + "]\nrun: {iterations: 100000}\n";
    const auto root = source_directory() / "scenarios";
    return scenarios::parse_scenario(text, "random.yaml", root, {root});
}

}  // namespace headway::tests
