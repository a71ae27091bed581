#include "sim/network/flow_network.h"

#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <utility>
#include <vector>

namespace headway::sim {
namespace {

/// Starts flows and changes capacities at given times, and notes when flows end.
class Script final : public FlowNetwork::Client {
  public:
    explicit Script(FlowNetwork& network) : network_(network) {}

    void flow(std::int64_t at, int source, int sink, std::int64_t bytes, int tag) {
        steps_.emplace(at, [=, this] { network_.start(source, sink, bytes, tag); });
    }
    void capacity(std::int64_t at, int link, double value) {
        steps_.emplace(at, [=, this] { network_.set_capacity(link, value); });
    }
    std::map<int, std::int64_t> play() {
        ended_.clear();
        const std::int64_t first = steps_.begin()->first;
        network_.open_span(first);
        advance(first);
        network_.run(*this);
        return ended_;
    }

    std::int64_t next_event_ns() const override { return steps_.empty() ? -1 : steps_.begin()->first; }
    void advance(std::int64_t now) override {
        while (!steps_.empty() && steps_.begin()->first <= now) {
            const auto step = std::move(steps_.begin()->second);
            steps_.erase(steps_.begin());
            step();
        }
    }
    void flow_done(int tag, std::int64_t now) override { ended_[tag] = now; }

  private:
    FlowNetwork& network_;
    std::multimap<std::int64_t, std::function<void()>> steps_;
    std::map<int, std::int64_t> ended_;
};

constexpr std::int64_t kSecond = 1'000'000'000;

/// Four endpoints with a link each way (1 GB/s); links 8 and 9 are an uplink of 1.5 GB/s for sources 4, 5 and sinks 4,
/// 5, which are endpoints 0 and 1 once more.
FlowNetwork small_network() {
    std::vector<double> capacity(8, 1e9);
    capacity.push_back(1.5e9);
    capacity.push_back(1.5e9);
    std::vector<LinkPath> sources, sinks;
    for (int i = 0; i < 4; ++i) {
        sources.push_back({2 * i});
        sinks.push_back({2 * i + 1});
    }
    for (int i = 0; i < 2; ++i) {
        sources.push_back({2 * i, 8});
        sinks.push_back({2 * i + 1, 9});
    }
    return FlowNetwork(capacity, sources, sinks);
}

TEST(FlowNetwork, AloneAFlowTakesBytesOverBandwidth) {
    FlowNetwork network = small_network();
    Script script(network);
    script.flow(7, 0, 1, 250'000'000, 1);
    EXPECT_EQ(script.play()[1], 7 + kSecond / 4);
}

TEST(FlowNetwork, TwoFlowsIntoOneSinkGetHalfEach) {
    FlowNetwork network = small_network();
    Script script(network);
    script.flow(0, 0, 2, 1'000'000'000, 1);
    script.flow(0, 1, 2, 1'000'000'000, 2);
    auto ends = script.play();
    EXPECT_EQ(ends[1], 2 * kSecond);
    EXPECT_EQ(ends[2], 2 * kSecond);
}

TEST(FlowNetwork, ALateFlowSharesOnlyWhatIsLeft) {
    // First alone for 0.5 s, then half each until it ends at 1.5 s; the second has 0.5 GB left and takes 0.5 s more.
    FlowNetwork network = small_network();
    Script script(network);
    script.flow(0, 0, 2, 1'000'000'000, 1);
    script.flow(kSecond / 2, 0, 3, 1'000'000'000, 2);
    auto ends = script.play();
    EXPECT_EQ(ends[1], 3 * kSecond / 2);
    EXPECT_EQ(ends[2], 2 * kSecond);
}

TEST(FlowNetwork, AnUplinkIsSharedByAllThatCrossIt) {
    FlowNetwork network = small_network();
    Script script(network);
    script.flow(0, 4, 2, 750'000'000, 1);
    script.flow(0, 5, 3, 750'000'000, 2);
    auto ends = script.play();
    EXPECT_EQ(ends[1], kSecond);
    EXPECT_EQ(ends[2], kSecond);
}

TEST(FlowNetwork, ALinkThatSlowsAndRecoversActsAtOnceOnFlowsInFlight) {
    FlowNetwork network = small_network();
    Script script(network);
    script.flow(0, 0, 1, 1'000'000'000, 1);
    script.capacity(kSecond / 2, 0, 0.5e9);
    script.capacity(kSecond, 0, 1e9);
    EXPECT_EQ(script.play()[1], 5 * kSecond / 4);
}

TEST(FlowNetwork, AFlowThatStartsOnASlowLinkSpeedsUpWithIt) {
    FlowNetwork network = small_network();
    Script script(network);
    script.capacity(0, 0, 0.5e9);
    script.flow(0, 0, 1, 1'000'000'000, 1);
    script.capacity(kSecond, 0, 1e9);
    EXPECT_EQ(script.play()[1], 3 * kSecond / 2);
}

TEST(FlowNetwork, EqualSpansAreEqualToTheNanosecondHoweverLateTheyCome) {
    FlowNetwork network = small_network();
    std::map<int, std::int64_t> first;
    for (int span = 0; span < 2000; ++span) {
        Script script(network);
        const std::int64_t start = span * 1'234'567'891LL;
        for (int i = 0; i < 6; ++i)
            script.flow(start + i * 1'037, i % 4, (i + 1 + i / 4) % 4, 77'777'777 + 1'000'003 * i, i);
        auto ends = script.play();
        for (auto& [tag, end] : ends) end -= start;
        if (span == 0) first = ends;
        ASSERT_EQ(ends, first) << "span " << span;
    }
}

TEST(FlowNetwork, RefusesASecondOneBesideItAndTakesOneAfterIt) {
    std::int64_t first = 0;
    {
        FlowNetwork network = small_network();
        EXPECT_THROW(small_network(), std::logic_error);
        Script script(network);
        script.flow(0, 0, 2, 123'456'789, 1);
        script.flow(50'000'000, 1, 2, 1'000'000'000, 2);
        first = script.play()[2];
    }
    for (int i = 0; i < 3; ++i) {
        FlowNetwork network = small_network();
        Script script(network);
        script.flow(0, 0, 2, 123'456'789, 1);
        script.flow(50'000'000, 1, 2, 1'000'000'000, 2);
        EXPECT_EQ(script.play()[2], first);
    }
}

}  // namespace
}  // namespace headway::sim
