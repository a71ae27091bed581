#include "cli/process_rank.h"

#include <cstdlib>
#include <optional>

#include "scenarios/language/config_error.h"
#include "scenarios/language/value_text.h"

namespace headway::cli {

namespace {

struct Launcher {
    const char* rank;
    const char* size;
};

constexpr Launcher kLaunchers[] = {
    {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"}, {"PMI_RANK", "PMI_SIZE"}, {"SLURM_PROCID", "SLURM_NTASKS"}};

int number_of(const char* variable, const char* text) {
    const std::optional<std::int64_t> number = scenarios::parse_integer(text);
    if (number && *number >= 0 && *number <= 1'000'000) return static_cast<int>(*number);
    throw scenarios::ConfigError(std::string(variable) + ": '" + text + "' is no number of a process");
}

}  // namespace

ProcessRank process_rank() {
    for (const Launcher& launcher : kLaunchers) {
        const char* const rank = std::getenv(launcher.rank);
        const char* const size = std::getenv(launcher.size);
        if (rank == nullptr) continue;
        if (size == nullptr)
            throw scenarios::ConfigError(std::string(launcher.rank) + " is set, but not " + launcher.size);
        const ProcessRank process{number_of(launcher.rank, rank), number_of(launcher.size, size), launcher.rank};
        if (process.size < 1 || process.rank >= process.size)
            throw scenarios::ConfigError(std::string(launcher.rank) + "=" + rank + " is no rank of " + launcher.size +
                                         "=" + size);
        return process;
    }
    return {};
}

}  // namespace headway::cli
