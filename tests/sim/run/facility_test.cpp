#include "sim/run/facility.h"

#include <gtest/gtest.h>

#include "tests/sim/small_jobs.h"

namespace headway::sim {
namespace {

Duration s(double seconds) {
    return Duration::seconds(seconds);
}

scenarios::Cluster with_spares(int spares) {
    scenarios::Cluster cluster = tests::plain_cluster(4, 8, 2);
    cluster.facility.spare_nodes = spares;
    cluster.facility.spare_start = s(120);
    return cluster;
}

Outage outage_repaired_at(double seconds) {
    Outage outage;
    outage.repaired = s(seconds);
    return outage;
}

TEST(Facility, WithoutSparesOneWaitsForTheRepair) {
    Facility facility(with_spares(0), {});
    const Facility::Replacement r = facility.replace(outage_repaired_at(5000), s(100));
    EXPECT_EQ(r.at, s(5000));
    EXPECT_FALSE(r.spare);
}

TEST(Facility, ASpareJoinsAfterItsStart) {
    Facility facility(with_spares(1), {});
    const Facility::Replacement first = facility.replace(outage_repaired_at(5000), s(100));
    EXPECT_EQ(first.at, s(220));
    EXPECT_TRUE(first.spare);
    // The next loss finds none: its own repair at 9000 s, or the first broken node as a spare from 5000 s on.
    const Facility::Replacement second = facility.replace(outage_repaired_at(9000), s(1000));
    EXPECT_EQ(second.at, s(5120));
    EXPECT_TRUE(second.spare);
}

TEST(Facility, ARepairThatIsFasterThanTheSpareIsWaitedFor) {
    Facility facility(with_spares(1), {});
    EXPECT_EQ(facility.replace(outage_repaired_at(150), s(100)).at, s(150));
    EXPECT_TRUE(facility.replace(outage_repaired_at(5000), s(100)).spare) << "the spare is still there";
}

TEST(Facility, NodesThatArriveAreSparesUntilTheyLeave) {
    const std::vector<ArrivalEvent> arrivals{{s(1000), 1}, {s(2000), -1}};
    Facility facility(with_spares(0), arrivals);
    EXPECT_EQ(facility.replace(outage_repaired_at(5000), s(100)).at, s(1120));
    facility.start();
    EXPECT_EQ(facility.replace(outage_repaired_at(5000), s(2500)).at, s(5000));
}

}  // namespace
}  // namespace headway::sim
