#include "cli/arguments.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <iostream>

#include "cli/exit_codes.h"
#include "cli/help_texts.h"
#include "scenarios/language/nearest_name.h"
#include "scenarios/language/value_text.h"

namespace headway::cli {

namespace {

/// CLI11 splits nothing but the first '=': "a.b=c=d" sets a.b to "c=d".
scenarios::Override override_from(const std::string& text) {
    const std::size_t equals = text.find('=');
    if (equals == std::string::npos || equals == 0) {
        throw CLI::ValidationError("--set", "'" + text + "' is not KEY=VALUE (job.micro_batch=2)");
    }
    return {text.substr(0, equals), text.substr(equals + 1)};
}

/// The parser alone would wrap a negative number around.
std::string not_negative_number(const std::string& text) {
    return text.rfind('-', 0) == 0 ? text + " is not allowed (0 or more)" : std::string();
}

/// CLI::Range lets "nan" through.
auto number_from(double least, double most) {
    return [least, most](const std::string& text) {
        double value = 0.0;
        if (CLI::detail::lexical_cast(text, value) && value >= least && value <= most) return std::string();
        return text + " is not a number from " + scenarios::format_value(least) + " to " +
               scenarios::format_value(most);
    };
}

void add_catalogue(CLI::App& app, CatalogueArguments& arguments) {
    app.add_option("--catalogue", arguments.catalogue, "Folder with gpus/, fabrics/, stacks/, clusters/, models/")
        ->type_name("DIR");
}

void add_sets(CLI::App& app, std::vector<std::string>& sets) {
    app.add_option("--set", sets,
                   "Override one key of the scenario, as often as wanted; list items are numbered from 0 "
                   "(disturbances.0.start=5min)")
        ->type_name("KEY=VALUE")
        ->expected(1)
        ->take_all();
}

/// What the person typed where a command was expected, when it is none.
std::string unknown_command(int argc, const char* const* argv, const CLI::App& app) {
    if (argc < 2 || argv[1][0] == '-') return "";
    std::vector<std::string> names;
    for (const CLI::App* command : app.get_subcommands({})) names.push_back(command->get_name());
    if (std::find(names.begin(), names.end(), argv[1]) != names.end()) return "";
    return "unknown command '" + std::string(argv[1]) + "'" + scenarios::did_you_mean(argv[1], names);
}

/// Names the first option that the chosen command does not have, or what CLI11 says of further words.
std::string unexpected(int argc, const char* const* argv, const CLI::App& app, const std::string& message) {
    const auto chosen = app.get_subcommands();
    if (chosen.empty()) return message;
    std::vector<std::string> known = {"--help"};
    for (const CLI::Option* option : chosen.front()->get_options()) {
        for (const std::string& name : option->get_lnames()) known.push_back("--" + name);
    }
    for (int index = 2; index < argc; ++index) {
        const std::string word = std::string(argv[index]).substr(0, std::string(argv[index]).find('='));
        if (word.rfind("--", 0) != 0 || std::find(known.begin(), known.end(), word) != known.end()) continue;
        return "unknown option '" + word + "'" + scenarios::did_you_mean(word, known);
    }
    return message;
}

void add_guards(CLI::App& command, std::vector<std::string>& no_guards) {
    command
        .add_option("--no-guard", no_guards,
                    "Switch guards of trained policies off: ood (a rule takes over where it was not trained), "
                    "rollback (switches that miss their prediction are taken back)")
        ->type_name("GUARD,...")
        ->delimiter(',')
        ->check(CLI::IsMember({"ood", "rollback"}));
}

}  // namespace

Command parse_arguments(int argc, const char* const* argv, const std::string& version) {
    CLI::App app{
        "Headway simulates large-model training on GPU clusters that misbehave: slow, hot, congested and lost parts.",
        "headway"};
    app.set_version_flag("--version", "headway " + version);
    app.require_subcommand(1);
    app.footer(kFooter);
    app.get_formatter()->column_width(28);

    ReplayArguments replay;
    std::vector<std::string> sets;
    std::string level = "iterations";
    CLI::App* replay_command =
        app.add_subcommand("replay", "Run a scenario on the simulator and report where time goes");
    replay_command->footer(kReplayFooter);
    replay_command->add_option("scenario", replay.scenario, "Scenario file")->type_name("FILE")->required();
    add_sets(*replay_command, sets);
    replay_command
        ->add_option("--policy", replay.policy, "Who decides: a rule (headway list policies) or a file NAME.policy")
        ->type_name("NAME");
    replay_command
        ->add_option("--shadow", replay.shadow, "Also ask this policy at every decision, and report what it would do")
        ->type_name("NAME");
    add_guards(*replay_command, replay.no_guards);
    replay_command
        ->add_option("--learn", replay.learn,
                     "The trained policy goes on learning from what this run measures, within limits; what it became "
                     "is written to FILE.policy")
        ->type_name("FILE");
    replay_command
        ->add_option("--iterations", replay.iterations, "Optimizer steps to train, instead of the scenario's run:")
        ->type_name("N")
        ->check(CLI::Range(std::int64_t{1}, std::int64_t{100'000'000}));
    replay_command->add_option("--seed", replay.seed, "Seed of everything random")
        ->type_name("N")
        ->check(not_negative_number);
    replay_command
        ->add_option("--seeds", replay.seeds, "Repeat with N seeds, from --seed on; reports means and 95 % intervals")
        ->type_name("N")
        ->check(CLI::Range(1, 10'000));
    replay_command->add_option("--out", replay.out, "Write the run record here")->type_name("RUN.jsonl");
    replay_command->add_option("--trace", replay.trace, "Write a Chrome trace here")->type_name("TRACE.json");
    replay_command->add_option("--level", level, "What the record holds: decisions, iterations or operations")
        ->type_name("LEVEL")
        ->capture_default_str();
    replay_command->add_flag("--force", replay.force, "Overwrite files that exist");
    replay_command->add_flag("--json", replay.json, "One JSON object instead of the report");
    add_catalogue(*replay_command, replay);

    EvaluateArguments evaluate;
    CLI::App* evaluate_command = app.add_subcommand("evaluate", "Compare policies over many scenarios");
    evaluate_command->footer(kEvaluateFooter);
    evaluate_command->add_option("policies", evaluate.policies, "Policies by name, or .policy files")
        ->type_name("POLICY...")
        ->required();
    evaluate_command->add_option("--on", evaluate.on, "Scenarios, sets of scenarios, or folders of them")
        ->type_name("PATH...")
        ->required();
    evaluate_command->add_option("--seeds", evaluate.seeds, "Run each scenario with N seeds and take means")
        ->type_name("N")
        ->check(CLI::Range(1, 10'000));
    evaluate_command->add_option("--limit", evaluate.limit, "At most N scenarios of each set")
        ->type_name("N")
        ->check(CLI::Range(1, 1'000'000));
    evaluate_command->add_option("--workers", evaluate.workers, "Runs at a time (default: one a processor)")
        ->type_name("N")
        ->check(CLI::Range(1, 1024));
    add_guards(*evaluate_command, evaluate.no_guards);
    evaluate_command->add_flag("--longest-path", evaluate.longest_path,
                               "Faster: no contention on links that several groups share");
    evaluate_command->add_option("--out", evaluate.out, "Write the record of the evaluation here")
        ->type_name("RUN.jsonl");
    evaluate_command->add_flag("--force", evaluate.force, "Replace an older record");
    evaluate_command->add_flag("--json", evaluate.json, "One JSON object instead of the tables");
    add_catalogue(*evaluate_command, evaluate);

    TrainArguments train;
    CLI::App* train_command = app.add_subcommand("train", "Train a policy offline on a curriculum");
    train_command->footer(kTrainFooter);
    train_command->add_option("curriculum", train.curriculum, "Set of scenarios")->type_name("FILE")->required();
    train_command->add_option("--out", train.out, "Write the policy here")->type_name("FILE.policy")->required();
    train_command->add_option("--record", train.record, "Write learning curves here")->type_name("RUN.jsonl");
    train_command->add_option("--seed", train.seed, "Seed of everything random")
        ->type_name("N")
        ->check(not_negative_number);
    train_command->add_option("--seeds", train.seeds, "Train with N seeds, from --seed on, and keep the best")
        ->type_name("N")
        ->check(CLI::Range(1, 1000));
    train_command->add_option("--rounds", train.rounds, "Rounds of comparisons to make")
        ->type_name("N")
        ->check(CLI::Range(0, 1'000'000))
        ->capture_default_str();
    train_command->add_option("--updates", train.updates, "Updates of PPO to make after them")
        ->type_name("N")
        ->check(CLI::Range(std::int64_t{0}, std::int64_t{1'000'000}))
        ->capture_default_str();
    train_command->add_option("--minutes", train.minutes, "Begin no update after so many minutes")
        ->type_name("M")
        ->check(number_from(0.0, 1e6));
    train_command->add_option("--groups", train.groups, "Scenarios a round or update")
        ->type_name("N")
        ->check(CLI::Range(1, 100'000))
        ->capture_default_str();
    train_command->add_option("--episodes", train.episodes, "Episodes in each of them, for PPO")
        ->type_name("N")
        ->check(CLI::Range(1, 60))
        ->capture_default_str();
    train_command->add_option("--teacher", train.teacher, "Policy to imitate first, or none")
        ->type_name("NAME")
        ->capture_default_str();
    train_command->add_option("--demonstrations", train.demonstrations, "Episodes of the teacher")
        ->type_name("N")
        ->check(CLI::Range(1, 100'000))
        ->capture_default_str();
    train_command->add_option("--validate-every", train.validate_every, "Rounds or updates between validations")
        ->type_name("N")
        ->check(CLI::Range(1, 1'000'000))
        ->capture_default_str();
    train_command->add_option("--workers", train.workers, "Processes at a time (default: one a processor)")
        ->type_name("N")
        ->check(CLI::Range(1, 1024));
    train_command
        ->add_option("--rendezvous", train.rendezvous,
                     "Where the processes of mpirun or srun meet: a host and free port of rank 0; on one machine and\n"
                     "under srun they find each other without it")
        ->type_name("HOST:PORT");
    train_command
        ->add_option("--timeout", train.timeout_minutes, "Minutes until a process that is not heard of is lost")
        ->type_name("M")
        ->check(number_from(0.01, 1e4))
        ->capture_default_str();
    train_command->add_flag("--resume", train.resume, "Go on from OUT.checkpoint");
    train_command->add_flag("--force", train.force, "Overwrite files that exist");
    train_command->add_flag("--json", train.json, "One JSON object instead of the report");
    add_catalogue(*train_command, train);

    DeployArguments deploy;
    std::string deploy_level = "iterations";
    CLI::App* deploy_command = app.add_subcommand("deploy", "Train a scenario's job on real processors");
    deploy_command->footer(kDeployFooter);
    deploy_command->add_option("scenario", deploy.scenario, "Scenario file")->type_name("FILE")->required();
    add_sets(*deploy_command, sets);
    deploy_command
        ->add_option("--policy", deploy.policy, "Who decides: a rule (headway list policies) or a file NAME.policy")
        ->type_name("NAME");
    deploy_command
        ->add_option("--shadow", deploy.shadow, "Also ask this policy at every decision, and report what it would do")
        ->type_name("NAME");
    add_guards(*deploy_command, deploy.no_guards);
    deploy_command->add_option("--backend", deploy.processors, "What trains: host or cuda")
        ->type_name("KIND")
        ->check(CLI::IsMember({"host", "cuda"}))
        ->capture_default_str();
    deploy_command->add_option("--data", deploy.data, "Text or token shard to learn from, instead of job.data")
        ->type_name("FILE");
    deploy_command
        ->add_option("--iterations", deploy.iterations, "Optimizer steps to have done at the end, instead of run:")
        ->type_name("N")
        ->check(CLI::Range(std::int64_t{1}, std::int64_t{100'000'000}));
    deploy_command->add_option("--out", deploy.out, "Write the run record here")->type_name("RUN.jsonl");
    deploy_command->add_option("--trace", deploy.trace, "Write a Chrome trace here")->type_name("TRACE.json");
    deploy_command->add_option("--level", deploy_level, "What the record holds: decisions, iterations or operations")
        ->type_name("LEVEL")
        ->capture_default_str();
    deploy_command
        ->add_option("--init", deploy.weights, "Begin with the weights of this Hugging Face checkpoint (safetensors)")
        ->type_name("DIR");
    deploy_command
        ->add_option("--checkpoints", deploy.checkpoints, "Folder of checkpoints, instead of deploy.checkpoints")
        ->type_name("DIR");
    deploy_command->add_flag("--resume", deploy.resume, "Go on from the newest checkpoint");
    deploy_command
        ->add_option("--rendezvous", deploy.rendezvous,
                     "Where the processes of mpirun or srun meet: a host and free port of rank 0")
        ->type_name("HOST:PORT");
    deploy_command->add_flag("--force", deploy.force, "Overwrite a record that exists");
    deploy_command->add_flag("--json", deploy.json, "One JSON object instead of the report");
    add_catalogue(*deploy_command, deploy);

    CalibrateArguments calibrate;
    CLI::App* calibrate_command =
        app.add_subcommand("calibrate", "Measure this machine's kernels and links into the catalogue");
    calibrate_command->footer(kCalibrateFooter);
    calibrate_command->add_option("--backend", calibrate.processors, "What to measure: host or cuda")
        ->type_name("KIND")
        ->check(CLI::IsMember({"host", "cuda"}));
    calibrate_command->add_option("--out", calibrate.out, "Entry to write: CATALOGUE/gpus/NAME.yaml")
        ->type_name("FILE")
        ->required();
    calibrate_command->add_option("--base", calibrate.base, "Entry of the GPU type that this is (host: host-core)")
        ->type_name("GPU");
    calibrate_command->add_option("--fabric", calibrate.fabric, "Entry of its links (host: host-loopback)")
        ->type_name("FABRIC");
    calibrate_command->add_option("--ranks", calibrate.ranks, "Processes that measure collectives; 1: none")
        ->type_name("N")
        ->check(CLI::Range(1, 64));
    calibrate_command->add_flag("--force", calibrate.force, "Replace older entries");
    calibrate_command->add_flag("--json", calibrate.json, "One JSON object instead of the report");
    add_catalogue(*calibrate_command, calibrate);

    CheckArguments check;
    CLI::App* check_command =
        app.add_subcommand("check", "Check a scenario and print it with every default written out");
    check_command->footer(kCheckFooter);
    check_command->add_option("scenario", check.scenario, "Scenario file")->type_name("FILE")->required();
    add_sets(*check_command, sets);
    add_catalogue(*check_command, check);

    PlanArguments plan;
    CLI::App* plan_command = app.add_subcommand("plan", "Search the best layouts of a job on a cluster");
    plan_command->footer(kPlanFooter);
    plan_command->add_option("scenario", plan.scenario, "Scenario file")->type_name("FILE")->required();
    plan_command->add_option("--top", plan.top, "Plans to print")
        ->type_name("N")
        ->check(CLI::Range(1, 1000))
        ->capture_default_str();
    plan_command->add_option("--at", plan.at, "Plan for the cluster as disturbances leave it then")->type_name("TIME");
    plan_command->add_flag("--json", plan.json, "One JSON object instead of the table");
    add_sets(*plan_command, sets);
    add_catalogue(*plan_command, plan);

    ListArguments list;
    CLI::App* list_command = app.add_subcommand("list", "List what scenarios can name");
    list_command->footer(kListFooter);
    list_command->add_option("kind", list.kind, "gpus, fabrics, stacks, clusters, models or policies")
        ->type_name("KIND")
        ->required();
    list_command->add_flag("--json", list.json, "One JSON object instead of the table");
    add_catalogue(*list_command, list);

    ValidateArguments validate;
    CLI::App* validate_command = app.add_subcommand("validate", "Predict tables of measurements and print the errors");
    validate_command->footer(kValidateFooter);
    validate_command->add_option("tables", validate.tables, "Tables, or folders of tables")->type_name("TABLE...");
    validate_command->add_option("--stack", validate.stack, "Software stack of all rows (headway list stacks)")
        ->type_name("NAME");
    validate_command->add_flag("--summary", validate.summary, "Leave out the rows that were predicted");
    validate_command->add_flag("--json", validate.json, "One JSON object instead of the report");
    add_catalogue(*validate_command, validate);

    CompareArguments compare;
    CLI::App* compare_command = app.add_subcommand("compare", "Print two run records side by side");
    compare_command->footer(kCompareFooter);
    compare_command->add_option("a", compare.a, "Run record (replay --out)")->type_name("A")->required();
    compare_command->add_option("b", compare.b, "Run record to compare with it")->type_name("B");
    compare_command->add_flag("--against-simulation", compare.against_simulation,
                              "Instead of B: a simulation of A's scenario under A's plans");
    compare_command->add_flag("--json", compare.json, "One JSON object instead of the report");

    ExportArguments exported;
    CLI::App* export_command = app.add_subcommand("export", "Convert a run record for other programs");
    export_command->footer(kExportFooter);
    export_command->add_option("run", exported.run, "Run record (replay --out)")->type_name("RUN")->required();
    export_command->add_option("--csv", exported.csv, "Folder for the CSV files, one a kind of event")
        ->type_name("DIR")
        ->required();

    ExportWeightsArguments weights;
    CLI::App* weights_command =
        app.add_subcommand("export-weights", "Write a checkpoint's weights as Hugging Face's transformers read them");
    weights_command->footer(kExportWeightsFooter);
    weights_command->add_option("checkpoint", weights.checkpoint, "Folder of checkpoints, or one of them")
        ->type_name("CHECKPOINT")
        ->required();
    weights_command->add_option("--out", weights.out, "Folder, or file that ends in .safetensors")
        ->type_name("OUT")
        ->required();
    weights_command->add_option("--type", weights.type, "Type of the weights: f32, bf16 or f16")
        ->check(CLI::IsMember({"f32", "bf16", "f16"}))
        ->type_name("TYPE")
        ->capture_default_str();
    weights_command->add_flag("--force", weights.force, "Overwrite weights that exist");

    const std::string unknown = unknown_command(argc, argv, app);
    if (!unknown.empty()) {
        std::cerr << "headway: " << unknown << " (headway --help)\n";
        return Finished{kBadInput};
    }
    if (argc < 2) {
        std::cerr << app.help();
        return Finished{kBadInput};
    }
    const auto help_of = [&] {
        const auto chosen = app.get_subcommands();
        return chosen.empty() ? std::string("headway --help") : "headway " + chosen.front()->get_name() + " --help";
    };
    try {
        app.parse(argc, argv);
        std::vector<scenarios::Override> overrides;
        for (const std::string& text : sets) overrides.push_back(override_from(text));
        replay.overrides = deploy.overrides = check.overrides = plan.overrides = overrides;
        replay.level = scenarios::record_level(level);
        deploy.level = scenarios::record_level(deploy_level);
    } catch (const CLI::Success& wanted) {  // --help, --version
        return Finished{app.exit(wanted, std::cout, std::cerr) == 0 ? kSucceeded : kBadInput};
    } catch (const CLI::ExtrasError& error) {
        std::cerr << "headway: " << unexpected(argc, argv, app, error.what()) << " (" << help_of() << ")\n";
        return Finished{kBadInput};
    } catch (const CLI::ParseError& error) {
        std::cerr << "headway: " << error.what() << " (" << help_of() << ")\n";
        return Finished{kBadInput};
    } catch (const std::invalid_argument& error) {
        std::cerr << "headway: --level: " << error.what() << '\n';
        return Finished{kBadInput};
    }
    if (replay.seeds > 1 && (replay.out || replay.trace)) {
        std::cerr << "headway: --out and --trace hold one run: give --seed instead of --seeds\n";
        return Finished{kBadInput};
    }
    if (replay_command->parsed()) return replay;
    if (train.seeds > 1 && train.record) {
        std::cerr << "headway: --record holds one training: give --seed instead of --seeds\n";
        return Finished{kBadInput};
    }
    if (evaluate_command->parsed()) return evaluate;
    if (train_command->parsed()) return train;
    if (deploy_command->parsed()) {
        deploy.command_line.assign(argv + 1, argv + argc);
        return deploy;
    }
    if (calibrate_command->parsed()) {
        calibrate.command_line.assign(argv + 1, argv + argc);
        return calibrate;
    }
    if (check_command->parsed()) return check;
    if (plan_command->parsed()) return plan;
    if (list_command->parsed()) return list;
    if (validate_command->parsed()) return validate;
    if (compare_command->parsed()) return compare;
    if (weights_command->parsed()) return weights;
    return exported;
}

}  // namespace headway::cli
