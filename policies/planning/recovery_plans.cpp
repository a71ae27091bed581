#include "policies/planning/recovery_plans.h"

#include <algorithm>
#include <optional>
#include <string>

#include "policies/planning/reasons.h"

namespace headway::policies {

using scenarios::Duration;
using scenarios::Layout;
using scenarios::Plan;

void SpareParts::start_episode() {
    spares_.assign(static_cast<std::size_t>(std::max(0, cluster_->facility.spare_nodes)), Duration());
}

Duration SpareParts::until_replaced(const Loss& loss, Duration now) {
    const scenarios::Facility& facility = cluster_->facility;
    std::vector<int> nodes;
    for (const int gpu : loss.gpus) nodes.push_back(cluster_->node_of(gpu));
    std::sort(nodes.begin(), nodes.end());
    Duration wait;
    for (std::size_t i = 0; i < nodes.size();) {
        std::size_t end = i;
        while (end < nodes.size() && nodes[end] == nodes[i]) ++end;
        const bool whole = static_cast<int>(end - i) == cluster_->node(nodes[i]).gpus;
        const Duration repair = whole ? facility.node_repair : facility.gpu_repair;
        const auto spare = std::min_element(spares_.begin(), spares_.end());
        if (spare != spares_.end() && std::max(now, *spare) + facility.spare_start < now + repair) {
            wait = std::max(wait, std::max(now, *spare) + facility.spare_start - now);
            *spare = now + repair;
        } else {
            wait = std::max(wait, repair);
        }
        i = end;
    }
    return wait;
}

std::vector<int> even_shares(const scenarios::Job& job, const Layout& layout) {
    const int unit = layout.schedule == scenarios::Schedule::kInterleaved ? layout.pipeline : 1;
    const int total = job.global_batch / job.micro_batch;
    if (total % unit != 0 || total / unit < layout.data) return {};
    std::vector<int> shares;
    for (int replica = 0; replica < layout.data; ++replica)
        shares.push_back((total / unit / layout.data + (replica < total / unit % layout.data ? 1 : 0)) * unit);
    return shares;
}

namespace {

/// A plan of `kept` replicas' places: `workers` [kept * pipeline], replica by replica, each the GPUs of one worker.
Plan put_together(const scenarios::Job& job, const Plan& plan, const std::vector<std::vector<int>>& workers,
                  const std::vector<int>& layers_of_cell) {
    Plan result;
    result.layout = plan.layout;
    const int stages = plan.layout.pipeline;
    result.layout.data = static_cast<int>(workers.size()) / stages;
    result.gpu_of_rank.resize(static_cast<std::size_t>(result.layout.world_size()));
    for (int replica = 0; replica < result.layout.data; ++replica)
        for (int stage = 0; stage < stages; ++stage) {
            const std::vector<int>& gpus = workers[static_cast<std::size_t>(replica * stages + stage)];
            for (int member = 0; member < plan.layout.ranks_per_worker(); ++member)
                result.gpu_of_rank[static_cast<std::size_t>(
                    result.rank(member % plan.layout.tensor, member / plan.layout.tensor, replica, stage))] =
                    gpus[static_cast<std::size_t>(member)];
        }
    result.layers_of_cell = layers_of_cell;
    result.micro_batches_of_replica = even_shares(job, result.layout);
    return result;
}

std::vector<int> gpus_of(const Plan& plan, int replica, int stage) {
    std::vector<int> gpus;
    for (int member = 0; member < plan.layout.ranks_per_worker(); ++member)
        gpus.push_back(plan.gpu_of_worker(replica, stage, member));
    return gpus;
}

std::vector<int> layers_of_replica(const Plan& plan, int replica) {
    const auto first = plan.layers_of_cell.begin() + replica * plan.layout.virtual_stages();
    return {first, first + plan.layout.virtual_stages()};
}

}  // namespace

Plan without_replicas(const scenarios::Job& job, const Plan& plan, const std::vector<int>& replicas) {
    std::vector<std::vector<int>> workers;
    std::vector<int> layers;
    for (int replica = 0; replica < plan.layout.data; ++replica) {
        if (std::binary_search(replicas.begin(), replicas.end(), replica)) continue;
        for (int stage = 0; stage < plan.layout.pipeline; ++stage) workers.push_back(gpus_of(plan, replica, stage));
        const std::vector<int> own = layers_of_replica(plan, replica);
        layers.insert(layers.end(), own.begin(), own.end());
    }
    return put_together(job, plan, workers, layers);
}

void offer_recoveries(Proposal& proposal, const ClusterFacts& facts, const Observation& observation) {
    const Plan& plan = observation.plan;
    const int stages = plan.layout.pipeline;
    std::vector<int> gone = observation.unavailable_gpus;
    gone.insert(gone.end(), observation.loss->gpus.begin(), observation.loss->gpus.end());
    std::sort(gone.begin(), gone.end());
    gone.erase(std::unique(gone.begin(), gone.end()), gone.end());
    const auto is_gone = [&](int gpu) { return std::binary_search(gone.begin(), gone.end(), gpu); };

    // Which replicas are whole, and which workers of the others are.
    std::vector<int> broken;
    std::vector<std::vector<int>> left_over;
    std::vector<char> used(static_cast<std::size_t>(facts.cluster.gpus()), 0);
    for (const int gpu : plan.gpu_of_rank) used[static_cast<std::size_t>(gpu)] = 1;
    for (int replica = 0; replica < plan.layout.data; ++replica) {
        std::vector<std::vector<int>> whole;
        for (int stage = 0; stage < stages; ++stage) {
            std::vector<int> gpus = gpus_of(plan, replica, stage);
            if (std::none_of(gpus.begin(), gpus.end(), is_gone)) whole.push_back(std::move(gpus));
        }
        if (static_cast<int>(whole.size()) == stages) continue;
        broken.push_back(replica);
        left_over.insert(left_over.end(), whole.begin(), whole.end());
    }
    const std::string lost = gpus_text(observation.loss->gpus) + (observation.loss->gpus.size() == 1 ? " is" : " are");
    const auto replicas_text = [](int count) {
        return std::to_string(count) + (count == 1 ? " replica" : " replicas");
    };
    if (static_cast<int>(broken.size()) < plan.layout.data && !broken.empty()) {
        const Plan rest = without_replicas(facts.job, plan, broken);
        if (!rest.micro_batches_of_replica.empty())
            proposal.offer_restart(
                rest, lost + " lost: restart at once with the " + replicas_text(rest.layout.data) + " that are whole");
    }
    // GPUs that nobody uses, node by node, as further workers.
    const auto members = static_cast<std::size_t>(plan.layout.ranks_per_worker());
    for (int node = 0; node < facts.cluster.nodes(); ++node) {
        std::vector<int> idle;
        for (int slot = 0; slot < facts.cluster.node(node).gpus; ++slot) {
            const int gpu = facts.cluster.first_gpu(node) + slot;
            if (!used[static_cast<std::size_t>(gpu)] && !is_gone(gpu)) idle.push_back(gpu);
        }
        for (std::size_t first = 0; first + members <= idle.size(); first += members)
            left_over.emplace_back(idle.begin() + static_cast<std::ptrdiff_t>(first),
                                   idle.begin() + static_cast<std::ptrdiff_t>(first + members));
    }
    // Fill the gaps of as many broken replicas as the left-over workers make whole.
    const int whole_replicas = plan.layout.data - static_cast<int>(broken.size());
    const int made = std::min(static_cast<int>(broken.size()), static_cast<int>(left_over.size()) / stages);
    if (made > 0) {
        std::vector<std::vector<int>> workers;
        std::vector<int> layers;
        for (int replica = 0; replica < plan.layout.data; ++replica) {
            if (std::binary_search(broken.begin(), broken.end(), replica)) continue;
            for (int stage = 0; stage < stages; ++stage) workers.push_back(gpus_of(plan, replica, stage));
            const std::vector<int> own = layers_of_replica(plan, replica);
            layers.insert(layers.end(), own.begin(), own.end());
        }
        for (int replica = 0; replica < made; ++replica) {
            for (int stage = 0; stage < stages; ++stage)
                workers.push_back(left_over[static_cast<std::size_t>(replica * stages + stage)]);
            const std::vector<int> own = layers_of_replica(plan, broken[static_cast<std::size_t>(replica)]);
            layers.insert(layers.end(), own.begin(), own.end());
        }
        const Plan regrouped = put_together(facts.job, plan, workers, layers);
        if (!regrouped.micro_batches_of_replica.empty())
            proposal.offer_restart(regrouped, lost + " lost: restart at once with " +
                                                  replicas_text(whole_replicas + made) +
                                                  ", put together from what is left");
    }
}

}  // namespace headway::policies
