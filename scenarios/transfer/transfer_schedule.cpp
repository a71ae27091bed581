#include "scenarios/transfer/transfer_schedule.h"

#include <cstddef>
#include <stdexcept>
#include <string>

#include "scenarios/language/plan_check.h"

namespace headway::scenarios {

TransferSchedule transfer_schedule(const Job& job, const Cluster& cluster, const Plan& from, const Plan& to,
                                   std::span<const int> lost) {
    check_plan(job, cluster, from);
    check_plan(job, cluster, to);
    for (const int gpu : lost)
        if (gpu < 0 || gpu >= cluster.gpus())
            throw std::invalid_argument("GPU " + std::to_string(gpu) + " is lost, which the cluster lacks");
    const LinkMap map(cluster);
    const PlacedPlan was(job, map, from), is(job, map, to);
    LinkLoads loads(map);
    TransferSchedule schedule;
    Difference(map, was, is, lost).walk(loads, &schedule.moves);

    schedule.moved = Bytes(loads.moved().total());
    schedule.from_checkpoint = Bytes(loads.from_checkpoint().total());
    schedule.by_gpu.resize(static_cast<std::size_t>(map.gpus()));
    schedule.by_node.resize(static_cast<std::size_t>(map.nodes()));
    for (const int gpu : loads.touched()) {
        const GpuLoads& at = loads.of_gpu(gpu);
        Traffic& of_gpu = schedule.by_gpu[static_cast<std::size_t>(gpu)];
        of_gpu.in = Bytes(at.in().total());
        of_gpu.out = Bytes(at.fabric_out.total() + at.network_out.total());
        Traffic& of_node = schedule.by_node[static_cast<std::size_t>(map.node_of(gpu))];
        of_node.in += Bytes(at.network_in.total() + at.from_checkpoint.total());
        of_node.out += Bytes(at.network_out.total());
    }
    return schedule;
}

}  // namespace headway::scenarios
