#include "tests/contract/deployed_cluster.h"

#include <arpa/inet.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdio>
#include <stdexcept>

#include "backend/communicator/host_control.h"
#include "scenarios/language/strategy.h"
#include "tests/paths.h"

namespace headway::tests {

namespace {

constexpr std::chrono::milliseconds kTimeout{20'000};

backend::RendezvousPoint listening_point() {
    backend::RendezvousPoint point{"127.0.0.1", 0, ::socket(AF_INET, SOCK_STREAM, 0)};
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t length = sizeof address;
    if (::bind(point.listener, reinterpret_cast<sockaddr*>(&address), length) != 0 ||
        ::listen(point.listener, 64) != 0 ||
        ::getsockname(point.listener, reinterpret_cast<sockaddr*>(&address), &length) != 0)
        throw std::runtime_error("no local port to listen at");
    point.port = ntohs(address.sin_port);
    return point;
}

backend::DeploymentOptions deployment_options() {
    backend::DeploymentOptions options;
    options.data = source_directory() / "scenarios" / "data" / "persuasion.txt";
    return options;
}

[[noreturn]] void serve_as(int rank, const backend::RendezvousPoint& point, const scenarios::Scenario& scenario,
                           const scenarios::Plan& plan) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    int code = 0;
    try {
        backend::HostControl control({point.host, point.port, -1}, rank, scenario.cluster.gpus(), kTimeout);
        backend::Member member(scenario, plan, deployment_options(), control);
        member.serve();
    } catch (const std::exception&) {
        code = 1;  // process 0 has failed and says why
    }
    ::_exit(code);
}

}  // namespace

scenarios::Scenario DeployedCluster::tiny(scenarios::Scenario scenario) {
    scenarios::Model& model = scenario.job.model;
    model.hidden = 32;
    model.heads = model.kv_heads = 2;
    model.head_dim = 16;
    model.ffn = 64;
    model.vocab = 256;
    model.sequence_length = 16;
    scenario.job.precision = scenarios::Precision::kFp32;
    for (scenarios::NodeGroup& group : scenario.cluster.node_groups)
        if (!group.node.gpu.peak_single) group.node.gpu.peak_single = group.node.gpu.peak_half;
    return scenario;
}

DeployedCluster::DeployedCluster(const scenarios::Scenario& asked, scenarios::RunSink* sink) {
    const scenarios::Scenario scenario = tiny(asked);
    const scenarios::Plan plan = scenarios::initial_plan(scenario.strategy, scenario.job, scenario.cluster);
    const backend::RendezvousPoint point = listening_point();
    std::fflush(nullptr);
    for (int rank = 1; rank < scenario.cluster.gpus(); ++rank) {
        const pid_t child = ::fork();
        if (child < 0) throw std::runtime_error("no process");
        if (child == 0) {
            ::close(point.listener);
            serve_as(rank, point, scenario, plan);
        }
        children_.push_back(child);
    }
    control_ = std::make_unique<backend::HostControl>(point, 0, scenario.cluster.gpus(), kTimeout);
    member_ = std::make_unique<backend::Member>(scenario, plan, deployment_options(), *control_);
    cluster_ = std::make_unique<backend::RealCluster>(scenario, plan, deployment_options(), *control_, *member_, sink);
}

DeployedCluster::~DeployedCluster() {
    cluster_.reset();
    member_.reset();
    control_.reset();
    for (const pid_t child : children_) {
        int status = 0;
        while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
        }
    }
}

}  // namespace headway::tests
