#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

#include "tests/backend/communicator/conformance.h"

namespace headway::backend {
namespace {

constexpr std::chrono::milliseconds kSuiteTimeout{20'000};

/// Elements of a part: none, one, odd, around what goes directly and what goes round in segments, large.
constexpr std::int64_t kCounts[] = {0, 1, 7, 1023, 2048, 2049, 65'537, 300'001};

/// Small whole numbers, so that sums are exact in every type and order.
template <typename Number>
std::vector<Number> whole_numbers(int rank, std::int64_t count) {
    std::vector<Number> values(static_cast<std::size_t>(count));
    for (std::int64_t i = 0; i < count; ++i)
        values[static_cast<std::size_t>(i)] = static_cast<Number>((i * 7 + rank * 13 + i * rank) % 101 - 50);
    return values;
}

/// Values whose sum depends on the order of additions in its last bits.
template <typename Number>
std::vector<Number> rough_numbers(int rank, std::int64_t count) {
    std::vector<Number> values(static_cast<std::size_t>(count));
    for (std::int64_t i = 0; i < count; ++i)
        values[static_cast<std::size_t>(i)] =
            static_cast<Number>(std::sin(0.37 * static_cast<double>(i) + 1.7 * rank) * std::pow(10.0, (i + rank) % 5));
    return values;
}

std::string bits_of(const void* data, std::size_t bytes) {
    std::uint64_t hash = 14695981039346656037u;
    for (std::size_t i = 0; i < bytes; ++i) hash = (hash ^ static_cast<const unsigned char*>(data)[i]) * 1099511628211u;
    return std::to_string(hash) + " ";
}

/// Calls `check` with a value of the C++ type of each data type.
template <typename Check>
void for_types(const std::vector<DataType>& types, Check&& check) {
    for (const DataType type : types) {
        if (type == DataType::kFloat32) check(type, float{});
        if (type == DataType::kFloat64) check(type, double{});
        if (type == DataType::kInt32) check(type, std::int32_t{});
    }
}

class CommunicatorConformance : public ::testing::TestWithParam<std::tuple<std::size_t, int>> {
  protected:
    void SetUp() override {
        const std::string why = kind().missing(size());
        if (!why.empty()) GTEST_SKIP() << kind().name << ": " << why;
    }
    const CommunicatorKind& kind() const { return communicator_kinds()[std::get<0>(GetParam())]; }
    int size() const { return std::get<1>(GetParam()); }
    /// Runs `work` in every rank with a communicator of all.
    std::vector<std::string> run(const std::function<std::string(Device&, Communicator&)>& work) const {
        return run_ranks(size(), [&](LocalRank& local) {
            const Processors processors = kind().make(local.control, kSuiteTimeout);
            const auto groups = processors.communicators->make(one_group(size()));
            return work(*processors.device, *groups.at(0));
        });
    }
};

TEST_P(CommunicatorConformance, AllReduceAddsUpAndFindsTheLargest) {
    run([&](Device& device, Communicator& all) {
        for_types(kind().reduced, [&](DataType type, auto number) {
            using Number = decltype(number);
            for (const std::int64_t count : kCounts) {
                std::vector<Number> sum = whole_numbers<Number>(0, count), largest = sum;
                for (int rank = 1; rank < size(); ++rank) {
                    const std::vector<Number> other = whole_numbers<Number>(rank, count);
                    for (std::size_t i = 0; i < sum.size(); ++i) {
                        sum[i] += other[i];
                        largest[i] = std::max(largest[i], other[i]);
                    }
                }
                const Values<Number> added(device, type, whole_numbers<Number>(all.rank(), count));
                const Values<Number> compared(device, type, whole_numbers<Number>(all.rank(), count));
                all.all_reduce(added.tensor(), ReduceOperation::kSum)->wait();
                all.all_reduce(compared.tensor(), ReduceOperation::kMaximum)->wait();
                EXPECT_EQ(added.read(), sum) << count << " elements of type " << static_cast<int>(type);
                EXPECT_EQ(compared.read(), largest) << count << " elements of type " << static_cast<int>(type);
            }
        });
        return std::string();
    });
}

TEST_P(CommunicatorConformance, ReduceScatterGivesEachItsPartOfTheSum) {
    run([&](Device& device, Communicator& all) {
        for_types(kind().reduced, [&](DataType type, auto number) {
            using Number = decltype(number);
            for (const std::int64_t count : kCounts) {
                std::vector<Number> sum(static_cast<std::size_t>(count));
                const std::vector<Number> mine = whole_numbers<Number>(all.rank(), count * size());
                for (int rank = 0; rank < size(); ++rank) {
                    const std::vector<Number> other = whole_numbers<Number>(rank, count * size());
                    for (std::size_t i = 0; i < sum.size(); ++i)
                        sum[i] += other[static_cast<std::size_t>(all.rank() * count) + i];
                }
                const Values<Number> from(device, type, mine);
                const Values<Number> to(device, type, std::vector<Number>(static_cast<std::size_t>(count)));
                all.reduce_scatter(from.tensor(), to.tensor())->wait();
                EXPECT_EQ(to.read(), sum) << count << " elements of type " << static_cast<int>(type);
                EXPECT_EQ(from.read(), mine) << "the tensor that is read has changed";
                const Tensor in_place = from.tensor().elements(all.rank() * count, count);
                all.reduce_scatter(from.tensor(), in_place)->wait();
                const std::vector<Number> after = from.read();
                EXPECT_TRUE(std::equal(sum.begin(), sum.end(), after.begin() + all.rank() * count)) << count;
            }
        });
        return std::string();
    });
}

TEST_P(CommunicatorConformance, AllGatherBringsAllPartsInOrder) {
    run([&](Device& device, Communicator& all) {
        for_types(kind().reduced, [&](DataType type, auto number) {
            using Number = decltype(number);
            for (const std::int64_t count : kCounts) {
                std::vector<Number> expected;
                for (int rank = 0; rank < size(); ++rank) {
                    const std::vector<Number> part = whole_numbers<Number>(rank, count);
                    expected.insert(expected.end(), part.begin(), part.end());
                }
                const std::vector<Number> mine = whole_numbers<Number>(all.rank(), count);
                const Values<Number> from(device, type, mine);
                const Values<Number> to(device, type, std::vector<Number>(expected.size()));
                all.all_gather(from.tensor(), to.tensor())->wait();
                EXPECT_EQ(to.read(), expected) << count << " elements of type " << static_cast<int>(type);
                const Values<Number> in_place(device, type, std::vector<Number>(expected.size()));
                const Tensor part = in_place.tensor().elements(all.rank() * count, count);
                if (count > 0) device.from_host(mine.data(), part);
                all.all_gather(part, in_place.tensor())->wait();
                EXPECT_EQ(in_place.read(), expected) << count << " in place";
            }
        });
        return std::string();
    });
}

TEST_P(CommunicatorConformance, BroadcastBringsTheRootsValuesWhoeverItIs) {
    run([&](Device& device, Communicator& all) {
        for (int root = 0; root < size(); ++root) {
            for (const std::int64_t count : kCounts) {
                const Values<float> values(device, DataType::kFloat32, whole_numbers<float>(all.rank(), count));
                all.broadcast(values.tensor(), root)->wait();
                EXPECT_EQ(values.read(), whole_numbers<float>(root, count)) << count << " elements, root " << root;
            }
        }
        return std::string();
    });
}

TEST_P(CommunicatorConformance, ExchangeMatchesMessagesOfAPairInTheirOrder) {
    if (size() == 1) return;  // nobody to exchange with
    run([&](Device& device, Communicator& all) {
        const int next = (all.rank() + 1) % size(), previous = (all.rank() + size() - 1) % size();
        const std::int64_t counts[] = {3, 70'001, 3, 0, 512, 3};
        std::vector<Values<float>> given, taken;
        for (const std::int64_t count : counts) {
            const int which = static_cast<int>(given.size());
            given.emplace_back(device, DataType::kFloat32, whole_numbers<float>(all.rank() + 10 * which, count));
            taken.emplace_back(device, DataType::kFloat32, std::vector<float>(static_cast<std::size_t>(count)));
        }
        // The first three in one batch, the others each in its own, all under way at once.
        std::vector<std::unique_ptr<Work>> works;
        std::vector<Message> batch;
        for (std::size_t i = 0; i < 3; ++i) {
            batch.push_back({true, next, given[i].tensor()});
            batch.push_back({false, previous, taken[i].tensor()});
        }
        works.push_back(all.exchange(batch));
        for (std::size_t i = 3; i < std::size(counts); ++i) {
            works.push_back(all.exchange(std::vector<Message>{{true, next, given[i].tensor()}}));
            works.push_back(all.exchange(std::vector<Message>{{false, previous, taken[i].tensor()}}));
        }
        for (const auto& work : works) work->wait();
        for (std::size_t i = 0; i < std::size(counts); ++i)
            EXPECT_EQ(taken[i].read(), whole_numbers<float>(previous + 10 * static_cast<int>(i), counts[i])) << i;
        return std::string();
    });
}

TEST_P(CommunicatorConformance, CallsRunInTheirOrderAndAreDoneLater) {
    run([&](Device& device, Communicator& all) {
        const std::int64_t count = 40'000;
        const Values<double> values(device, DataType::kFloat64, std::vector<double>(count, 1.0));
        std::vector<std::unique_ptr<Work>> works;
        for (int round = 0; round < 4; ++round) works.push_back(all.all_reduce(values.tensor(), ReduceOperation::kSum));
        while (!works.back()->done()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
        for (const auto& work : works) EXPECT_TRUE(work->done());
        for (const auto& work : works) work->wait();
        works.back()->wait();  // again
        device.synchronize();
        EXPECT_THAT(values.read(), ::testing::Each(std::pow(static_cast<double>(size()), 4.0)));
        return std::string();
    });
}

TEST_P(CommunicatorConformance, GivesTheSameBitsInEveryMemberAndRun) {
    const auto bits = [&] {
        return run([&](Device& device, Communicator& all) {
            std::string found;
            for (const std::int64_t count : {5, 4099, 200'003}) {
                const Values<float> values(device, DataType::kFloat32, rough_numbers<float>(all.rank(), count));
                all.all_reduce(values.tensor(), ReduceOperation::kSum)->wait();
                const std::vector<float> sum = values.read();
                found += bits_of(sum.data(), sum.size() * sizeof(float));
                const Values<float> from(device, DataType::kFloat32, rough_numbers<float>(all.rank(), count * size()));
                const Values<float> part(device, DataType::kFloat32,
                                         std::vector<float>(static_cast<std::size_t>(count)));
                const Values<float> whole(device, DataType::kFloat32,
                                          std::vector<float>(static_cast<std::size_t>(count * size())));
                all.reduce_scatter(from.tensor(), part.tensor())->wait();
                all.all_gather(part.tensor(), whole.tensor())->wait();
                const std::vector<float> gathered = whole.read();
                found += bits_of(gathered.data(), gathered.size() * sizeof(float));
            }
            return found;
        });
    };
    const std::vector<std::string> first = bits();
    EXPECT_THAT(first, ::testing::Each(first.at(0)));
    EXPECT_EQ(bits(), first);
}

TEST_P(CommunicatorConformance, StaysNearTheExactSum) {
    run([&](Device& device, Communicator& all) {
        const std::int64_t count = 50'021;
        std::vector<double> exact(static_cast<std::size_t>(count));
        for (int rank = 0; rank < size(); ++rank) {
            const std::vector<float> of_rank = rough_numbers<float>(rank, count);
            for (std::size_t i = 0; i < exact.size(); ++i) exact[i] += static_cast<double>(of_rank[i]);
        }
        const Values<float> values(device, DataType::kFloat32, rough_numbers<float>(all.rank(), count));
        all.all_reduce(values.tensor(), ReduceOperation::kSum)->wait();
        const std::vector<float> sum = values.read();
        double worst = 0.0;
        for (std::size_t i = 0; i < exact.size(); ++i)
            worst = std::max(worst, std::abs(static_cast<double>(sum[i]) - exact[i]));
        EXPECT_LT(worst, 1e4 * size() * 1.2e-7);
        return std::string();
    });
}

std::string case_name(const ::testing::TestParamInfo<std::tuple<std::size_t, int>>& info) {
    return communicator_kinds()[std::get<0>(info.param)].name + "_" + std::to_string(std::get<1>(info.param));
}

INSTANTIATE_TEST_SUITE_P(All, CommunicatorConformance,
                         ::testing::Combine(::testing::Range(std::size_t{0}, communicator_kinds().size()),
                                            ::testing::Values(1, 2, 3, 4, 8)),
                         case_name);

}  // namespace
}  // namespace headway::backend
