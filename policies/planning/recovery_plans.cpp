#include "policies/planning/recovery_plans.h"

#include <algorithm>
#include <optional>
#include <string>

#include "policies/planning/reasons.h"
#include "policies/planning/workers.h"

namespace headway::policies {

using scenarios::Duration;
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

void offer_recoveries(Proposal& proposal, const ClusterFacts& facts, const Observation& observation) {
    const Plan& plan = observation.plan;
    const int stages = plan.layout.pipeline;
    std::vector<int> gone = observation.unavailable_gpus;
    gone.insert(gone.end(), observation.loss->gpus.begin(), observation.loss->gpus.end());
    std::sort(gone.begin(), gone.end());
    gone.erase(std::unique(gone.begin(), gone.end()), gone.end());
    const auto is_gone = [&](int gpu) { return std::binary_search(gone.begin(), gone.end(), gpu); };

    const std::vector<std::vector<int>> all = workers_of(plan);
    // Which replicas are whole, and which workers of the others are.
    std::vector<int> broken;
    std::vector<std::vector<int>> left_over;
    for (int replica = 0; replica < plan.layout.data; ++replica) {
        std::vector<std::vector<int>> whole;
        for (int stage = 0; stage < stages; ++stage) {
            const std::vector<int>& gpus = all[static_cast<std::size_t>(plan.worker(replica, stage))];
            if (std::none_of(gpus.begin(), gpus.end(), is_gone)) whole.push_back(gpus);
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
    for (std::vector<int>& group : idle_groups(facts.cluster, plan, gone)) left_over.push_back(std::move(group));
    // Fill the gaps of as many broken replicas as the left-over workers make whole.
    const int whole_replicas = plan.layout.data - static_cast<int>(broken.size());
    const int made = std::min(static_cast<int>(broken.size()), static_cast<int>(left_over.size()) / stages);
    if (made > 0) {
        std::vector<std::vector<int>> workers;
        std::vector<int> layers;
        for (int replica = 0; replica < plan.layout.data; ++replica) {
            if (std::binary_search(broken.begin(), broken.end(), replica)) continue;
            for (int stage = 0; stage < stages; ++stage)
                workers.push_back(all[static_cast<std::size_t>(plan.worker(replica, stage))]);
            const std::vector<int> own = layers_of_replica(plan, replica);
            layers.insert(layers.end(), own.begin(), own.end());
        }
        for (int replica = 0; replica < made; ++replica) {
            for (int stage = 0; stage < stages; ++stage)
                workers.push_back(left_over[static_cast<std::size_t>(replica * stages + stage)]);
            const std::vector<int> own = layers_of_replica(plan, broken[static_cast<std::size_t>(replica)]);
            layers.insert(layers.end(), own.begin(), own.end());
        }
        const Plan regrouped = put_together(facts.job, plan.layout, workers, layers);
        if (!regrouped.micro_batches_of_replica.empty())
            proposal.offer_restart(regrouped, lost + " lost: restart at once with " +
                                                  replicas_text(whole_replicas + made) +
                                                  ", put together from what is left");
    }
}

}  // namespace headway::policies
