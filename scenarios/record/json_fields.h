#pragma once

#include <cstdint>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>
#include <type_traits>
#include <vector>

#include "scenarios/record/record_lines.h"
#include "scenarios/record/record_parse.h"

/// Fields of one line of a record, read strictly: a field that is missing, of another type or out of range throws
/// RecordLineError with its key. Private to this folder, since it brings the JSON library in.
namespace headway::scenarios {

using Json = nlohmann::json;

[[noreturn]] inline void reject_line(const std::string& what) {
    throw RecordLineError(what);
}

inline const Json& json_member(const Json& object, const char* key) {
    if (!object.is_object()) reject_line("an object was expected around '" + std::string(key) + "'");
    const auto found = object.find(key);
    if (found == object.end()) reject_line("'" + std::string(key) + "' is missing");
    return *found;
}

/// Any integer type, double, bool or string; the record never mixes them.
template <class T>
T json_as(const Json& json, const char* key) {
    if constexpr (std::is_same_v<T, bool>) {
        if (json.is_boolean()) return json.get<bool>();
        reject_line("'" + std::string(key) + "' is not true or false");
    } else if constexpr (std::is_integral_v<T>) {
        if (json.is_number_unsigned()) {
            const auto value = json.get<std::uint64_t>();
            if (value <= static_cast<std::uint64_t>(std::numeric_limits<T>::max())) return static_cast<T>(value);
        } else if (json.is_number_integer() && std::is_signed_v<T>) {
            const auto value = json.get<std::int64_t>();
            if (value >= static_cast<std::int64_t>(std::numeric_limits<T>::min())) return static_cast<T>(value);
        }
        reject_line("'" + std::string(key) + "' is not a whole number in range");
    } else if constexpr (std::is_same_v<T, double>) {
        if (json.is_number()) return json.get<double>();
        reject_line("'" + std::string(key) + "' is not a number");
    } else {
        if (json.is_string()) return json.get<std::string>();
        reject_line("'" + std::string(key) + "' is not a text");
    }
}

template <class T>
void json_field(const Json& object, const char* key, T& into) {
    into = json_as<T>(json_member(object, key), key);
}

inline const Json& json_list(const Json& object, const char* key) {
    const Json& list = json_member(object, key);
    if (!list.is_array()) reject_line("'" + std::string(key) + "' is not a list");
    return list;
}

template <class T>
void json_field(const Json& object, const char* key, std::vector<T>& into) {
    into.clear();
    for (const Json& item : json_list(object, key)) into.push_back(json_as<T>(item, key));
}

inline void check_columns(std::size_t a, std::size_t b, const char* what) {
    if (a != b) reject_line("columns of different length in '" + std::string(what) + "'");
}

/// Longest run a record can hold, 12 years: sums of times that passed these checks cannot overflow.
inline constexpr std::int64_t kLongestRunNs = 400'000'000'000'000'000;
inline constexpr std::int64_t kMostIterations = 1'000'000'000'000;

/// A point in time or a span, 0 or more.
inline void json_time(const Json& object, const char* key, std::int64_t& into) {
    json_field(object, key, into);
    if (into < 0 || into > kLongestRunNs) reject_line("'" + std::string(key) + "' is no time in a run");
}

/// `start_ns` and `duration_ns` of what cannot overlap: it begins at `earliest_ns` or later; returns its end.
inline std::int64_t json_span(const Json& json, std::int64_t& start_ns, std::int64_t& duration_ns,
                              std::int64_t earliest_ns) {
    json_time(json, "start_ns", start_ns);
    json_time(json, "duration_ns", duration_ns);
    if (start_ns < earliest_ns) reject_line("'start_ns' is before the end of the one before");
    if (start_ns + duration_ns > kLongestRunNs) reject_line("'duration_ns' is no time in a run");
    return start_ns + duration_ns;
}

template <class Choice>
Choice json_choice(const Json& object, const char* key, int count) {
    const auto text = json_as<std::string>(json_member(object, key), key);
    for (int i = 0; i < count; ++i) {
        if (text == record_name(static_cast<Choice>(i))) return static_cast<Choice>(i);
    }
    reject_line("'" + std::string(key) + "': unknown value '" + text + "'");
}

}  // namespace headway::scenarios
