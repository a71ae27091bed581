#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "scenarios/language/units.h"

/// Numbers and quantities as text, exactly: what is formatted reads back as the same value, on every machine.
namespace headway::scenarios {

/// Decimal integers only: no sign but '-', no leading zeros, no overflow.
std::optional<std::int64_t> parse_integer(std::string_view text);
std::optional<std::uint64_t> parse_unsigned(std::string_view text);
/// Decimal numbers only (12, 0.5, 1e-3): no infinity, no NaN, no hexadecimal, no overflow.
std::optional<double> parse_number(std::string_view text);

/// "25 GB/s", "30 min", ...: empty for a missing or unknown unit and for a number out of range. Durations reach 10
/// years.
std::optional<Duration> parse_quantity(std::string_view text, Duration);
std::optional<Bytes> parse_quantity(std::string_view text, Bytes);
std::optional<BytesPerSecond> parse_quantity(std::string_view text, BytesPerSecond);
std::optional<FlopsPerSecond> parse_quantity(std::string_view text, FlopsPerSecond);
std::optional<Celsius> parse_quantity(std::string_view text, Celsius);
std::optional<Watts> parse_quantity(std::string_view text, Watts);
std::optional<Megahertz> parse_quantity(std::string_view text, Megahertz);
std::optional<KelvinPerWatt> parse_quantity(std::string_view text, KelvinPerWatt);

/// What a quantity of this type looks like: "a time such as 30 min (units: ns, us, ms, s, min, h, d)".
std::string quantity_form(Duration);
std::string quantity_form(Bytes);
std::string quantity_form(BytesPerSecond);
std::string quantity_form(FlopsPerSecond);
std::string quantity_form(Celsius);
std::string quantity_form(Watts);
std::string quantity_form(Megahertz);
std::string quantity_form(KelvinPerWatt);

/// The shortest text that reads back as the same value; integers and doubles as bare numbers.
std::string format_value(int value);
std::string format_value(std::int64_t value);
std::string format_value(std::uint64_t value);
std::string format_value(double value);
std::string format_value(Duration value);
std::string format_value(Bytes value);
std::string format_value(BytesPerSecond value);
std::string format_value(FlopsPerSecond value);
std::string format_value(Celsius value);
std::string format_value(Watts value);
std::string format_value(Megahertz value);
std::string format_value(KelvinPerWatt value);

template <class T>
concept QuantityType = requires(T value) {
    parse_quantity(std::string_view{}, value);
};

}  // namespace headway::scenarios
