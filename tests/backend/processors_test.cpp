#include "backend/processors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "backend/backend_error.h"
#include "tests/backend/local_ranks.h"

namespace headway::backend {
namespace {

using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

constexpr std::chrono::milliseconds kTimeout{20'000};

TEST(Processors, OfTheHostComputeAndTalk) {
    run_ranks(2, [](LocalRank& local) {
        const Processors processors = make_processors("host", local.control, 0, kTimeout);
        EXPECT_EQ(processors.device->name(), "host");
        EXPECT_EQ(processors.device->working_type(), DataType::kFloat32);
        const auto groups = processors.communicators->make({{"both", {0, 1}}});
        const Buffer buffer = processors.device->allocate(DataType::kFloat32, 6);
        const Tensor values = buffer.tensor(DataType::kFloat32, 2, 3);
        processors.device->operations().fill(values, 1.0 + local.rank);
        groups[0]->all_reduce(values, ReduceOperation::kSum)->wait();
        processors.device->operations().scale(values, 0.5);
        std::vector<float> result(6);
        processors.device->to_host(values, result.data());
        EXPECT_THAT(result, ::testing::Each(1.5f));
    });
}

TEST(Processors, OfAnUnknownKindAreRefused) {
    run_ranks(1, [](LocalRank& local) {
        EXPECT_THAT([&] { make_processors("abacus", local.control, 0, kTimeout); },
                    ThrowsMessage<BackendError>(HasSubstr("processors 'abacus': unknown kind (host or cuda)")));
    });
}

}  // namespace
}  // namespace headway::backend
