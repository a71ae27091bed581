#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <vector>

namespace headway::backend {

/// Ranks of one job on this machine, each a process that runs a program.
struct LocalLaunch {
    std::vector<std::string> arguments;  ///< of every rank; the first is the program's path
    int ranks = 1;
    /// How long the others may take to end after the first has failed, and after the second request to end; then they
    /// are killed.
    std::chrono::milliseconds grace{10'000};
    /// Ranks begin with SIGINT and SIGTERM blocked, so that a request that comes while they start waits until they let
    /// it in, instead of ending them.
    bool hold_requests = false;
    /// Lines about the launch, and what ranks other than 0 write to their standard output and error, with the rank in
    /// front. Rank 0 keeps this process's streams; nobody reads its standard input.
    std::function<void(const std::string& line)> tell;
};

/// How one rank ended.
struct RankEnd {
    int rank = 0;
    int exit_code = 0;
    int signal = 0;  ///< that ended it; 0: it ended by itself
    bool failed() const { return signal != 0 || exit_code != 0; }
    std::string text() const;  ///< "rank 2 was ended by signal 9 (Killed)"
};

struct LaunchResult {
    std::vector<RankEnd> ends;  ///< [ranks]
    int first_failed = -1;      ///< rank that failed before the others
    int asked_to_end = 0;       ///< signal that was passed on; 0: none
    /// Of the whole: 0 when all succeeded; else that of rank 0, if it ended by itself with another, since it speaks for
    /// all; else that of the first that failed; 1 when a signal ended it.
    int exit_code() const;
};

/// Starts the ranks, waits for all of them and returns how they ended. Each gets its rank, the size and the rendezvous
/// point (a socket that listens already, so no port can be taken meanwhile) in its environment, where process_rank()
/// finds them. SIGINT, SIGTERM and SIGHUP that this process gets are passed on; a third one kills all ranks. No rank
/// outlives this process, however it ends.
/// Throws BackendError when a process cannot be started, std::invalid_argument for no ranks. Call it from a process
/// with one thread.
LaunchResult run_local_ranks(const LocalLaunch& launch);

}  // namespace headway::backend
