#include "tests/benchmark/host_links.h"

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <numeric>
#include <utility>
#include <vector>

#include "backend/communicator/host_communicators.h"
#include "backend/communicator/host_control.h"
#include "backend/launch/published_port.h"

namespace headway::benchmarks {

namespace {

using backend::HostCommunicatorMaker;
using backend::Tensor;
using LinksClock = std::chrono::steady_clock;
using Through = HostCommunicatorMaker::Through;

constexpr std::chrono::milliseconds kLinksTimeout{60'000};

double best_us(backend::Control& control, int times, const std::function<void()>& call) {
    double best = 1e300;
    for (int i = 0; i < times; ++i) {
        control.all_gather({});
        const auto begin = LinksClock::now();
        call();
        best = std::min(best, std::chrono::duration<double, std::micro>(LinksClock::now() - begin).count());
    }
    return best;
}

Tensor row_of(std::vector<float>& values) {
    const auto count = static_cast<std::int64_t>(values.size());
    return {values.data(), backend::DataType::kFloat32, 1, count, count};
}

/// In one rank; rank 0 prints and writes the time of 1 MiB to `told`.
void measure(backend::HostControl& control, Through through, int told) {
    HostCommunicatorMaker maker(control, kLinksTimeout, through);
    std::vector<int> members(static_cast<std::size_t>(control.size()));
    std::iota(members.begin(), members.end(), 0);
    const auto groups = maker.make({{"all", members}});
    backend::Communicator& all = *groups[0];
    for (const std::size_t bytes : {4ul << 10, 64ul << 10, 1ul << 20, 16ul << 20, 64ul << 20}) {
        std::vector<float> whole(bytes / sizeof(float)), part(whole.size() / members.size());
        const int times = bytes > (8 << 20) ? 5 : 30;
        const double reduce =
            best_us(control, times, [&] { all.all_reduce(row_of(whole), backend::ReduceOperation::kMaximum)->wait(); });
        const double scatter =
            best_us(control, times, [&] { all.reduce_scatter(row_of(whole), row_of(part))->wait(); });
        const double gather = best_us(control, times, [&] { all.all_gather(row_of(part), row_of(whole))->wait(); });
        const double round_trip = best_us(control, times, [&] {
            if (all.rank() > 1) return;
            for (const bool sends : {all.rank() == 0, all.rank() != 0})
                all.exchange(std::vector<backend::Message>{{sends, 1 - all.rank(), row_of(whole)}})->wait();
        });
        if (all.rank() != 0) continue;
        std::printf(
            "  %5zu KiB: all-reduce %9.0f us (%5.2f GB/s), reduce-scatter %9.0f, all-gather %9.0f, there and back "
            "%9.0f\n",
            bytes >> 10, reduce, static_cast<double>(bytes) / reduce / 1e3, scatter, gather, round_trip);
        if (bytes == 1 << 20 && ::write(told, &reduce, sizeof reduce) != sizeof reduce) std::abort();
    }
}

/// Best time of an all-reduce of 1 MiB.
double print_links_between(int ranks, Through through) {
    std::printf("%d ranks, %s\n", ranks,
                through == Through::kNetwork ? "network" : "shared memory (messages: network)");
    std::fflush(nullptr);
    int ends[2];
    if (::pipe(ends) != 0) std::abort();
    const backend::RendezvousPoint point = backend::listen_locally();
    for (int rank = 0; rank < ranks; ++rank) {
        if (::fork() != 0) continue;
        backend::RendezvousPoint mine = point;
        if (rank != 0) ::close(std::exchange(mine.listener, -1));
        {
            backend::HostControl control(mine, rank, ranks, kLinksTimeout);
            measure(control, through, ends[1]);
        }
        std::fflush(nullptr);
        ::_exit(0);
    }
    ::close(point.listener);
    ::close(ends[1]);
    double time = 0.0;
    if (::read(ends[0], &time, sizeof time) != sizeof time) time = 1e300;
    ::close(ends[0]);
    while (::wait(nullptr) > 0) {
    }
    return time;
}

}  // namespace

bool print_host_links() {
    bool faster = true;
    for (const int ranks : {2, 4, 8}) {
        const double network = print_links_between(ranks, Through::kNetwork);
        const double memory = print_links_between(ranks, Through::kSharedMemoryWherePossible);
        std::printf("%d ranks: shared memory is %.1f times as fast at 1 MiB\n", ranks, network / memory);
        faster = faster && memory < network;
    }
    return faster;
}

}  // namespace headway::benchmarks
