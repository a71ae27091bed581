#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace headway::scenarios {

/// The known name that `word` was most likely meant to be (smallest edit distance, letters compared without case), or
/// an empty string when none is near: more than a third of the longer name would have to change. The first of equally
/// near names.
std::string nearest_name(std::string_view word, const std::vector<std::string>& known);

/// " (did you mean 'pipeline'?)", or an empty string when no known name is near.
std::string did_you_mean(std::string_view word, const std::vector<std::string>& known);

/// The same; where no name is near, " (allowed: a, b, c)".
std::string suggestion(std::string_view word, const std::vector<std::string>& known);

}  // namespace headway::scenarios
