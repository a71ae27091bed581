#include "scenarios/language/plan_check.h"

#include <cstddef>
#include <stdexcept>
#include <string>
#include <vector>

namespace headway::scenarios {

namespace {

[[noreturn]] void refuse_plan(const std::string& why) {
    throw std::invalid_argument("the plan " + why);
}

void check_gpus(const Cluster& cluster, const Plan& plan) {
    if (plan.gpu_of_rank.size() != static_cast<std::size_t>(plan.layout.world_size()))
        refuse_plan("places " + std::to_string(plan.gpu_of_rank.size()) + " ranks, its layout has " +
                    std::to_string(plan.layout.world_size()));
    const int gpus = cluster.gpus();
    std::vector<char> taken(static_cast<std::size_t>(gpus), 0);
    for (const int gpu : plan.gpu_of_rank) {
        if (gpu < 0 || gpu >= gpus) refuse_plan("uses GPU " + std::to_string(gpu) + ", which the cluster lacks");
        if (taken[static_cast<std::size_t>(gpu)]++ != 0) refuse_plan("has two ranks on GPU " + std::to_string(gpu));
    }
}

void check_layers(const Job& job, const Plan& plan) {
    const int stages = plan.layout.virtual_stages();
    if (plan.layers_of_cell.size() != static_cast<std::size_t>(plan.layout.data * stages))
        refuse_plan("gives layers to " + std::to_string(plan.layers_of_cell.size()) +
                    " virtual stages of all replicas, not to " + std::to_string(plan.layout.data * stages));
    for (int replica = 0; replica < plan.layout.data; ++replica) {
        int layers = 0;
        for (int k = 0; k < stages; ++k) {
            if (plan.layers(replica, k) < 0) refuse_plan("gives a stage fewer than 0 layers");
            layers += plan.layers(replica, k);
        }
        if (layers != job.model.layers)
            refuse_plan("gives replica " + std::to_string(replica) + " " + std::to_string(layers) +
                        " layers, the model has " + std::to_string(job.model.layers));
    }
}

}  // namespace

void check_plan(const Job& job, const Cluster& cluster, const Plan& plan) {
    const Layout& layout = plan.layout;
    for (const int degree : {layout.tensor, layout.pipeline, layout.data, layout.context, layout.virtual_pipeline})
        if (degree < 1) refuse_plan("has a degree below 1");
    check_gpus(cluster, plan);
    check_layers(job, plan);
    if (plan.micro_batches_of_replica.size() != static_cast<std::size_t>(layout.data))
        refuse_plan("gives micro-batches to " + std::to_string(plan.micro_batches_of_replica.size()) +
                    " replicas, not to " + std::to_string(layout.data));
    int micro_batches = 0;
    for (const int share : plan.micro_batches_of_replica) {
        if (share < 1) refuse_plan("leaves a replica without a micro-batch");
        micro_batches += share;
    }
    if (micro_batches != job.global_batch / job.micro_batch)
        refuse_plan("trains " + std::to_string(micro_batches) + " micro-batches, the global batch has " +
                    std::to_string(job.global_batch / job.micro_batch));
}

}  // namespace headway::scenarios
