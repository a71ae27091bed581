#include <gtest/gtest.h>

#include <string>
#include <type_traits>

#include "scenarios/language/fields.h"
#include "scenarios/language/random.h"
#include "scenarios/language/value_text.h"
#include "tests/scenarios/language/small_scenario.h"

/// Properties over random scenarios: what is written reads back equal, whatever is in it.
namespace headway::scenarios {
namespace {

/// A visitor of the field lists that gives every member a random value inside its bounds.
class RandomFields {
  public:
    explicit RandomFields(RandomStream& random) : random_(random) {}

    template <class T>
    void field(const char*, T& member, const Bounds& bounds = {}) {
        draw(member, bounds);
    }
    template <class T>
    void required(const char*, T& member, const Bounds& bounds = {}) {
        draw(member, bounds);
    }
    template <class T>
    void catalogued(const char*, T& member, const char*) {
        fields(*this, member);
    }
    template <class List>
    void group(const char*, List list) {
        list(*this);
    }
    void index(const char*, int&) {}
    void name(std::string& member) { draw(member, {}); }
    void refuse(const char*, const char*) {}
    template <class T>
    void value_or_auto(const char*, T&, bool&, const Bounds&) {}
    void only_auto(const char*, bool&, const char*) {}
    void list_or_word(const char*, std::vector<int>&, const char*, const Bounds&) {}
    template <class Row>
    void rows(const char*, std::vector<Row>&) {}
    void node_groups(std::vector<NodeGroup>& member) {
        for (NodeGroup& group : member) fields(*this, group);
    }
    void cause(Cause&) {}

  private:
    double inside(const Bounds& bounds) {
        const double max = std::min(bounds.max, 1e6);
        const double low = std::max(bounds.min, -1e6);
        const double value = low + (max - low) * random_.uniform();
        return bounds.contains(value) ? value : (low + max) / 2;
    }

    void draw(int& member, const Bounds& bounds) {
        member = std::max(static_cast<int>(bounds.min), static_cast<int>(inside(bounds)));
    }
    void draw(std::uint64_t& member, const Bounds&) { member = random_.next(); }
    void draw(bool& member, const Bounds&) { member = random_.below(2) == 0; }
    void draw(double& member, const Bounds& bounds) { member = inside(bounds); }
    void draw(Duration& member, const Bounds&) {
        member = Duration::nanoseconds(1 + static_cast<std::int64_t>(random_.next() >> (12 + random_.below(50))));
    }
    void draw(Bytes& member, const Bounds&) {
        member = Bytes(1 + static_cast<std::int64_t>(random_.next() >> (5 + random_.below(50))));
    }
    template <class Tag>
    void draw(Quantity<Tag>& member, const Bounds& bounds) {
        member.value = bounds.max < 1e9 ? inside(bounds) : random_.log_uniform(1e-3, 1e18);
    }
    void draw(std::string& member, const Bounds&) {
        static const std::vector<std::string> kParts{"a",
                                                     "Z",
                                                     "9",
                                                     " ",
                                                     "\n",
                                                     "\t",
                                                     "\"",
                                                     "\\",
                                                     "'",
                                                     ":",
                                                     "#",
                                                     "-",
                                                     "{",
                                                     "}",
                                                     "[",
                                                     "]",
                                                     ",",
                                                     "&",
                                                     "*",
                                                     "!",
                                                     "|",
                                                     ">",
                                                     "%",
                                                     "@",
                                                     "`",
                                                     "\x01",
                                                     "\x7f",
                                                     "ä",
                                                     "\xe2\x80\xa8",
                                                     "\xf0\x9f\x90\x8e",
                                                     "null",
                                                     "true",
                                                     "~",
                                                     "? "};
        member.clear();
        for (auto length = random_.below(12); length > 0; --length)
            member += kParts[static_cast<std::size_t>(random_.below(static_cast<std::int64_t>(kParts.size())))];
    }
    template <class T>
    void draw(std::optional<T>& member, const Bounds& bounds) {
        member.reset();
        if (random_.below(2)) draw(member.emplace(), bounds);
    }
    template <class T>
    void draw(std::vector<T>&, const Bounds&) {}
    template <class T>
    void draw(T& member, const Bounds&) {
        if constexpr (HasWords<T>) {
            const auto table = words(T{});
            member = table[static_cast<std::size_t>(random_.below(static_cast<std::int64_t>(table.size())))].second;
        } else {
            fields(*this, member);
        }
    }

    RandomStream& random_;
};

/// Everything about the scenario is random but what makes it a valid one: shapes, degrees, counts.
Scenario random_scenario(const Scenario& valid, RandomStream& random) {
    Scenario scenario = valid;
    RandomFields visitor(random);
    fields(visitor, scenario);
    const auto keep = [](auto& member, const auto& from) { member = from; };
    keep(scenario.job.model, valid.job.model);
    keep(scenario.job.global_batch, valid.job.global_batch);
    keep(scenario.job.micro_batch, valid.job.micro_batch);
    keep(scenario.job.measured, valid.job.measured);
    if (scenario.job.precision == Precision::kFp8 || scenario.job.precision == Precision::kFp32)
        scenario.job.precision = Precision::kBf16;
    keep(scenario.strategy, valid.strategy);
    keep(scenario.disturbances, valid.disturbances);
    scenario.generate.reset();
    if (scenario.run.time) scenario.run.time = Duration::seconds(1e6) + *scenario.run.time;
    for (std::size_t group = 0; group < scenario.cluster.node_groups.size(); ++group) {
        NodeGroup& now = scenario.cluster.node_groups[group];
        const NodeGroup& then = valid.cluster.node_groups[group];
        keep(now.count, then.count);
        keep(now.node.gpus, then.node.gpus);
        keep(now.node.nics, then.node.nics);
        keep(now.node.gpu.thermal, then.node.gpu.thermal);
        keep(now.node.gpu.min_clock, then.node.gpu.min_clock);
        keep(now.node.gpu.clock_step, then.node.gpu.clock_step);
        keep(now.node.gpu.boost_clock, then.node.gpu.boost_clock);
        keep(now.node.gpu.idle_power, then.node.gpu.idle_power);
        keep(now.node.gpu.power_limit, then.node.gpu.power_limit);
    }
    keep(scenario.cluster.network.nodes_per_rack, valid.cluster.network.nodes_per_rack);
    if (scenario.name.empty()) scenario.name = "x";  // an empty name would become the file's
    scenario.run.iterations = scenario.run.time ? RunLength{}.iterations : scenario.run.iterations;
    return scenario;
}

TEST(RandomScenarios, ReadBackEqualAndByteForByte) {
    const Scenario valid =
        read_small({{"disturbances.1", "{start: 1 s, duration: 2 s, link_delay: {nic: 3, delay: 1 ms}}"}});
    RandomStream random(3, "round trip");
    const int rounds = tests::long_tests() ? 20'000 : 400;
    for (int round = 0; round < rounds; ++round) {
        const Scenario scenario = random_scenario(valid, random);
        const std::string text = write_scenario(scenario);
        const Scenario again = parse_scenario(text, "random.yaml", "/nonexistent", Catalogue{"/nonexistent"});
        ASSERT_TRUE(again == scenario) << text;
        ASSERT_EQ(write_scenario(again), text);
    }
}

TEST(EveryCause, ReadsBackEqual) {
    const std::vector<std::string> causes{
        "airflow: {gpu: 1, resistance_factor: 2.5}",
        "inlet: {rack: 0, temperature: 41.5 C}",
        "power_cap: {node: 0, limit: 250 W}",
        "co_tenant: {gpu: 2, compute_share: 0.25, memory_share: 0.5}",
        "speed_factor: {gpu: 3, factor: 0.7}",
        "speed_factor: {series: [{time: 0 s, factor: 1}, {time: 90 s, factor: 0.25}]}",
        "link_bandwidth: {node_network: 0, factor: 0.3}",
        "link_delay: {pipeline_hop: 0, delay: 30 ms}",
        "link_flap: {node_fabric: 0, down: 100 ms, period: 2 s}",
        "gpu_loss: {gpu: 4}",
        "node_loss: {node: 0}",
        "node_arrival: {nodes: 2}",
        "sequence_lengths: {spread: 0.4}",
        "jitter: {spread: 0.02}"};
    std::size_t kinds = 0;
    std::string last;
    for (const std::string& cause : causes) {
        const Scenario scenario = read_small({{"disturbances", "[{start: 1 s, " + cause + "}]"}});
        const std::string kind = kind_of(scenario.disturbances[0].cause);
        EXPECT_EQ(cause.rfind(kind + ":", 0), 0u) << cause;
        kinds += kind != last;
        last = kind;
        EXPECT_TRUE(parse_scenario(write_scenario(scenario), "r.yaml", "/nonexistent", Catalogue{"/nonexistent"}) ==
                    scenario)
            << cause;
    }
    EXPECT_EQ(kinds, kCauseKinds.size());
}

TEST(MixedClusters, ReadBackEqual) {
    const std::string node =
        "node: {gpu: A100-SXM4-80GB, fabric: nvlink3, network: infiniband-hdr, host_memory: 1 TB, pcie: 25 GB/s, ";
    const Scenario scenario =
        read_small({{"cluster", "{name: two kinds, node_groups: [{count: 1, " + node +
                                    "gpus: 4, nics: 4}}, {count: 2, " + node + "gpus: 2, nics: 1}}]}"}});
    EXPECT_EQ(scenario.cluster.gpus(), 8);
    EXPECT_EQ(scenario.cluster.nodes(), 3);
    EXPECT_TRUE(parse_scenario(write_scenario(scenario), "r.yaml", "/nonexistent", Catalogue{"/nonexistent"}) ==
                scenario);
}

}  // namespace
}  // namespace headway::scenarios
