#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <type_traits>
#include <vector>

#include "backend/communicator/communicator.h"
#include "backend/communicator/host_communicators.h"
#include "backend/communicator/rendezvous.h"

/// Several ranks on this machine for tests: processes forked from the test, each with a control and communicators.
namespace headway::backend {

struct LocalRank {
    int rank = 0;
    int size = 1;
    Control& control;
    CommunicatorMaker& communicators;  ///< of hosts
};

/// How one rank ended.
struct RankOutcome {
    std::string result;                 ///< what its function returned
    std::string error;                  ///< what it threw; empty: nothing
    std::vector<std::string> failures;  ///< of gtest's expectations
    int signal = 0;                     ///< that ended it; SIGKILL for one that was still there at the limit
    bool finished() const { return signal == 0 && error.empty() && failures.empty(); }
};

struct LocalRanksOptions {
    std::chrono::milliseconds timeout{20'000};  ///< of control and communicators
    std::chrono::milliseconds limit{60'000};    ///< then all are killed
    HostCommunicatorMaker::Through through = HostCommunicatorMaker::Through::kSharedMemoryWherePossible;
    /// Called in the test's process once all are started, with their processes, in order of rank.
    std::function<void(const std::vector<int>&)> meanwhile;
};

/// A socket that listens on a free local port, inherited by ranks that are forked later.
RendezvousPoint local_listener();

/// Runs `work` in `size` processes at once and returns how they ended, by rank. Expectations that fail in them are
/// theirs alone.
std::vector<RankOutcome> rank_outcomes(int size, const std::function<std::string(LocalRank&)>& work,
                                       const LocalRanksOptions& options = {});

/// The same; every rank has to finish: what failed in one fails in the test. Returns their results.
std::vector<std::string> results_of_ranks(int size, const std::function<std::string(LocalRank&)>& work,
                                          const LocalRanksOptions& options = {});

/// The same; `work` returns a string (then the results are returned) or nothing.
template <typename Work>
auto run_ranks(int size, const Work& work, const LocalRanksOptions& options = {}) {
    if constexpr (std::is_void_v<std::invoke_result_t<const Work&, LocalRank&>>) {
        const auto without_result = [&](LocalRank& rank) {
            work(rank);
            return std::string();
        };
        results_of_ranks(size, without_result, options);
    } else {
        return results_of_ranks(size, work, options);
    }
}

}  // namespace headway::backend
