#include "backend/communicator/host_communicators.h"

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "backend/communicator/gloo_mesh.h"
#include "backend/communicator/host_communicator.h"
#include "backend/communicator/shared_groups.h"

namespace headway::backend {

HostCommunicatorMaker::HostCommunicatorMaker(Control& control, std::chrono::milliseconds timeout, Through through)
    : mesh_(std::make_shared<GlooMesh>(control, timeout)), through_(through) {}

HostCommunicatorMaker::~HostCommunicatorMaker() = default;

std::int64_t HostCommunicatorMaker::bytes_sent() const {
    return mesh_->bytes_sent();
}

std::vector<std::unique_ptr<Communicator>> HostCommunicatorMaker::make(const std::vector<GroupSpec>& groups) {
    Control& control = mesh_->control();
    std::uint64_t agreed = 14695981039346656037u;  // FNV-1a over all that has to be the same
    const auto hash = [&](const auto& item) {
        for (const char byte : item) agreed = (agreed ^ static_cast<unsigned char>(byte)) * 1099511628211u;
    };
    std::vector<int> peers;
    for (const GroupSpec& group : groups) {
        hash(group.name);
        for (const int member : group.members) {
            if (member < 0 || member >= control.size() ||
                std::count(group.members.begin(), group.members.end(), member) != 1)
                throw std::invalid_argument("group '" + group.name + "': " + std::to_string(member) +
                                            " is no process of the job, or named twice");
            hash(std::to_string(member) + ",");
        }
        if (std::find(group.members.begin(), group.members.end(), control.rank()) != group.members.end())
            peers.insert(peers.end(), group.members.begin(), group.members.end());
        hash(std::string(";"));
    }
    std::sort(peers.begin(), peers.end());
    peers.erase(std::unique(peers.begin(), peers.end()), peers.end());
    mesh_->connect(peers, agreed);
    const std::vector<std::shared_ptr<SharedRounds>> shared =
        through_ == Through::kNetwork ? std::vector<std::shared_ptr<SharedRounds>>(groups.size())
                                      : share_memory(control, groups);
    std::vector<std::unique_ptr<Communicator>> communicators;
    for (std::size_t i = 0; i < groups.size(); ++i) {
        const GroupSpec& group = groups[i];
        const auto own = std::find(group.members.begin(), group.members.end(), control.rank());
        const int number = made_++ & 0xffff;
        communicators.push_back(own == group.members.end()
                                    ? nullptr
                                    : std::make_unique<HostCommunicator>(mesh_, shared[i], group,
                                                                         static_cast<int>(own - group.members.begin()),
                                                                         number));
    }
    return communicators;
}

}  // namespace headway::backend
