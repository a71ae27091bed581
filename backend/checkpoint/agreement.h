#pragma once

#include <exception>
#include <string>
#include <vector>

#include "backend/communicator/communicator.h"
#include "scenarios/language/config_error.h"

/// Errors that end the same way in every process.
namespace headway::backend {

/// What `work` throws as std::exception, or nothing.
template <typename Work>
std::string problem_of(Work work) {
    try {
        work();
        return "";
    } catch (const std::exception& error) {
        return error.what();
    }
}

/// The first problem of any process, in their order; nothing where none has one. Every process calls it.
inline std::string first_problem(Control& control, const std::string& problem) {
    for (const std::vector<char>& other : control.all_gather({problem.begin(), problem.end()}))
        if (!other.empty()) return {other.begin(), other.end()};
    return "";
}

/// What process 0 made of `make`, everywhere; where it threw, everybody throws ConfigError with the same words.
template <typename Make>
std::string made_by_first(Control& control, Make make) {
    std::string made;
    if (control.rank() == 0) {
        const std::string problem = problem_of([&] { made = make(); });
        made = problem.empty() ? "+" + made : "-" + problem;
    }
    std::vector<char> bytes(made.begin(), made.end());
    control.broadcast(bytes, 0);
    made.assign(bytes.begin(), bytes.end());
    if (made.empty() || made[0] == '-') throw scenarios::ConfigError(made.substr(1));
    return made.substr(1);
}

}  // namespace headway::backend
