#include "backend/launch/process_rank.h"

#include <cstdlib>
#include <stdexcept>
#include <utility>
#include <vector>

#include "backend/launch/published_port.h"
#include "scenarios/language/config_error.h"
#include "scenarios/language/value_text.h"

namespace headway::backend {

namespace {

constexpr const char* kOwnRank = "HEADWAY_RANK";
constexpr const char* kOwnSize = "HEADWAY_SIZE";
constexpr const char* kOwnRendezvous = "HEADWAY_RENDEZVOUS";
constexpr const char* kOwnListener = "HEADWAY_LISTENER";  ///< of rank 0: the number of the socket

struct Launcher {
    const char* rank;
    const char* size;
    const char* local_rank;
    const char* local_size;
};

constexpr Launcher kLaunchers[] = {
    {kOwnRank, kOwnSize, kOwnRank, kOwnSize},
    {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_SIZE"},
    {"PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS"},
    {"SLURM_PROCID", "SLURM_NTASKS", "SLURM_LOCALID", nullptr}};

/// Names of variables that are the same in all processes of one launch, and in no other on this machine.
constexpr const char* kLaunchNames[] = {"PMIX_NAMESPACE", "OMPI_MCA_ess_base_jobid", "PMI_JOBID", "SLURM_JOB_ID"};

constexpr int kFirstSlurmPort = 20'000;
constexpr int kSlurmPorts = 20'000;

int number_of(const char* variable, const char* text) {
    const std::optional<std::int64_t> number = scenarios::parse_integer(text);
    if (number && *number >= 0 && *number <= 1'000'000) return static_cast<int>(*number);
    throw scenarios::ConfigError(std::string(variable) + ": '" + text + "' is no number of a process");
}

int number_in(const char* variable, int otherwise) {
    const char* const text = variable != nullptr ? std::getenv(variable) : nullptr;
    return text != nullptr ? number_of(variable, text) : otherwise;
}

RendezvousPoint point_of(const std::string& name, const std::string& text) {
    try {
        return parse_rendezvous(text);
    } catch (const std::invalid_argument& error) {
        throw scenarios::ConfigError(name + ": " + error.what());
    }
}

bool all_on_this_machine(const ProcessRank& process) {
    if (process.told_by == "SLURM_PROCID") return number_in("SLURM_STEP_NUM_NODES", number_in("SLURM_NNODES", 0)) == 1;
    return process.local_size == process.size;
}

std::string launch_name() {
    for (const char* const variable : kLaunchNames) {
        const char* const value = std::getenv(variable);
        const char* const step = std::getenv("SLURM_STEP_ID");
        if (value != nullptr) return std::string(variable) + value + (step != nullptr ? step : "");
    }
    return "";
}

}  // namespace

ProcessRank process_rank() {
    for (const Launcher& launcher : kLaunchers) {
        const char* const rank = std::getenv(launcher.rank);
        const char* const size = std::getenv(launcher.size);
        if (rank == nullptr) continue;
        if (size == nullptr)
            throw scenarios::ConfigError(std::string(launcher.rank) + " is set, but not " + launcher.size);
        ProcessRank process{number_of(launcher.rank, rank), number_of(launcher.size, size), 0, 0, launcher.rank};
        if (process.size < 1 || process.rank >= process.size)
            throw scenarios::ConfigError(std::string(launcher.rank) + "=" + rank + " is no rank of " + launcher.size +
                                         "=" + size);
        process.local_rank = number_in(launcher.local_rank, process.size == 1 ? 0 : process.rank);
        process.local_size = number_in(launcher.local_size, process.size == 1 ? 1 : 0);
        return process;
    }
    return {};
}

void expect_processes(const ProcessRank& process, int processes, const std::string& what) {
    if (process.size == processes) return;
    const auto counted = [](int count) { return std::to_string(count) + (count == 1 ? " process" : " processes"); };
    throw scenarios::ConfigError(what + " needs " + counted(processes) + ", but " + counted(process.size) +
                                 (process.size == 1 ? " was" : " were") + " started" +
                                 (process.told_by.empty() ? "" : " (" + process.told_by + ")"));
}

MeetingPoint meeting_point(const ProcessRank& process, const std::optional<std::string>& option,
                           std::chrono::milliseconds timeout) {
    if (option) return {point_of("--rendezvous", *option), nullptr};
    if (process.told_by == kOwnRank) {
        const char* const text = std::getenv(kOwnRendezvous);
        if (text == nullptr) throw scenarios::ConfigError(std::string(kOwnRank) + " is set, but not " + kOwnRendezvous);
        MeetingPoint meeting{point_of(kOwnRendezvous, text), nullptr};
        if (process.rank == 0) meeting.point.listener = number_in(kOwnListener, -1);
        return meeting;
    }
    if (process.size == 1) return {listen_locally(), nullptr};
    if (all_on_this_machine(process)) {
        const std::string file = publication_file(launch_name());
        return process.rank == 0 ? publish_port(file) : published_port(file, timeout);
    }
    const char* nodes = std::getenv("SLURM_STEP_NODELIST");
    if (nodes == nullptr) nodes = std::getenv("SLURM_JOB_NODELIST");
    if (process.told_by == "SLURM_PROCID" && nodes != nullptr) {
        const int job = number_in("SLURM_JOB_ID", 0), step = number_in("SLURM_STEP_ID", 0);
        const int port = kFirstSlurmPort + (job * 16 + step) % kSlurmPorts;
        return {{first_host(nodes), port, -1}, nullptr};
    }
    throw scenarios::ConfigError("process " + std::to_string(process.rank) + " of " + std::to_string(process.size) +
                                 " (" + process.told_by +
                                 "): --rendezvous HOST:PORT is needed, a host and free port of process 0");
}

std::string first_host(const std::string& node_list) {
    const std::size_t end = node_list.find_first_of("[,");
    if (end == std::string::npos || node_list[end] == ',') return node_list.substr(0, end);
    const std::size_t close = node_list.find_first_of(",-]", end);
    const std::size_t bracket = node_list.find(']', end);
    if (bracket == std::string::npos) return node_list;
    const std::size_t comma = node_list.find(',', bracket);
    return node_list.substr(0, end) + node_list.substr(end + 1, close - end - 1) +
           node_list.substr(bracket + 1, comma == std::string::npos ? comma : comma - bracket - 1);
}

std::vector<std::pair<std::string, std::string>> local_rank_environment(int rank, int size,
                                                                        const RendezvousPoint& point) {
    std::vector<std::pair<std::string, std::string>> variables = {
        {kOwnRank, std::to_string(rank)},
        {kOwnSize, std::to_string(size)},
        {kOwnRendezvous, point.host + ":" + std::to_string(point.port)}};
    if (rank == 0 && point.listener >= 0) variables.emplace_back(kOwnListener, std::to_string(point.listener));
    return variables;
}

}  // namespace headway::backend
