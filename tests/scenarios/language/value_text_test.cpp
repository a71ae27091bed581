#include "scenarios/language/value_text.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>

#include "scenarios/language/random.h"
#include "tests/paths.h"

namespace headway::scenarios {
namespace {

TEST(ValueText, ReadsQuantitiesExactly) {
    EXPECT_EQ(parse_quantity("30 min", Duration{})->ns(), 1'800'000'000'000);
    EXPECT_EQ(parse_quantity("0.7 s", Duration{})->ns(), 700'000'000);
    EXPECT_EQ(parse_quantity("2.5us", Duration{})->ns(), 2500);
    EXPECT_EQ(parse_quantity("9007199254740993 ns", Duration{})->ns(), 9007199254740993);
    EXPECT_EQ(parse_quantity("80 GiB", Bytes{})->count(), 85'899'345'920);
    EXPECT_EQ(parse_quantity("80 GB", Bytes{})->count(), 80'000'000'000);
    EXPECT_EQ(parse_quantity("200 Gbit/s", BytesPerSecond{})->value, 25e9);
    EXPECT_EQ(parse_quantity("2.039 TB/s", BytesPerSecond{})->value, 2.039e12);
    EXPECT_EQ(parse_quantity("1.41 GHz", Megahertz{})->value, 1410.0);
    EXPECT_EQ(parse_quantity("312 TFLOP/s", FlopsPerSecond{})->value, 312e12);
    EXPECT_EQ(parse_quantity("-5 C", Celsius{})->value, -5.0);
}

TEST(ValueText, RejectsWhatIsNoQuantity) {
    for (const char* text : {"", "s", "5", "5 x", "5 S", "five s", "5 s s", "5  s ", "+ s", "- 5 s", ". s", "5e s",
                             "1e400 s", "11 y", "4000 d", "nan s", "inf s", "0x5 s", "5\ts"}) {
        EXPECT_FALSE(parse_quantity(text, Duration{})) << "'" << text << "'";
    }
    EXPECT_FALSE(parse_quantity("9999999999999999999 B", Bytes{}));
    EXPECT_FALSE(parse_quantity("1e-999999999999999999999 W", Watts{}));
}

TEST(ValueText, RejectsWhatIsNoNumber) {
    for (const char* text :
         {"", "-", "+", ".", "e5", "1e", "1e+", "1.2.3", "0x1", "nan", "inf", "1e400", " 1", "1 ", "1_000"})
        EXPECT_FALSE(parse_number(text)) << "'" << text << "'";
    for (const char* text : {"", "-", "01", "+1", "1.0", "1e3", " 1", "9223372036854775808", "-9223372036854775809"})
        EXPECT_FALSE(parse_integer(text)) << "'" << text << "'";
    EXPECT_EQ(parse_integer("-9223372036854775808"), std::numeric_limits<std::int64_t>::min());
    EXPECT_EQ(parse_unsigned("18446744073709551615"), std::numeric_limits<std::uint64_t>::max());
    EXPECT_FALSE(std::signbit(*parse_number("-0")));
}

TEST(ValueText, WritesTheLargestUnitThatFits) {
    EXPECT_EQ(format_value(Duration::seconds(1800)), "30 min");
    EXPECT_EQ(format_value(Duration::seconds(90)), "90 s");
    EXPECT_EQ(format_value(Duration::milliseconds(1500)), "1500 ms");
    EXPECT_EQ(format_value(Duration{}), "0 s");
    EXPECT_EQ(format_value(Bytes::gib(80)), "80 GiB");
    EXPECT_EQ(format_value(Bytes::gb(80)), "80 GB");
    EXPECT_EQ(format_value(BytesPerSecond{2.039e12}), "2.039 TB/s");
    EXPECT_EQ(format_value(BytesPerSecond{25e9}), "25 GB/s");
    EXPECT_EQ(format_value(Megahertz{1410}), "1410 MHz");
    EXPECT_EQ(format_value(KelvinPerWatt{0.0485}), "0.0485 K/W");
    EXPECT_EQ(format_value(0.1), "0.1");
    EXPECT_EQ(format_value(1e-9), "1e-9");
    EXPECT_EQ(format_value(1e22), "1e22");
    EXPECT_EQ(format_value(-2.5), "-2.5");
}

TEST(ValueText, ReadsBackEveryValueItWrites) {
    RandomStream random(11, "value text");
    const int rounds = tests::long_tests() ? 2'000'000 : 100'000;
    for (int round = 0; round < rounds; ++round) {
        const double value = std::bit_cast<double>(random.next());
        if (std::isfinite(value) && value != 0.0) {
            ASSERT_EQ(parse_number(format_value(value)), value);
            ASSERT_EQ(parse_quantity(format_value(Celsius{value}), Celsius{}), Celsius{value});
            ASSERT_EQ(parse_quantity(format_value(BytesPerSecond{value}), BytesPerSecond{}), BytesPerSecond{value})
                << format_value(BytesPerSecond{value});
            ASSERT_EQ(parse_quantity(format_value(FlopsPerSecond{value}), FlopsPerSecond{}), FlopsPerSecond{value});
        }
        const double rate = random.log_uniform(1.0, 1e17);
        ASSERT_EQ(parse_quantity(format_value(BytesPerSecond{rate}), BytesPerSecond{}), BytesPerSecond{rate})
            << format_value(BytesPerSecond{rate});
        const Duration duration =
            Duration::nanoseconds(static_cast<std::int64_t>(random.next() >> (random.below(40) + 8)));
        ASSERT_EQ(parse_quantity(format_value(duration), Duration{}), duration);
        const Bytes bytes(static_cast<std::int64_t>(random.next() >> (random.below(40) + 5)));
        ASSERT_EQ(parse_quantity(format_value(bytes), Bytes{}), bytes);
    }
}

}  // namespace
}  // namespace headway::scenarios
