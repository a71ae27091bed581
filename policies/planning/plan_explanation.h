#pragma once

#include <string>

#include "policies/planning/layout_search.h"

namespace headway::policies {

/// What holds a plan back, and what sets it apart from `next` (may be null): "bubble 6.3 %, tensor communication 9.1 %;
/// 1.2 % ahead of the next by less bubble". Shares below one per cent are left out.
std::string explain(const PlannedLayout& plan, const PlannedLayout* next);

}  // namespace headway::policies
