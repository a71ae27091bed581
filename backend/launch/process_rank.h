#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "backend/communicator/rendezvous.h"

namespace headway::backend {

/// Which of a job's processes this is, as its launcher says: run_local_ranks, mpirun of Open MPI and MPICH (Hydra),
/// srun.
struct ProcessRank {
    int rank = 0;
    int size = 1;
    int local_rank = 0;   ///< among those on this machine
    int local_size = 1;   ///< on this machine; 0: the launcher does not say
    std::string told_by;  ///< "OMPI_COMM_WORLD_RANK"; empty: started alone
};

/// Throws ConfigError for a rank without a size, or numbers that are none.
ProcessRank process_rank();

/// The launch has to have `processes` of them. Throws ConfigError saying what was started and what `what` needs.
void expect_processes(const ProcessRank& process, int processes, const std::string& what);

struct MeetingPoint {
    RendezvousPoint point;
    std::shared_ptr<void> published;  ///< lets it be found by the others; to be kept until they have come
};

/// Where the processes of this launch meet: at `option` ("HOST:PORT" of rank 0) if it is given; else where the launcher
/// says (run_local_ranks); else, when all are on this machine, at a free port that rank 0 makes known to the others;
/// else, under srun, at the job's first node. Throws ConfigError when there is no such point, `timeout` passes before
/// rank 0 has made it known, or `option` is no HOST:PORT.
MeetingPoint meeting_point(const ProcessRank& process, const std::optional<std::string>& option,
                           std::chrono::milliseconds timeout);

/// First host of a Slurm node list: "node[017-019,021],login" is node017.
std::string first_host(const std::string& node_list);

/// Environment of a rank that run_local_ranks starts: names and values.
std::vector<std::pair<std::string, std::string>> local_rank_environment(int rank, int size,
                                                                        const RendezvousPoint& point);

}  // namespace headway::backend
