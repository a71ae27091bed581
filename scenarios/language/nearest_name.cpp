#include "scenarios/language/nearest_name.h"

#include <algorithm>
#include <cctype>
#include <numeric>

namespace headway::scenarios {

namespace {

char lower_case(char letter) {
    return static_cast<char>(std::tolower(static_cast<unsigned char>(letter)));
}

/// Levenshtein distance, with the swap of two neighbours counted once (Damerau, restricted), without case.
std::size_t edit_distance(std::string_view a, std::string_view b) {
    std::vector<std::size_t> before(b.size() + 1), last(b.size() + 1), row(b.size() + 1);
    std::iota(last.begin(), last.end(), std::size_t{0});
    for (std::size_t i = 1; i <= a.size(); ++i) {
        row[0] = i;
        for (std::size_t j = 1; j <= b.size(); ++j) {
            const bool equal = lower_case(a[i - 1]) == lower_case(b[j - 1]);
            row[j] = std::min({last[j] + 1, row[j - 1] + 1, last[j - 1] + (equal ? 0 : 1)});
            const bool swapped = i > 1 && j > 1 && lower_case(a[i - 1]) == lower_case(b[j - 2]) &&
                                 lower_case(a[i - 2]) == lower_case(b[j - 1]);
            if (swapped) row[j] = std::min(row[j], before[j - 2] + 1);
        }
        before.swap(last);
        last.swap(row);
    }
    return last[b.size()];
}

}  // namespace

std::string nearest_name(std::string_view word, const std::vector<std::string>& known) {
    std::string nearest;
    if (word.size() > 200) return nearest;  // no name is that long
    std::size_t least = std::string::npos;
    for (const std::string& name : known) {
        const std::size_t distance = edit_distance(word, name);
        const std::size_t most = std::max<std::size_t>(1, std::max(word.size(), name.size()) / 3);
        if (distance <= most && distance < least) {
            least = distance;
            nearest = name;
        }
    }
    return nearest;
}

std::string did_you_mean(std::string_view word, const std::vector<std::string>& known) {
    const std::string nearest = nearest_name(word, known);
    return nearest.empty() ? "" : " (did you mean '" + nearest + "'?)";
}

std::string suggestion(std::string_view word, const std::vector<std::string>& known) {
    const std::string near = did_you_mean(word, known);
    if (!near.empty() || known.empty()) return near;
    std::string text = " (allowed: ";
    for (std::size_t i = 0; i < known.size(); ++i) text += (i ? ", " : "") + known[i];
    return text + ")";
}

}  // namespace headway::scenarios
