#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "scenarios/language/read.h"
#include "scenarios/record/run_writer.h"

/// The command line as data. Commands take these structs and know no parser.
namespace headway::cli {

/// Options that every command has which reads catalogues.
struct CatalogueArguments {
    std::optional<std::filesystem::path> catalogue;  ///< --catalogue DIR
};

struct ReplayArguments : CatalogueArguments {
    std::filesystem::path scenario;
    std::vector<scenarios::Override> overrides;  ///< --set, in order
    std::optional<std::string> policy;
    std::optional<std::string> shadow;           ///< asked at every decision and recorded, without acting
    std::vector<std::string> no_guards;          ///< guards of a trained policy to switch off: "ood", "rollback"
    std::optional<std::filesystem::path> learn;  ///< the policy goes on learning; what it became is written here
    std::optional<std::uint64_t> seed;
    int seeds = 1;  ///< runs with seeds seed, seed + 1, ...
    std::optional<std::int64_t> iterations;
    std::optional<std::filesystem::path> out;
    std::optional<std::filesystem::path> trace;
    scenarios::RecordLevel level = scenarios::RecordLevel::kIterations;
    bool force = false;
    bool json = false;
};

struct DeployArguments : CatalogueArguments {
    std::filesystem::path scenario;
    std::vector<scenarios::Override> overrides;  ///< --set, in order
    std::optional<std::string> policy;
    std::optional<std::string> shadow;   ///< as in ReplayArguments
    std::vector<std::string> no_guards;  ///< as in ReplayArguments
    std::string processors = "host";     ///< or "cuda"
    std::optional<std::filesystem::path> data;
    std::optional<std::int64_t> iterations;
    std::optional<std::filesystem::path> out;
    std::optional<std::filesystem::path> trace;
    scenarios::RecordLevel level = scenarios::RecordLevel::kIterations;
    std::optional<std::filesystem::path> weights;  ///< to begin with
    std::optional<std::filesystem::path> checkpoints;
    bool resume = false;
    std::optional<std::string> rendezvous;  ///< HOST:PORT of rank 0
    bool force = false;
    bool json = false;
    std::vector<std::string> command_line;  ///< what the person typed behind the program's name
};

struct CalibrateArguments : CatalogueArguments {
    std::string processors = "host";    ///< or "cuda"
    std::filesystem::path out;          ///< CATALOGUE/gpus/NAME.yaml
    std::optional<std::string> base;    ///< GPU type that the device is
    std::optional<std::string> fabric;  ///< that its links are
    int ranks = 4;                      ///< processes that measure collectives together; 1: none
    bool force = false;
    bool json = false;
    std::vector<std::string> command_line;  ///< what the person typed behind the program's name
};

struct CheckArguments : CatalogueArguments {
    std::filesystem::path scenario;
    std::vector<scenarios::Override> overrides;
};

struct PlanArguments : CatalogueArguments {
    std::filesystem::path scenario;
    std::vector<scenarios::Override> overrides;
    int top = 10;                   ///< plans to print
    std::optional<std::string> at;  ///< plan for the cluster as it is then; absent: everything healthy
    bool json = false;
};

struct ListArguments : CatalogueArguments {
    std::string kind;
    bool json = false;
};

struct ValidateArguments : CatalogueArguments {
    std::vector<std::filesystem::path> tables;  ///< files or folders; none: the tables that come with the program
    std::optional<std::string> stack;
    bool summary = false;  ///< figures of the tables only, not of every row
    bool json = false;
};

struct EvaluateArguments : CatalogueArguments {
    std::vector<std::string> policies;
    std::vector<std::filesystem::path> on;  ///< scenarios, sets of scenarios, folders of both
    std::vector<std::string> no_guards;     ///< as in ReplayArguments
    int seeds = 1;
    std::optional<int> limit;                  ///< scenarios of each set
    std::optional<int> workers;                ///< runs at a time; none: as many as there are processors
    bool longest_path = false;                 ///< iterations without contention on shared links
    std::optional<std::filesystem::path> out;  ///< record of the evaluation
    bool force = false;
    bool json = false;
};

struct TrainArguments : CatalogueArguments {
    std::filesystem::path curriculum;
    std::filesystem::path out;
    std::optional<std::filesystem::path> record;
    std::uint64_t seed = 1;
    int seeds = 1;                  ///< trainings with seeds seed, seed + 1, ...; the best is kept
    int rounds = 0;                 ///< of comparisons, before the updates
    std::int64_t updates = 60;      ///< of PPO
    std::optional<double> minutes;  ///< no update begins later; what is best then is kept
    int groups = 24;
    int episodes = 4;
    std::string teacher = "none";  ///< whom to imitate first
    int demonstrations = 96;
    int validate_every = 6;
    std::optional<int> workers;
    std::optional<std::string> rendezvous;  ///< HOST:PORT of rank 0, for several processes
    double timeout_minutes = 30.0;          ///< a process that is not heard of for so long is lost
    bool resume = false;
    bool force = false;
    bool json = false;
};

struct CompareArguments {
    std::filesystem::path a;
    std::optional<std::filesystem::path> b;
    bool against_simulation = false;  ///< instead of b
    bool json = false;
};

struct ExportArguments {
    std::filesystem::path run;
    std::filesystem::path csv;
};

struct ExportWeightsArguments {
    std::filesystem::path checkpoint;
    std::filesystem::path out;
    std::string type = "f32";  ///< or "bf16", "f16"
    bool force = false;
};

/// Nothing to run: help or version was printed to standard output, or a message to standard error.
struct Finished {
    int exit_code = 0;
};

using Command = std::variant<Finished, ReplayArguments, EvaluateArguments, TrainArguments, DeployArguments,
                             CalibrateArguments, CheckArguments, PlanArguments, ListArguments, ValidateArguments,
                             CompareArguments, ExportArguments, ExportWeightsArguments>;

Command parse_arguments(int argc, const char* const* argv, const std::string& version);

}  // namespace headway::cli
