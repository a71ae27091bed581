#pragma once

#include <algorithm>
#include <vector>

#include "backend/device/device.h"

namespace headway::backend {

/// Time of one `call`: the lower quartile over rounds of as many calls as make a round long enough to be timed.
/// Whatever else the machine does only makes rounds longer.
template <class Call>
scenarios::Duration typical_time(Device& device, const Call& call) {
    constexpr int kRounds = 9;
    const scenarios::Duration long_enough = scenarios::Duration::milliseconds(4);
    const auto time_of_calls = [&](int calls) {
        device.synchronize();
        const Mark begin = device.mark();
        for (int i = 0; i < calls; ++i) call();
        const Mark end = device.mark();
        const scenarios::Duration time = device.time_of(end) - device.time_of(begin);
        device.forget_marks();
        return time;
    };
    time_of_calls(1);  // first touch
    int calls = 1;
    while (calls < 4096 && time_of_calls(calls) < long_enough) calls *= 2;
    std::vector<scenarios::Duration> rounds;
    for (int round = 0; round < kRounds; ++round) rounds.push_back(time_of_calls(calls));
    std::nth_element(rounds.begin(), rounds.begin() + kRounds / 4, rounds.end());
    return rounds[kRounds / 4].scaled(1.0 / calls);
}

}  // namespace headway::backend
