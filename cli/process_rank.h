#pragma once

#include <string>

namespace headway::cli {

/// Which of a job's processes this is, as its launcher says: mpirun of Open MPI and MPICH, srun.
struct ProcessRank {
    int rank = 0;
    int size = 1;
    std::string told_by;  ///< "OMPI_COMM_WORLD_RANK"; empty: started alone
};

/// Throws ConfigError for a rank without a size, or numbers that are none.
ProcessRank process_rank();

}  // namespace headway::cli
