#pragma once

#include <string>

namespace headway::backend {

/// Gloo's messages begin with a path and line of its own sources: without them.
inline std::string without_gloo_place(const std::string& message) {
    const std::size_t end = message.find("] ");
    return !message.empty() && message[0] == '[' && end != std::string::npos ? message.substr(end + 2) : message;
}

}  // namespace headway::backend
