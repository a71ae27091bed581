#include "scenarios/record/progress.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <memory>

#include "scenarios/record/figures.h"
#include "tests/scenarios/record/small_run.h"

namespace headway::tests {
namespace {

using namespace scenarios;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

/// A stream in memory and a clock that the test moves.
class ProgressTest : public ::testing::Test {
  protected:
    std::string shown() {
        std::fflush(stream_.get());
        return std::string(text_, size_);
    }
    std::vector<std::string> drawings() {
        std::vector<std::string> parts;
        const std::string all = shown();
        for (std::size_t at = 0; (at = all.find('\r', at)) != std::string::npos; ++at) {
            parts.push_back(all.substr(at + 1, all.find('\r', at + 1) - at - 1));
        }
        return parts;
    }
    ProgressBar bar(int columns) {
        return ProgressBar(stream_.get(), columns, [this] { return now_; });
    }
    void TearDown() override {
        stream_.reset();
        std::free(text_);
    }

    char* text_ = nullptr;
    std::size_t size_ = 0;
    struct Close {
        void operator()(std::FILE* file) const { std::fclose(file); }
    };
    std::unique_ptr<std::FILE, Close> stream_{open_memstream(&text_, &size_)};
    std::chrono::steady_clock::time_point now_{};
};

TEST_F(ProgressTest, IsSilentWhereThereIsNoTerminal) {
    {
        ProgressBar quiet(stream_.get());
        play_small_run(quiet);
    }
    EXPECT_THAT(shown(), IsEmpty());
}

TEST_F(ProgressTest, DrawsAtMostTenTimesASecond) {
    ProgressBar shown_bar = bar(80);
    RunHeader header = small_header();
    header.planned_iterations = 10'000;
    shown_bar.begin(header);
    for (int i = 0; i < 10'000; ++i) {
        now_ += std::chrono::microseconds(200);  // two seconds in all
        shown_bar.iteration(small_iteration(i, i * 10, 10));
    }
    EXPECT_LE(drawings().size(), 21u);
    EXPECT_GE(drawings().size(), 19u);
}

TEST_F(ProgressTest, SaysHowFarAndHowLongStill) {
    ProgressBar shown_bar = bar(80);
    RunHeader header = small_header();
    header.planned_iterations = 100;
    shown_bar.begin(header);
    now_ += std::chrono::seconds(30);
    shown_bar.iteration(small_iteration(24, 240, 10));
    EXPECT_THAT(drawings().back(), HasSubstr("25 %  25 iterations, 4 min 10 s, 1:30 left"));
}

TEST_F(ProgressTest, GoesByTimeWhereTheScenarioDoes) {
    ProgressBar shown_bar = bar(80);
    RunHeader header = small_header();
    header.planned_iterations = 0;
    header.planned_ns = 1000 * kSecond;
    shown_bar.begin(header);
    now_ += std::chrono::seconds(1);
    shown_bar.pause({PauseEvent::Reason::kLoss, 100 * kSecond, 400 * kSecond, 0, -1, ""});
    EXPECT_THAT(drawings().back(), HasSubstr("50 %"));
}

TEST_F(ProgressTest, NeverBreaksTheLineAndWipesItAtTheEnd) {
    for (const int columns : {1, 10, 40, 80, 200}) {
        ProgressBar shown_bar = bar(columns);
        play_small_run(shown_bar, /*ended=*/false);
        EXPECT_LT(text_width(drawings().back()), static_cast<std::size_t>(std::max(columns, 2)));
        shown_bar.end({});
        EXPECT_THAT(shown(), EndsWith("\r\033[K"));
    }
}

}  // namespace
}  // namespace headway::tests
