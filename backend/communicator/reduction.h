#pragma once

#include <cstddef>

#include "backend/communicator/communicator.h"

namespace headway::backend {

/// into[i] = operation(into[i], from[i]) for `count` elements of `type`. Throws std::invalid_argument for a type that
/// is not summed on hosts (bfloat16).
void combine(DataType type, ReduceOperation operation, void* into, const void* from, std::size_t count);

}  // namespace headway::backend
