#include "scenarios/record/figures.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>

namespace headway::scenarios {

namespace {

std::string printed(const char* format, double value) {
    std::array<char, 64> text{};
    std::snprintf(text.data(), text.size(), format, value);
    return text.data();
}

/// Three significant digits or so, never in exponents.
std::string few_digits(double value) {
    const double size = std::abs(value);
    return printed(size < 9.995 ? "%.2f" : size < 99.95 ? "%.1f" : "%.0f", value);
}

/// A number and its unit, and the parts of a duration ("4 h 12 min"), stay on one line.
bool belong_together(std::string_view before, std::string_view word) {
    const auto digit = [](char c) { return c >= '0' && c <= '9'; };
    const std::string_view unit = word.substr(0, word.find_first_of(",;.)"));
    const bool is_unit = unit == "s" || unit == "min" || unit == "h" || unit == "d" || unit == "ms" || unit == "us";
    if (digit(before.back()) && is_unit) return true;
    return digit(word.front()) && (before.ends_with(" min") || before.ends_with(" h") || before.ends_with(" d"));
}

}  // namespace

Estimate estimate_figure(const Figure& figure, const std::vector<RunSummary>& runs) {
    std::vector<double> values;
    for (const RunSummary& run : runs) values.push_back(figure.of(run));
    return estimate_mean(values);
}

std::optional<double> figure_difference(const Figure& figure, const RunSummary& a, const RunSummary& b) {
    const double from = figure.of(a);
    const double to = figure.of(b);
    if (figure.unit == FigureUnit::kFraction) return to - from;
    if (from == to) return 0.0;
    if (from == 0.0) return std::nullopt;
    return (to - from) / from;
}

std::string figure_text(FigureUnit unit, double value) {
    switch (unit) {
        case FigureUnit::kCount:
            return value == std::floor(value) ? count_text(value) : few_digits(value);
        case FigureUnit::kSeconds:
            if (value >= 0.9995 && value < 9.9995) return printed("%.3f s", value);
            if (value >= 9.9995 && value < 99.995) return printed("%.2f s", value);
            return duration_text(std::llround(value * 1e9));
        case FigureUnit::kRate:
            return std::abs(value) < 100.0 ? few_digits(value) : count_text(value);
        case FigureUnit::kTflops:
            return printed("%.1f", value);
        case FigureUnit::kFraction:
            return percent_text(value);
    }
    return {};
}

std::string duration_text(std::int64_t ns) {
    if (ns == 0) return "0 s";
    if (ns < 0) return "-" + duration_text(-ns);
    const double seconds = static_cast<double>(ns) / 1e9;
    if (seconds < 0.9995e-6) return std::to_string(ns) + " ns";
    if (seconds < 0.9995e-3) return few_digits(seconds * 1e6) + " us";
    if (seconds < 0.9995) return few_digits(seconds * 1e3) + " ms";
    if (seconds < 99.95) return few_digits(seconds) + " s";
    const std::int64_t whole = (ns + 500'000'000) / 1'000'000'000;
    const auto two = [](std::int64_t value) { return (value < 10 ? "0" : "") + std::to_string(value); };
    const bool exact = whole * 1'000'000'000 == ns;
    if (whole < 3600 && exact && whole % 60 == 0) return std::to_string(whole / 60) + " min";
    if (whole < 3600) return std::to_string(whole / 60) + " min " + two(whole % 60) + " s";
    if (exact && whole % 3600 == 0 && whole < 48 * 3600) return std::to_string(whole / 3600) + " h";
    const std::int64_t minutes = (whole + 30) / 60;
    if (minutes < 48 * 60) return std::to_string(minutes / 60) + " h " + two(minutes % 60) + " min";
    const std::int64_t hours = (minutes + 30) / 60;
    return std::to_string(hours / 24) + " d " + two(hours % 24) + " h";
}

std::string count_text(double value) {
    const std::string digits = std::to_string(std::llround(std::abs(value)));
    std::string text;
    for (std::size_t i = 0; i < digits.size(); ++i) {
        if (i > 0 && (digits.size() - i) % 3 == 0) text += ',';
        text += digits[i];
    }
    return (std::llround(value) < 0 ? "-" : "") + text;
}

std::string percent_text(double fraction) {
    return printed("%.1f %%", fraction * 100.0);
}

std::size_t text_width(std::string_view text) {
    return static_cast<std::size_t>(std::count_if(
        text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xC0u) != 0x80u; }));
}

std::string pad_left(std::string_view text, std::size_t width) {
    const std::size_t used = text_width(text);
    return std::string(used < width ? width - used : 0, ' ') + std::string(text);
}

std::string pad_right(std::string_view text, std::size_t width) {
    const std::size_t used = text_width(text);
    if (used <= width) return std::string(text) + std::string(width - used, ' ');
    std::string cut;
    std::size_t columns = 0;
    for (const char c : text) {
        if ((static_cast<unsigned char>(c) & 0xC0u) != 0x80u && ++columns >= width) break;
        cut += c;
    }
    return cut + "\u2026";
}

std::string wrap_text(std::string_view text, std::size_t indent, std::size_t width) {
    std::vector<std::string> words;
    while (!text.empty()) {
        const std::size_t end = std::min(text.find_first_of(" \n"), text.size());
        const std::string word(text.substr(0, end));
        text.remove_prefix(std::min(end + 1, text.size()));
        if (word.empty()) continue;
        if (!words.empty() && belong_together(words.back(), word)) {
            words.back() += " " + word;
        } else {
            words.push_back(word);
        }
    }
    std::string lines;
    std::string line;
    for (const std::string& word : words) {
        if (!line.empty() && indent + text_width(line) + 1 + text_width(word) > width) {
            lines += std::string(indent, ' ') + line + "\n";
            line.clear();
        }
        line += (line.empty() ? "" : " ") + word;
    }
    if (!line.empty()) lines += std::string(indent, ' ') + line + "\n";
    return lines;
}

std::string bar_text(double fraction, std::size_t width) {
    static constexpr std::array<const char*, 8> kEighths = {"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
    const auto eighths =
        static_cast<std::size_t>(std::llround(std::clamp(fraction, 0.0, 1.0) * 8.0 * static_cast<double>(width)));
    std::string bar;
    for (std::size_t i = 0; i < eighths / 8; ++i) bar += "█";
    return bar + kEighths[eighths % 8];
}

}  // namespace headway::scenarios
