#include "scenarios/language/strategy.h"

#include <numeric>
#include <set>
#include <stdexcept>

namespace headway::scenarios {

std::string describe(const Wildcards& wildcards) {
    std::string text;
    const auto add = [&](bool open, const char* key) {
        if (open) text += (text.empty() ? "" : ", ") + std::string(key);
    };
    add(wildcards.tensor, "tensor");
    add(wildcards.pipeline, "pipeline");
    add(wildcards.data, "data");
    add(wildcards.context, "context");
    add(wildcards.virtual_pipeline, "virtual_pipeline");
    add(wildcards.schedule, "schedule");
    add(wildcards.recompute, "recompute");
    add(wildcards.micro_batch, "micro_batch");
    return text;
}

int gpus_used(const Strategy& strategy, const Cluster& cluster) {
    return strategy.placement.empty() ? cluster.gpus() - strategy.idle_gpus
                                      : static_cast<int>(strategy.placement.size());
}

std::vector<int> even_layers(int layers, int virtual_stages) {
    if (virtual_stages < 1 || layers < virtual_stages) {
        throw std::invalid_argument(std::to_string(layers) + " layers do not fill " + std::to_string(virtual_stages) +
                                    " virtual stages");
    }
    std::vector<int> shares(static_cast<std::size_t>(virtual_stages), layers / virtual_stages);
    const int extra = layers % virtual_stages;
    const int first =
        (virtual_stages - extra + 1) / 2;  // centred; rather later than earlier, early stages hold more activations
    for (int i = 0; i < extra; ++i) ++shares[static_cast<std::size_t>(first + i)];
    return shares;
}

Plan initial_plan(const Strategy& strategy, const Job& job, const Cluster& cluster) {
    const Layout& layout = strategy.layout;
    const auto refuse = [](const std::string& message) { throw std::invalid_argument(message); };
    if (strategy.wildcards.any())
        refuse("the layout is still open (auto: " + describe(strategy.wildcards) +
               "); `headway plan` proposes values for it");
    if (layout.tensor < 1 || layout.pipeline < 1 || layout.data < 1 || layout.context < 1 ||
        layout.virtual_pipeline < 1) {
        refuse("a degree of the layout is below 1");
    }
    const std::int64_t world = std::int64_t{layout.tensor} * layout.pipeline * layout.data * layout.context;
    const int used = gpus_used(strategy, cluster);
    if (world != used)
        refuse("the layout needs " + std::to_string(world) + " GPUs, but the job uses " + std::to_string(used));

    Plan plan;
    plan.layout = layout;
    plan.gpu_of_rank = strategy.placement;
    if (plan.gpu_of_rank.empty()) {
        plan.gpu_of_rank.resize(static_cast<std::size_t>(world));
        std::iota(plan.gpu_of_rank.begin(), plan.gpu_of_rank.end(), 0);
    }
    std::set<int> seen;
    for (const int gpu : plan.gpu_of_rank) {
        if (gpu < 0 || gpu >= cluster.gpus())
            refuse("placement names GPU " + std::to_string(gpu) + ", which the cluster does not have");
        if (!seen.insert(gpu).second) refuse("placement names GPU " + std::to_string(gpu) + " twice");
    }

    std::vector<int> split = strategy.layers_per_stage;
    if (split.empty()) split = even_layers(job.model.layers, layout.virtual_stages());
    const auto sum = [](const std::vector<int>& values) {
        return std::accumulate(values.begin(), values.end(), std::int64_t{0});
    };
    if (static_cast<int>(split.size()) != layout.virtual_stages())
        refuse("layers_per_stage does not name every virtual stage");
    if (sum(split) != job.model.layers) refuse("layers_per_stage does not add up to the model's layers");
    plan.layers_of_cell = same_layers(split, layout.data);

    if (job.micro_batch < 1 || job.global_batch % job.micro_batch != 0)
        refuse("the global batch is not a whole number of micro-batches");
    const int micro_batches = job.global_batch / job.micro_batch;
    plan.micro_batches_of_replica = strategy.micro_batches_per_replica;
    if (plan.micro_batches_of_replica.empty()) {
        if (micro_batches < layout.data) refuse("fewer micro-batches than replicas");
        for (int replica = 0; replica < layout.data; ++replica) {
            plan.micro_batches_of_replica.push_back(micro_batches / layout.data +
                                                    (replica < micro_batches % layout.data ? 1 : 0));
        }
    }
    if (static_cast<int>(plan.micro_batches_of_replica.size()) != layout.data)
        refuse("micro_batches_per_replica does not name every replica");
    if (sum(plan.micro_batches_of_replica) != micro_batches)
        refuse("micro_batches_per_replica does not add up to the global batch");
    for (const int share : plan.micro_batches_of_replica) {
        if (share < 1) refuse("a replica has no micro-batch");
    }
    return plan;
}

}  // namespace headway::scenarios
