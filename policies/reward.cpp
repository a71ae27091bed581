#include "policies/reward.h"

namespace headway::policies {

double reward(const Interval& interval, scenarios::Duration healthy_iteration) {
    if (interval.wall <= scenarios::Duration()) return 0.0;
    const auto useful = static_cast<double>(interval.iterations - interval.iterations_lost);
    return useful * healthy_iteration.s() / interval.wall.s();
}

}  // namespace headway::policies
