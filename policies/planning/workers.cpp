#include "policies/planning/workers.h"

#include <algorithm>
#include <cstddef>

#include "policies/planning/layout_space.h"

namespace headway::policies {

using scenarios::Plan;

std::vector<std::vector<int>> workers_of(const Plan& plan) {
    std::vector<std::vector<int>> workers;
    for (int replica = 0; replica < plan.layout.data; ++replica)
        for (int stage = 0; stage < plan.layout.pipeline; ++stage) {
            workers.emplace_back();
            for (int member = 0; member < plan.layout.ranks_per_worker(); ++member)
                workers.back().push_back(plan.gpu_of_worker(replica, stage, member));
        }
    return workers;
}

std::vector<int> layers_of_replica(const Plan& plan, int replica) {
    const auto first = plan.layers_of_cell.begin() + replica * plan.layout.virtual_stages();
    return {first, first + plan.layout.virtual_stages()};
}

Plan put_together(const scenarios::Job& job, scenarios::Layout layout, const std::vector<std::vector<int>>& workers,
                  const std::vector<int>& layers_of_cell) {
    Plan plan;
    layout.data = static_cast<int>(workers.size()) / layout.pipeline;
    plan.layout = layout;
    plan.gpu_of_rank.resize(static_cast<std::size_t>(layout.world_size()));
    for (int replica = 0; replica < layout.data; ++replica)
        for (int stage = 0; stage < layout.pipeline; ++stage)
            for (int member = 0; member < layout.ranks_per_worker(); ++member)
                plan.gpu_of_rank[static_cast<std::size_t>(
                    plan.rank(member % layout.tensor, member / layout.tensor, replica, stage))] =
                    workers[static_cast<std::size_t>(plan.worker(replica, stage))][static_cast<std::size_t>(member)];
    plan.layers_of_cell = layers_of_cell;
    plan.micro_batches_of_replica = even_shares(job, layout);
    return plan;
}

Plan without_replicas(const scenarios::Job& job, const Plan& plan, const std::vector<int>& replicas) {
    const std::vector<std::vector<int>> all = workers_of(plan);
    std::vector<std::vector<int>> workers;
    std::vector<int> layers;
    for (int replica = 0; replica < plan.layout.data; ++replica) {
        if (std::binary_search(replicas.begin(), replicas.end(), replica)) continue;
        for (int stage = 0; stage < plan.layout.pipeline; ++stage)
            workers.push_back(all[static_cast<std::size_t>(plan.worker(replica, stage))]);
        const std::vector<int> own = layers_of_replica(plan, replica);
        layers.insert(layers.end(), own.begin(), own.end());
    }
    return put_together(job, plan.layout, workers, layers);
}

std::vector<std::vector<int>> idle_groups(const scenarios::Cluster& cluster, const Plan& plan,
                                          const std::vector<int>& gone) {
    std::vector<char> taken(static_cast<std::size_t>(cluster.gpus()), 0);
    for (const int gpu : plan.gpu_of_rank) taken[static_cast<std::size_t>(gpu)] = 1;
    for (const int gpu : gone) taken[static_cast<std::size_t>(gpu)] = 1;
    const auto members = static_cast<std::size_t>(plan.layout.ranks_per_worker());
    std::vector<std::vector<int>> groups;
    std::vector<int> whole_nodes;
    int first_gpu = 0;
    for (int node = 0; node < cluster.nodes(); ++node) {
        const int size = cluster.node(node).gpus;
        std::vector<int> idle;
        for (int gpu = first_gpu; gpu < first_gpu + size; ++gpu)
            if (!taken[static_cast<std::size_t>(gpu)]) idle.push_back(gpu);
        first_gpu += size;
        if (members > static_cast<std::size_t>(size)) {
            if (idle.size() == static_cast<std::size_t>(size))
                whole_nodes.insert(whole_nodes.end(), idle.begin(), idle.end());
            continue;
        }
        for (std::size_t first = 0; first + members <= idle.size(); first += members)
            groups.emplace_back(idle.begin() + static_cast<std::ptrdiff_t>(first),
                                idle.begin() + static_cast<std::ptrdiff_t>(first + members));
    }
    for (std::size_t first = 0; first + members <= whole_nodes.size(); first += members)
        groups.emplace_back(whole_nodes.begin() + static_cast<std::ptrdiff_t>(first),
                            whole_nodes.begin() + static_cast<std::ptrdiff_t>(first + members));
    return groups;
}

std::vector<int> even_shares(const scenarios::Job& job, const scenarios::Layout& layout) {
    return even_shares(job.global_batch / job.micro_batch,
                       layout.schedule == scenarios::Schedule::kInterleaved ? layout.pipeline : 1, layout.data);
}

}  // namespace headway::policies
