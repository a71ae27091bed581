#include "tests/architecture/include_rule.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <sstream>

namespace headway::tests {

namespace {

struct IncludeLine {
    std::string target;
    bool angled;
    int number;
};

/// A library that some rooms may include, recognised by how its headers' names begin.
struct Library {
    std::string_view name;
    std::vector<std::string_view> header_prefixes;
    std::vector<std::string_view> allowed_path_prefixes;
};

struct RoomRule {
    std::string_view room;
    std::vector<std::string_view> may_include;  // path prefixes from the root
};

const std::vector<std::string_view> kSeamHeaders = {"policies/training_cluster.h", "policies/observation.h",
                                                    "policies/action.h",           "policies/policy.h",
                                                    "policies/reward.h",           "policies/episode.h"};

std::vector<std::string_view> with_seam(std::vector<std::string_view> prefixes) {
    prefixes.insert(prefixes.end(), kSeamHeaders.begin(), kSeamHeaders.end());
    return prefixes;
}

/// Who may include whom.
const std::vector<RoomRule>& room_rules() {
    static const std::vector<RoomRule> kRules = {
        {"scenarios/", {"scenarios/"}},
        {"policies/", {"policies/", "scenarios/"}},
        {"sim/", with_seam({"sim/", "scenarios/"})},
        // The communicator is handed to the learner behind reduction.h.
        {"backend/", with_seam({"backend/", "scenarios/", "policies/learning/reduction.h"})},
        {"gui/", {"gui/", "scenarios/"}},
        {"cli/", {"cli/", "scenarios/", "policies/", "sim/", "backend/"}},
        {"tests/", {"tests/", "scenarios/", "policies/", "sim/", "backend/", "gui/", "cli/"}},
    };
    return kRules;
}

/// Third-party headers and their homes. A header that neither this list nor is_standard_header() knows is a violation:
/// a new dependency is decided here, not in passing.
const std::vector<Library>& libraries() {
    static const std::vector<Library> kLibraries = {
        {"yaml-cpp", {"yaml-cpp/"}, {"scenarios/"}},
        {"JSON", {"nlohmann/"}, {"scenarios/record/", "backend/checkpoint/", "tests/"}},
        {"xxHash", {"xxhash"}, {"backend/checkpoint/"}},
        {"Eigen", {"Eigen/"}, {"policies/", "backend/host/", "tests/policies/"}},
        {"SimGrid", {"simgrid/", "xbt/", "xbt.h", "smpi/"}, {"sim/network/", "tests/sim/network/"}},  // the one adapter
        {"CLI11", {"CLI/"}, {"cli/"}},
        {"CBLAS", {"cblas"}, {"backend/host/", "tests/benchmark/"}},
        {"Gloo", {"gloo/"}, {"backend/communicator/"}},
        {"CUDA", {"cuda", "cublas", "nccl", "nvml"}, {"backend/cuda/", "tests/backend/cuda/libraries/"}},
        {"Qt", {"Qt", "QA", "QC", "QD", "QF", "QG", "QL", "QM", "QO", "QP", "QS", "QV", "QW"}, {"gui/", "tests/gui/"}},
        {"GoogleTest", {"gtest/", "gmock/"}, {"tests/"}},
        {"Google Benchmark", {"benchmark/"}, {"tests/benchmark/"}},
    };
    return kLibraries;
}

bool begins_with_any(std::string_view text, const std::vector<std::string_view>& prefixes) {
    return std::any_of(prefixes.begin(), prefixes.end(), [&](auto prefix) { return text.starts_with(prefix); });
}

/// C++ headers have no suffix and no folder; the rest is the system interface that the project uses.
bool is_standard_header(std::string_view name) {
    static const std::array<std::string_view, 18> kSystem = {
        "cxxabi.h",  "dlfcn.h",   "execinfo.h", "fcntl.h",  "immintrin.h",  "netdb.h",
        "poll.h",    "pthread.h", "sched.h",    "signal.h", "stdlib.h",     "spawn.h",
        "termios.h", "time.h",    "ucontext.h", "unistd.h", "netinet/in.h", "arpa/inet.h"};
    if (name.starts_with("sys/") || name.starts_with("linux/") ||
        std::find(kSystem.begin(), kSystem.end(), name) != kSystem.end())
        return true;
    return !name.empty() && std::all_of(name.begin(), name.end(),
                                        [](unsigned char c) { return std::islower(c) || std::isdigit(c) || c == '_'; });
}

std::vector<IncludeLine> include_lines(std::string_view text) {
    std::vector<IncludeLine> lines;
    std::istringstream stream{std::string(text)};
    std::string line;
    for (int number = 1; std::getline(stream, line); ++number) {
        const auto hash = line.find_first_not_of(" \t");
        if (hash == std::string::npos || line[hash] != '#') continue;
        const auto word = line.find_first_not_of(" \t", hash + 1);
        if (word == std::string::npos || line.compare(word, 7, "include") != 0) continue;
        const auto open = line.find_first_of("<\"", word + 7);
        if (open == std::string::npos) continue;
        const bool angled = line[open] == '<';
        const auto close = line.find(angled ? '>' : '"', open + 1);
        if (close == std::string::npos) continue;
        lines.push_back({line.substr(open + 1, close - open - 1), angled, number});
    }
    return lines;
}

std::string complaint_about_library(const std::string& path, const std::string& header) {
    for (const Library& library : libraries()) {
        if (!begins_with_any(header, library.header_prefixes)) continue;
        if (begins_with_any(path, library.allowed_path_prefixes)) return "";
        return std::string(library.name) + " may not be included here";
    }
    return is_standard_header(header) ? "" : "unknown third-party header (rule: tests/architecture/include_rule.cpp)";
}

}  // namespace

std::vector<std::string> included(std::string_view text, std::string_view prefix) {
    std::vector<std::string> targets;
    for (const IncludeLine& line : include_lines(text)) {
        if (line.target.starts_with(prefix)) targets.push_back(line.target);
    }
    return targets;
}

std::vector<std::string> include_violations(const SourceFile& file,
                                            const std::function<bool(const std::string&)>& exists) {
    std::vector<std::string> violations;
    const auto complain = [&](int number, const std::string& what) {
        violations.push_back(file.path + ":" + std::to_string(number) + ": " + what);
    };
    const auto& rules = room_rules();
    const auto rule =
        std::find_if(rules.begin(), rules.end(), [&](const auto& r) { return file.path.starts_with(r.room); });
    if (rule == rules.end()) {
        complain(1, "code outside the rooms");
        return violations;
    }
    const std::vector<IncludeLine> lines = include_lines(file.text);
    for (const IncludeLine& line : lines) {
        if (line.angled) {
            const std::string complaint = complaint_about_library(file.path, line.target);
            if (!complaint.empty()) complain(line.number, "<" + line.target + ">: " + complaint);
        } else if (!exists(line.target)) {
            complain(line.number, "\"" + line.target + "\" is not a file, seen from the root of the repository");
        } else if (!begins_with_any(line.target, rule->may_include)) {
            complain(line.number, std::string(rule->room) + " may not include \"" + line.target + "\"");
        }
    }
    if (file.path.ends_with(".h") && file.text.find("#pragma once") == std::string::npos)
        complain(1, "no #pragma once");
    if (file.path.ends_with(".cpp")) {
        const std::string own_header = file.path.substr(0, file.path.size() - 4) + ".h";
        if (exists(own_header) && (lines.empty() || lines.front().target != own_header)) {
            complain(lines.empty() ? 1 : lines.front().number, "the first include is not \"" + own_header + "\"");
        }
    }
    return violations;
}

}  // namespace headway::tests
