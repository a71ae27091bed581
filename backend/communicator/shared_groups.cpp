#include "backend/communicator/shared_groups.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <string>
#include <system_error>
#include <utility>

namespace headway::backend {

namespace {

std::vector<char> bytes_of(const std::string& text) {
    return {text.begin(), text.end()};
}

/// Where a group's memory is in that of its first member.
struct GroupMemory {
    int leader = -1;  ///< -1: not shared
    std::size_t offset = 0;
};

struct SharedLayout {
    std::vector<GroupMemory> groups;
    std::map<int, std::size_t> bytes;  ///< by leader
};

SharedLayout layout_of(const std::vector<GroupSpec>& groups, const std::vector<std::vector<char>>& machines) {
    SharedLayout layout;
    for (const GroupSpec& group : groups) {
        GroupMemory& memory = layout.groups.emplace_back();
        if (group.members.size() < 2) continue;
        const std::vector<char>& machine = machines[static_cast<std::size_t>(group.members[0])];
        const bool together = std::all_of(group.members.begin(), group.members.end(), [&](int member) {
            return machines[static_cast<std::size_t>(member)] == machine;
        });
        if (machine.empty() || !together) continue;
        std::size_t& bytes = layout.bytes[group.members[0]];
        memory = {group.members[0], bytes};
        bytes += SharedRounds::bytes_for(static_cast<int>(group.members.size()));
    }
    return layout;
}

}  // namespace

std::vector<std::shared_ptr<SharedRounds>> share_memory(Control& control, const std::vector<GroupSpec>& groups) {
    std::vector<std::shared_ptr<SharedRounds>> shared(groups.size());
    const SharedLayout layout = layout_of(groups, control.all_gather(bytes_of(machine_identity())));
    if (layout.bytes.empty()) return shared;
    std::map<int, std::shared_ptr<SharedMemory>> memory;  // by leader
    bool possible = true;
    try {
        const auto own = layout.bytes.find(control.rank());
        if (own != layout.bytes.end()) memory[control.rank()] = SharedMemory::create(own->second);
    } catch (const std::system_error&) {
        possible = false;
    }
    const auto names = control.all_gather(bytes_of(memory.empty() ? "" : memory.begin()->second->name()));
    try {
        for (std::size_t i = 0; i < groups.size() && possible; ++i) {
            const std::vector<int>& members = groups[i].members;
            const auto own = std::find(members.begin(), members.end(), control.rank());
            const GroupMemory& place = layout.groups[i];
            if (place.leader < 0 || own == members.end()) continue;
            std::shared_ptr<SharedMemory>& of_leader = memory[place.leader];
            if (!of_leader) {
                const std::vector<char>& name = names[static_cast<std::size_t>(place.leader)];
                of_leader = SharedMemory::open({name.begin(), name.end()}, layout.bytes.at(place.leader));
            }
            shared[i] = std::make_shared<SharedRounds>(of_leader, place.offset, static_cast<int>(own - members.begin()),
                                                       static_cast<int>(members.size()));
        }
    } catch (const std::system_error&) {
        possible = false;
    }
    const auto answers = control.all_gather({static_cast<char>(possible)});
    const bool everywhere =
        std::all_of(answers.begin(), answers.end(), [](const std::vector<char>& answer) { return answer.at(0) != 0; });
    if (!everywhere) shared.assign(groups.size(), nullptr);
    return shared;
}

}  // namespace headway::backend
