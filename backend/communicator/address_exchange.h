#pragma once

#include <cstdint>
#include <vector>

#include "backend/communicator/communicator.h"

namespace headway::backend {

/// Every process gives for each process the address at which it expects its connection (empty: none) [processes], and
/// gets those at which they expect this one's. `agreed` must be the same in all. Throws BackendError, in all.
std::vector<std::vector<char>> exchange_addresses(Control& control, std::uint64_t agreed,
                                                  const std::vector<std::vector<char>>& expected);

}  // namespace headway::backend
