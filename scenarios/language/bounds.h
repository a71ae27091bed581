#pragma once

#include <limits>
#include <string>

#include "scenarios/language/units.h"

/// What a field of the language may hold. A bound counts in the field's own unit (times: seconds).
namespace headway::scenarios {

struct Bounds {
    double min = 0.0;
    double max = std::numeric_limits<double>::infinity();
    bool above_min = false;  ///< `min` itself is not allowed
    bool below_max = false;  ///< `max` itself is not allowed
    std::string allowed = "at least 0";

    bool contains(double value) const {
        return (above_min ? value > min : value >= min) && (below_max ? value < max : value <= max);
    }
};

namespace bounds_text {
inline std::string number(double value) {
    std::string text = std::to_string(value);
    text.erase(text.find_last_not_of('0') + 1);
    if (text.back() == '.') text.pop_back();
    return text;
}
}  // namespace bounds_text

/// The default of every number: a negative amount means nothing in this language.
inline Bounds not_negative() {
    return {};
}
inline Bounds positive() {
    Bounds bounds;
    bounds.above_min = true;
    bounds.allowed = "more than 0";
    return bounds;
}
inline Bounds at_least(double min) {
    Bounds bounds;
    bounds.min = min;
    bounds.allowed = "at least " + bounds_text::number(min);
    return bounds;
}
inline Bounds between(double min, double max) {
    Bounds bounds;
    bounds.min = min;
    bounds.max = max;
    bounds.allowed = bounds_text::number(min) + " to " + bounds_text::number(max);
    return bounds;
}
/// Above `min`, up to `max`.
inline Bounds between_above(double min, double max) {
    Bounds bounds = between(min, max);
    bounds.above_min = true;
    bounds.allowed = "above " + bounds_text::number(min) + ", up to " + bounds_text::number(max);
    return bounds;
}
/// 0 to 1.
inline Bounds share() {
    return between(0.0, 1.0);
}
/// Above 0, up to 1: what is left of something.
inline Bounds share_left() {
    return between_above(0.0, 1.0);
}
/// What a disturbance takes away. A part that is slower than a thousandth of its speed is lost rather than slow, and a
/// run on it would not end.
inline Bounds share_taken() {
    return between(0.0, 0.999);
}
/// What a disturbance leaves of a speed or bandwidth, up to `max` of nominal.
inline Bounds pace_left(double max) {
    return between(0.001, max);
}
/// A delay that a disturbance adds to a message.
inline Bounds added_delay() {
    Bounds bounds = between_above(0.0, 3600.0);
    bounds.allowed = "above 0, up to 1 h";
    return bounds;
}

/// The value a bound is compared with: seconds, bytes, or the quantity's own unit.
inline double bound_value(int value) {
    return value;
}
inline double bound_value(std::int64_t value) {
    return static_cast<double>(value);
}
inline double bound_value(std::uint64_t value) {
    return static_cast<double>(value);
}
inline double bound_value(double value) {
    return value;
}
inline double bound_value(Duration value) {
    return value.s();
}
inline double bound_value(Bytes value) {
    return static_cast<double>(value.count());
}
template <class Tag>
double bound_value(Quantity<Tag> value) {
    return value.value;
}

}  // namespace headway::scenarios
