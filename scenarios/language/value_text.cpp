#include "scenarios/language/value_text.h"

#include <array>
#include <charconv>
#include <cmath>
#include <limits>
#include <span>

namespace headway::scenarios {
namespace {

/// value in the type's own unit = number x 10^exponent x factor.
struct ValueUnit {
    std::string_view name;
    int exponent;
    double factor = 1.0;
};

// Formatting takes the first unit that suits, so each table runs from large to small.
constexpr std::array<ValueUnit, 7> kDurationUnits{
    {{"d", 9, 86400.0}, {"h", 9, 3600.0}, {"min", 9, 60.0}, {"s", 9}, {"ms", 6}, {"us", 3}, {"ns", 0}}};
constexpr std::array<ValueUnit, 9> kBytesUnits{{{"TiB", 0, 1099511627776.0},
                                                {"TB", 12},
                                                {"GiB", 0, 1073741824.0},
                                                {"GB", 9},
                                                {"MiB", 0, 1048576.0},
                                                {"MB", 6},
                                                {"KiB", 0, 1024.0},
                                                {"kB", 3},
                                                {"B", 0}}};
constexpr std::array<ValueUnit, 10> kBandwidthUnits{{{"TB/s", 12},
                                                     {"GB/s", 9},
                                                     {"MB/s", 6},
                                                     {"kB/s", 3},
                                                     {"B/s", 0},
                                                     {"GiB/s", 0, 1073741824.0},
                                                     {"MiB/s", 0, 1048576.0},
                                                     {"Tbit/s", 12, 0.125},
                                                     {"Gbit/s", 9, 0.125},
                                                     {"Mbit/s", 6, 0.125}}};
constexpr std::array<ValueUnit, 4> kFlopsUnits{{{"PFLOP/s", 15}, {"TFLOP/s", 12}, {"GFLOP/s", 9}, {"FLOP/s", 0}}};
constexpr std::array<ValueUnit, 1> kCelsiusUnits{{{"C", 0}}};
constexpr std::array<ValueUnit, 2> kWattUnits{{{"W", 0}, {"kW", 3}}};
constexpr std::array<ValueUnit, 2> kMegahertzUnits{{{"MHz", 0}, {"GHz", 3}}};
constexpr std::array<ValueUnit, 1> kKelvinPerWattUnits{{{"K/W", 0}}};

constexpr std::int64_t kLongestNs = 10LL * 366 * 86400 * 1000000000LL;

/// Length of the decimal number at the start of `text`; 0 when there is none.
std::size_t number_length(std::string_view text) {
    std::size_t at = 0;
    const auto digits = [&] {
        const std::size_t from = at;
        while (at < text.size() && text[at] >= '0' && text[at] <= '9') ++at;
        return at - from;
    };
    if (at < text.size() && (text[at] == '-' || text[at] == '+')) ++at;
    std::size_t count = digits();
    if (at < text.size() && text[at] == '.') {
        ++at;
        count += digits();
    }
    if (count == 0) return 0;
    if (at < text.size() && (text[at] == 'e' || text[at] == 'E')) {
        const std::size_t mantissa_end = at++;
        if (at < text.size() && (text[at] == '-' || text[at] == '+')) ++at;
        if (digits() == 0) at = mantissa_end;
    }
    return at;
}

/// The decimal `text` times 10^shift, correctly rounded (so 2.039 TB/s is the double nearest to 2.039e12).
std::optional<double> shifted_number(std::string_view text, int shift) {
    if (!text.empty() && text.front() == '+') text.remove_prefix(1);
    const std::size_t exponent_at = text.find_first_of("eE");
    std::int64_t exponent = 0;
    if (exponent_at != std::string_view::npos) {
        std::string_view digits = text.substr(exponent_at + 1);
        if (!digits.empty() && digits.front() == '+') digits.remove_prefix(1);
        const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), exponent);
        if (error != std::errc() || end != digits.data() + digits.size() || std::abs(exponent) > 1000)
            return std::nullopt;
    }
    const std::string whole = std::string(text.substr(0, exponent_at)) + "e" + std::to_string(exponent + shift);
    double value = 0.0;
    const auto [end, error] = std::from_chars(whole.data(), whole.data() + whole.size(), value);
    if (error != std::errc() || end != whole.data() + whole.size() || !std::isfinite(value)) return std::nullopt;
    return value;
}

struct NumberAndUnit {
    std::string_view number;
    const ValueUnit* unit;
};

std::optional<NumberAndUnit> split_quantity(std::string_view text, std::span<const ValueUnit> units) {
    const std::size_t length = number_length(text);
    if (length == 0) return std::nullopt;
    std::string_view name = text.substr(length);
    while (!name.empty() && name.front() == ' ') name.remove_prefix(1);
    for (const ValueUnit& unit : units) {
        if (unit.name == name) return NumberAndUnit{text.substr(0, length), &unit};
    }
    return std::nullopt;
}

std::optional<std::int64_t> integer_quantity(std::string_view text, std::span<const ValueUnit> units,
                                             std::int64_t limit) {
    const auto parts = split_quantity(text, units);
    if (!parts) return std::nullopt;
    std::int64_t scale = static_cast<std::int64_t>(parts->unit->factor);
    for (int digit = 0; digit < parts->unit->exponent; ++digit) scale *= 10;
    if (const auto whole = parse_integer(parts->number)) {
        if (std::abs(static_cast<double>(*whole)) * static_cast<double>(scale) > static_cast<double>(limit))
            return std::nullopt;
        return *whole * scale;
    }
    const auto number = shifted_number(parts->number, parts->unit->exponent);
    if (!number || std::abs(*number * parts->unit->factor) > static_cast<double>(limit)) return std::nullopt;
    return std::llround(*number * parts->unit->factor);
}

std::optional<double> real_quantity(std::string_view text, std::span<const ValueUnit> units) {
    const auto parts = split_quantity(text, units);
    if (!parts) return std::nullopt;
    const auto number = shifted_number(parts->number, parts->unit->exponent);
    if (!number || !std::isfinite(*number * parts->unit->factor)) return std::nullopt;
    return *number * parts->unit->factor + 0.0;  // no negative zero
}

template <class Q>
std::optional<Q> quantity_of(std::optional<double> value) {
    if (!value) return std::nullopt;
    return Q{*value};
}

std::string integer_text(std::int64_t value, std::span<const ValueUnit> units, std::string_view zero_unit) {
    if (value == 0) return "0 " + std::string(zero_unit);
    for (const ValueUnit& unit : units) {
        std::int64_t scale = static_cast<std::int64_t>(unit.factor);
        for (int digit = 0; digit < unit.exponent; ++digit) scale *= 10;
        if (value % scale == 0) return std::to_string(value / scale) + " " + std::string(unit.name);
    }
    return {};  // unreachable: the last unit has scale 1
}

/// Shortest decimal of `value` divided by 10^shift, without a rounding of its own.
std::string shifted_text(double value, int shift) {
    std::array<char, 64> buffer{};
    const auto [end, error] =
        std::to_chars(buffer.data(), buffer.data() + buffer.size(), value, std::chars_format::scientific);
    std::string text(buffer.data(), end);
    const std::size_t at = text.find('e');
    const int exponent = std::stoi(text.substr(at + 1)) - shift;
    std::string sign;
    std::string digits;
    for (const char c : text.substr(0, at)) {
        if (c == '-')
            sign = "-";
        else if (c != '.')
            digits += c;
    }
    const int count = static_cast<int>(digits.size());
    if (exponent < -6 || exponent > 17) {
        return sign + digits.substr(0, 1) + (count > 1 ? "." + digits.substr(1) : "") + "e" + std::to_string(exponent);
    }
    if (exponent < 0) return sign + "0." + std::string(static_cast<std::size_t>(-exponent - 1), '0') + digits;
    if (count <= exponent + 1) return sign + digits + std::string(static_cast<std::size_t>(exponent + 1 - count), '0');
    return sign + digits.substr(0, static_cast<std::size_t>(exponent) + 1) + "." +
           digits.substr(static_cast<std::size_t>(exponent) + 1);
}

std::string real_text(double value, std::span<const ValueUnit> units) {
    const ValueUnit* chosen = nullptr;
    for (const ValueUnit& unit : units) {
        if (unit.factor != 1.0) continue;
        chosen = &unit;
        if (std::abs(value) >= std::pow(10.0, unit.exponent)) break;
    }
    if (value == 0.0) return "0 " + std::string(units.front().name);
    return shifted_text(value, chosen->exponent) + " " + std::string(chosen->name);
}

std::string unit_names(std::string_view what, std::span<const ValueUnit> units) {
    std::string text(what);
    text += units.size() == 1 ? "; unit: " : "; units: ";
    for (std::size_t i = 0; i < units.size(); ++i) text += (i ? ", " : "") + std::string(units[i].name);
    return text;
}

}  // namespace

std::optional<std::int64_t> parse_integer(std::string_view text) {
    std::int64_t value = 0;
    const std::string_view digits = !text.empty() && text.front() == '-' ? text.substr(1) : text;
    if (digits.empty() || (digits.size() > 1 && digits.front() == '0')) return std::nullopt;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
    return value;
}

std::optional<std::uint64_t> parse_unsigned(std::string_view text) {
    std::uint64_t value = 0;
    if (text.empty() || (text.size() > 1 && text.front() == '0')) return std::nullopt;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
    return value;
}

std::optional<double> parse_number(std::string_view text) {
    if (text.empty() || number_length(text) != text.size()) return std::nullopt;
    auto value = shifted_number(text, 0);
    if (value) *value += 0.0;  // no negative zero
    return value;
}

std::optional<Duration> parse_quantity(std::string_view text, Duration) {
    const auto ns = integer_quantity(text, kDurationUnits, kLongestNs);
    if (!ns) return std::nullopt;
    return Duration::nanoseconds(*ns);
}
std::optional<Bytes> parse_quantity(std::string_view text, Bytes) {
    const auto count = integer_quantity(text, kBytesUnits, 1LL << 60);
    if (!count) return std::nullopt;
    return Bytes(*count);
}
std::optional<BytesPerSecond> parse_quantity(std::string_view text, BytesPerSecond) {
    return quantity_of<BytesPerSecond>(real_quantity(text, kBandwidthUnits));
}
std::optional<FlopsPerSecond> parse_quantity(std::string_view text, FlopsPerSecond) {
    return quantity_of<FlopsPerSecond>(real_quantity(text, kFlopsUnits));
}
std::optional<Celsius> parse_quantity(std::string_view text, Celsius) {
    return quantity_of<Celsius>(real_quantity(text, kCelsiusUnits));
}
std::optional<Watts> parse_quantity(std::string_view text, Watts) {
    return quantity_of<Watts>(real_quantity(text, kWattUnits));
}
std::optional<Megahertz> parse_quantity(std::string_view text, Megahertz) {
    return quantity_of<Megahertz>(real_quantity(text, kMegahertzUnits));
}
std::optional<KelvinPerWatt> parse_quantity(std::string_view text, KelvinPerWatt) {
    return quantity_of<KelvinPerWatt>(real_quantity(text, kKelvinPerWattUnits));
}

std::string quantity_form(Duration) {
    return unit_names("a time such as 30 min", kDurationUnits) + "; up to 10 years";
}
std::string quantity_form(Bytes) {
    return unit_names("an amount of data such as 80 GiB", kBytesUnits);
}
std::string quantity_form(BytesPerSecond) {
    return unit_names("a bandwidth such as 25 GB/s", kBandwidthUnits);
}
std::string quantity_form(FlopsPerSecond) {
    return unit_names("a rate such as 312 TFLOP/s", kFlopsUnits);
}
std::string quantity_form(Celsius) {
    return unit_names("a temperature such as 35 C", kCelsiusUnits);
}
std::string quantity_form(Watts) {
    return unit_names("a power such as 400 W", kWattUnits);
}
std::string quantity_form(Megahertz) {
    return unit_names("a clock such as 1410 MHz", kMegahertzUnits);
}
std::string quantity_form(KelvinPerWatt) {
    return unit_names("a thermal resistance such as 0.049 K/W", kKelvinPerWattUnits);
}

std::string format_value(int value) {
    return std::to_string(value);
}
std::string format_value(std::int64_t value) {
    return std::to_string(value);
}
std::string format_value(std::uint64_t value) {
    return std::to_string(value);
}
std::string format_value(double value) {
    return value == 0.0 ? "0" : shifted_text(value, 0);
}
std::string format_value(Duration value) {
    return integer_text(value.ns(), kDurationUnits, "s");
}
std::string format_value(Bytes value) {
    return integer_text(value.count(), kBytesUnits, "B");
}
std::string format_value(BytesPerSecond value) {
    return real_text(value.value, kBandwidthUnits);
}
std::string format_value(FlopsPerSecond value) {
    return real_text(value.value, kFlopsUnits);
}
std::string format_value(Celsius value) {
    return real_text(value.value, kCelsiusUnits);
}
std::string format_value(Watts value) {
    return real_text(value.value, std::span(kWattUnits).first(1));
}
std::string format_value(Megahertz value) {
    return real_text(value.value, std::span(kMegahertzUnits).first(1));
}
std::string format_value(KelvinPerWatt value) {
    return real_text(value.value, kKelvinPerWattUnits);
}

}  // namespace headway::scenarios
