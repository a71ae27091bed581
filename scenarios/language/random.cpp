#include "scenarios/language/random.h"

#include <bit>
#include <cmath>
#include <stdexcept>

namespace headway::scenarios {
namespace {

constexpr double kLog2 = 0.693147180559945309417;

std::uint64_t split_mix(std::uint64_t& state) {
    std::uint64_t z = (state += 0x9e3779b97f4a7c15ULL);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
    return z ^ (z >> 31);
}

}  // namespace

RandomStream::RandomStream(std::uint64_t seed, std::string_view name, std::uint64_t index) {
    std::uint64_t hash = 0xcbf29ce484222325ULL;  // FNV-1a
    for (const char c : name) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3ULL;
    std::uint64_t mixed = seed;
    mixed = split_mix(mixed) ^ hash;
    mixed = split_mix(mixed) ^ index;
    for (std::uint64_t& word : state_) word = split_mix(mixed);
}

std::uint64_t RandomStream::next() {
    const std::uint64_t result = std::rotl(state_[1] * 5, 7) * 9;
    const std::uint64_t shifted = state_[1] << 17;
    state_[2] ^= state_[0];
    state_[3] ^= state_[1];
    state_[1] ^= state_[2];
    state_[0] ^= state_[3];
    state_[2] ^= shifted;
    state_[3] = std::rotl(state_[3], 45);
    return result;
}

double RandomStream::uniform() {
    return static_cast<double>(next() >> 11) * 0x1.0p-53;
}

std::int64_t RandomStream::below(std::int64_t count) {
    if (count < 1) throw std::invalid_argument("a draw among no choices");
    const auto range = static_cast<std::uint64_t>(count);
    const std::uint64_t limit = UINT64_MAX - UINT64_MAX % range;
    std::uint64_t drawn = next();
    while (drawn >= limit) drawn = next();
    return static_cast<std::int64_t>(drawn % range);
}

double RandomStream::normal() {
    if (has_spare_) {
        has_spare_ = false;
        return spare_normal_;
    }
    double x = 0.0;
    double y = 0.0;
    double square = 0.0;
    do {
        x = 2.0 * uniform() - 1.0;
        y = 2.0 * uniform() - 1.0;
        square = x * x + y * y;
    } while (square >= 1.0 || square < 1e-300);
    const double scale = std::sqrt(-2.0 * portable_log(square) / square);
    spare_normal_ = y * scale;
    has_spare_ = true;
    return x * scale;
}

double RandomStream::exponential() {
    return -portable_log(1.0 - uniform());
}

double RandomStream::log_uniform(double min, double max) {
    const double low = portable_log(min);
    const double value = portable_exp(low + (portable_log(max) - low) * uniform());
    return value < min ? min : value > max ? max : value;
}

double portable_log(double x) {
    int exponent = 0;
    double mantissa = std::frexp(x, &exponent);  // exact
    if (mantissa < 0.70710678118654752440) {
        mantissa *= 2.0;
        --exponent;
    }
    // log m = 2 atanh((m - 1) / (m + 1)); |s| < 0.1716, so 11 terms are below 1e-17.
    const double s = (mantissa - 1.0) / (mantissa + 1.0);
    const double square = s * s;
    double sum = 0.0;
    for (int k = 10; k >= 0; --k) sum = sum * square + 1.0 / (2 * k + 1);
    return 2.0 * s * sum + exponent * kLog2;
}

double portable_exp(double x) {
    const double whole = std::floor(x / kLog2 + 0.5);
    const double rest = x - whole * kLog2;  // |rest| < 0.35
    double sum = 1.0;
    for (int k = 16; k >= 1; --k) sum = 1.0 + sum * rest / k;
    return std::ldexp(sum, static_cast<int>(whole));
}

void portable_exp(std::span<double> values) {
    using Four = double __attribute__((vector_size(32)));
    std::size_t i = 0;
    for (; i + 4 <= values.size(); i += 4) {
        Four whole, rest;
        for (std::size_t lane = 0; lane < 4; ++lane) {
            whole[lane] = std::floor(values[i + lane] / kLog2 + 0.5);
            rest[lane] = values[i + lane] - whole[lane] * kLog2;
        }
        Four sum = {1.0, 1.0, 1.0, 1.0};
        for (int k = 16; k >= 1; --k) sum = 1.0 + sum * rest / static_cast<double>(k);
        for (std::size_t lane = 0; lane < 4; ++lane)
            values[i + lane] = whole[lane] == 0.0 ? sum[lane] : std::ldexp(sum[lane], static_cast<int>(whole[lane]));
    }
    for (; i < values.size(); ++i) values[i] = portable_exp(values[i]);
}

}  // namespace headway::scenarios
