#include "backend/training/plan_place.h"

#include <algorithm>
#include <cstddef>
#include <set>
#include <stdexcept>
#include <string>

namespace headway::backend {

namespace {

[[noreturn]] void refuse_to_train(const std::string& why) {
    throw std::invalid_argument("the plan cannot be trained: " + why);
}

}  // namespace

PlanPlace place_in_plan(const scenarios::Plan& plan, int process) {
    const auto found = std::find(plan.gpu_of_rank.begin(), plan.gpu_of_rank.end(), process);
    if (found == plan.gpu_of_rank.end()) return {};
    const scenarios::Layout& layout = plan.layout;
    PlanPlace place;
    place.rank = static_cast<int>(found - plan.gpu_of_rank.begin());
    place.tensor = place.rank % layout.tensor;
    const int worker = place.rank / layout.ranks_per_worker();
    place.replica = worker % layout.data;
    place.stage = worker / layout.data;
    return place;
}

void check_trainable(const scenarios::Job& job, const scenarios::Plan& plan) {
    const scenarios::Layout& layout = plan.layout;
    for (const int degree : {layout.tensor, layout.pipeline, layout.data, layout.context, layout.virtual_pipeline})
        if (degree < 1) refuse_to_train("it has a degree below 1");
    if (layout.context > 1)
        refuse_to_train("context parallelism runs in simulation only so far (context: " +
                        std::to_string(layout.context) + ", for real 1)");
    if (plan.gpu_of_rank.size() != static_cast<std::size_t>(layout.world_size()))
        refuse_to_train("it places " + std::to_string(plan.gpu_of_rank.size()) + " ranks, its layout has " +
                        std::to_string(layout.world_size()));
    std::set<int> taken;
    for (const int gpu : plan.gpu_of_rank)
        if (gpu < 0 || !taken.insert(gpu).second)
            refuse_to_train("its ranks have no GPU of their own (" + std::to_string(gpu) + ")");
    if (plan.micro_batches_of_replica.size() != static_cast<std::size_t>(layout.data))
        refuse_to_train("it gives micro-batches to " + std::to_string(plan.micro_batches_of_replica.size()) +
                        " replicas, not to " + std::to_string(layout.data));
    int micro_batches = 0;
    for (const int share : plan.micro_batches_of_replica) {
        if (share < 1) refuse_to_train("it leaves a replica without a micro-batch");
        micro_batches += share;
    }
    if (job.micro_batch < 1 || micro_batches * job.micro_batch != job.global_batch)
        refuse_to_train(std::to_string(micro_batches) + " micro-batches of " + std::to_string(job.micro_batch) +
                        " sequences are not the global batch of " + std::to_string(job.global_batch));
    if (plan.layers_of_cell.size() != static_cast<std::size_t>(layout.data * layout.virtual_stages()))
        refuse_to_train("it gives layers to " + std::to_string(plan.layers_of_cell.size()) +
                        " virtual stages of all replicas, not to " +
                        std::to_string(layout.data * layout.virtual_stages()));
    for (int replica = 0; replica < layout.data; ++replica) {
        int layers = 0;
        for (int k = 0; k < layout.virtual_stages(); ++k) {
            if (plan.layers(replica, k) < 0) refuse_to_train("it gives a stage fewer than 0 layers");
            layers += plan.layers(replica, k);
        }
        if (layers != job.model.layers)
            refuse_to_train("replica " + std::to_string(replica) + " has " + std::to_string(layers) +
                            " layers, the model " + std::to_string(job.model.layers));
    }
}

}  // namespace headway::backend
