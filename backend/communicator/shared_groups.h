#pragma once

#include <memory>
#include <vector>

#include "backend/communicator/communicator.h"
#include "backend/communicator/shared_memory.h"

namespace headway::backend {

/// Memory for the groups of at least two whose members are all on one machine; null for others, and where this process
/// is no member. When a process cannot share memory (the system refuses), all groups of this call are null in all
/// processes. Every process of the job calls it with the same groups. The first member of a group makes its memory.
std::vector<std::shared_ptr<SharedRounds>> share_memory(Control& control, const std::vector<GroupSpec>& groups);

}  // namespace headway::backend
