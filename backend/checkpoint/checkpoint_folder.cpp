#include "backend/checkpoint/checkpoint_folder.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <system_error>

#include "backend/backend_error.h"
#include "backend/checkpoint/manifest.h"
#include "backend/checkpoint/plain_file.h"
#include "scenarios/language/config_error.h"

namespace headway::backend {
namespace {

constexpr const char* kWritingPrefix = ".step-";

/// What cannot be removed is in nobody's way.
void remove_quietly(const std::filesystem::path& path) {
    std::error_code ignored;
    std::filesystem::remove_all(path, ignored);
}

}  // namespace

std::string CheckpointName::text() const {
    std::array<char, 32> digits{};
    std::snprintf(digits.data(), digits.size(), "step-%07lld", static_cast<long long>(step));
    return digits.data() + (attempt > 1 ? "-" + std::to_string(attempt) : "");
}

std::optional<CheckpointName> CheckpointName::parse(const std::string& text) {
    long long step = 0;
    int attempt = 1, end = 0;
    if (std::sscanf(text.c_str(), "step-%18lld%n-%8d%n", &step, &end, &attempt, &end) < 1) return std::nullopt;
    const CheckpointName name{step, attempt};
    if (name.text() != text) return std::nullopt;
    return name;
}

std::vector<CheckpointName> complete_checkpoints(const std::filesystem::path& folder) {
    std::vector<CheckpointName> names;
    std::error_code problem;
    if (!std::filesystem::exists(folder, problem)) return names;
    std::filesystem::directory_iterator entries(folder, problem);
    if (problem) throw scenarios::ConfigError(folder.string() + ": cannot be read: " + problem.message());
    for (const auto& entry : entries) {
        const auto name = CheckpointName::parse(entry.path().filename().string());
        if (name && std::filesystem::exists(entry.path() / kManifestName, problem)) names.push_back(*name);
    }
    std::sort(names.begin(), names.end());
    return names;
}

std::filesystem::path begin_writing(const std::filesystem::path& folder, std::int64_t step) {
    std::error_code problem;
    std::filesystem::create_directories(folder, problem);
    if (problem || !std::filesystem::is_directory(folder, problem))
        throw scenarios::ConfigError(folder.string() + ": is no folder for checkpoints and cannot be made one" +
                                     (problem ? ": " + problem.message() : ""));
    for (const auto& entry : std::filesystem::directory_iterator(folder, problem))
        if (entry.path().filename().string().starts_with(kWritingPrefix)) remove_quietly(entry.path());
    const std::filesystem::path writing = temporary_name(folder / CheckpointName{step, 1}.text());
    std::filesystem::create_directory(writing, problem);
    if (problem) throw scenarios::ConfigError(writing.string() + ": cannot be made: " + problem.message());
    return writing;
}

void end_writing(const std::filesystem::path& folder, const std::filesystem::path& written, std::int64_t step,
                 int keep) {
    CheckpointName name{step, 1};
    std::error_code problem;
    while (std::filesystem::exists(folder / name.text(), problem)) ++name.attempt;
    std::filesystem::rename(written, folder / name.text(), problem);
    if (problem) throw BackendError("naming checkpoint " + (folder / name.text()).string(), problem.message());
    sync_folder(folder);
    // What was just written stays, even where an older run left later steps.
    std::vector<CheckpointName> others = complete_checkpoints(folder);
    std::erase(others, name);
    for (std::size_t i = 0; i + static_cast<std::size_t>(std::max(keep, 1)) - 1 < others.size(); ++i) {
        // Under its own name it must not be seen half removed.
        const std::filesystem::path old = folder / others[i].text(), doomed = temporary_name(old);
        std::filesystem::rename(old, doomed, problem);
        remove_quietly(problem ? old : doomed);
    }
}

}  // namespace headway::backend
