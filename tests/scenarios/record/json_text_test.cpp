#include "scenarios/record/json_text.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <random>
#include <stdexcept>

namespace headway::scenarios {
namespace {

std::string json_of(const std::string& text) {
    return JsonText().value(text).take();
}

TEST(JsonText, KeepsTheOrderOfKeysAndNests) {
    JsonText json;
    json.begin_object().field("b", 1).field("a", std::vector<int>{2, 3}).key("c").begin_object().end_object();
    json.key("d").begin_array().begin_array().end_array().value(true).null().end_array().end_object();
    EXPECT_EQ(json.take(), R"({"b":1,"a":[2,3],"c":{},"d":[[],true,null]})");
}

TEST(JsonText, WritesIntegersExactly) {
    EXPECT_EQ(JsonText().value(std::numeric_limits<std::int64_t>::min()).take(), "-9223372036854775808");
    EXPECT_EQ(JsonText().value(std::numeric_limits<std::uint64_t>::max()).take(), "18446744073709551615");
}

TEST(JsonText, WritesTheShortestDoubleThatReadsBack) {
    EXPECT_EQ(JsonText().value(0.1).take(), "0.1");
    EXPECT_EQ(JsonText().value(1e22).take(), "1e+22");
    std::mt19937_64 random(1);
    for (int i = 0; i < 20'000; ++i) {
        const double value = std::bit_cast<double>(random());
        if (!std::isfinite(value)) continue;
        const std::string text = JsonText().value(value).take();
        ASSERT_EQ(nlohmann::json::parse(text).get<double>(), value) << text;
    }
}

TEST(JsonText, NamesTheKeyOfANumberThatIsNotFinite) {
    JsonText json;
    json.begin_object();
    try {
        json.field("mfu", std::nan(""));
        FAIL() << "wrote NaN";
    } catch (const std::invalid_argument& error) {
        EXPECT_STREQ(error.what(), "mfu: a number that is not finite");
    }
}

TEST(JsonText, EscapesWhatJsonDoesNotAllow) {
    EXPECT_EQ(json_of("a\"b\\c\n\t\x01"), R"("a\"b\\c\n\t\u0001")");
    EXPECT_EQ(json_of("25 °C → €𝄞"), "\"25 °C → €𝄞\"");
}

TEST(JsonText, IsValidJsonForAnyBytes) {
    std::mt19937 random(1);
    for (int i = 0; i < 5000; ++i) {
        std::string bytes(random() % 12, '\0');
        for (char& byte : bytes) byte = static_cast<char>(random() % 4 == 0 ? random() % 128 : random() % 256);
        ASSERT_TRUE(nlohmann::json::accept(json_of(bytes))) << i;
    }
}

}  // namespace
}  // namespace headway::scenarios
