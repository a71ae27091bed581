#pragma once

#include <stdexcept>
#include <string>

namespace headway::scenarios {

/// Bad input. The message stands alone: file, line, column, key, value and what is allowed.
/// "straggler.yaml:14:9: job.micro_batch: 0 is not allowed (at least 1)"
class ConfigError : public std::runtime_error {
  public:
    explicit ConfigError(const std::string& message) : std::runtime_error(message) {}
};

}  // namespace headway::scenarios
