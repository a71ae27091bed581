#pragma once

/// What `--help` prints below the options of a command.
namespace headway::cli {

inline constexpr const char* kFooter = R"(
Examples:
  headway replay scenarios/quickstart.yaml
  headway replay scenarios/quickstart.yaml --set cluster.facility.spare_nodes=1 --json
  headway replay scenarios/quickstart.yaml --seeds 8
  headway replay scenarios/quickstart.yaml --out a.run.jsonl --trace a.trace.json
  headway evaluate greedy hysteresis oracle --on scenarios/heldout
  headway train scenarios/curricula/default.yaml --out my.policy
  headway check my-scenario.yaml
  headway plan scenarios/gpt3-175b-1024.yaml --top 5
  headway list gpus
  headway validate my-cluster.yaml
  headway compare a.run.jsonl b.run.jsonl
  headway COMMAND --help

Exit codes:
  0 done   1 the run failed or output could not be written   2 wrong arguments, scenario or table
  3 packages are missing (launcher only)   130 interrupted by Ctrl-C
)";

inline constexpr const char* kReplayFooter = R"(
Examples:
  headway replay scenarios/quickstart.yaml
  headway replay scenarios/quickstart.yaml --set strategy.recompute=selective --iterations 500
  headway replay scenarios/quickstart.yaml --seeds 8 --json
  headway replay scenarios/quickstart.yaml --out a.run.jsonl --trace a.trace.json

The report goes to standard output; a record (--out) is JSON Lines, a trace (--trace) opens in Perfetto
(ui.perfetto.dev). A file that exists is not overwritten without --force. Ctrl-C ends the run after the current
decision interval: the record is closed as interrupted, and the report covers what was done.
)";

inline constexpr const char* kEvaluateFooter = R"(
Examples:
  headway evaluate greedy hysteresis oracle --on scenarios/heldout
  headway evaluate my.policy hysteresis:threshold=0.05,patience=2 oracle --on scenarios/heldout --json
  headway evaluate my.policy --on scenarios/straggler.yaml --seeds 8

Every policy runs every scenario; static is always among them. Goodput is against the healthy initial plan. With the
oracle among the policies: recovered, the share of the loss that can be recovered, (policy - static) / (oracle - static).
Lost: scenarios that end more than 1 % below static. Intervals are paired bootstraps over the scenarios. The result
does not depend on --workers.
)";

inline constexpr const char* kTrainFooter = R"(
Examples:
  headway train scenarios/curricula/default.yaml --out my.policy
  headway train scenarios/curricula/default.yaml --out my.policy --minutes 35 --record my.run.jsonl
  headway train scenarios/curricula/default.yaml --out my.policy --resume
  mpirun -n 64 headway train scenarios/curricula/default.yaml --out my.policy --rendezvous node0:29500 --workers 1

Updates of PPO on episodes in the simulator; before them, where asked for, --teacher NAME imitates a policy, and
--rounds N learn from comparisons (what would another choice have earned?). All that going on needs is in OUT.checkpoint
after every update: Ctrl-C or a kill loses at most one update, and --resume goes on bit for bit. OUT holds the policy
that was best on the curriculum's validation scenarios. The result does not depend on --workers.
)";

inline constexpr const char* kCheckFooter = R"(
Prints the scenario as it will be run: catalogue entries filled in, every default written out, and the memory that
each pipeline stage needs as comments. What it prints is a scenario itself, with the same meaning.

Example:
  headway check scenarios/quickstart.yaml --set strategy.tensor=4
)";

inline constexpr const char* kPlanFooter = R"(
Searches layouts of the scenario's job on its cluster and prints the best, fastest first. A strategy with wildcards
(tensor: auto) is searched in these; one without in tensor, pipeline, data, context, virtual_pipeline, schedule and
recompute. Everything else stays as the scenario says. Disturbances count only with --at: the cluster is then as they
leave it at that time of the run, clocks settled, lost parts gone.

Examples:
  headway plan scenarios/gpt3-175b-1024.yaml
  headway plan scenarios/mixed-a100-h800.yaml --top 3 --json
  headway plan scenarios/quickstart.yaml --set strategy.tensor=auto --set strategy.pipeline=auto --set strategy.data=auto
  headway plan scenarios/quickstart.yaml --at "31 min"
)";

inline constexpr const char* kListFooter = R"(
Examples:
  headway list gpus
  headway list models --json
)";

inline constexpr const char* kCalibrateFooter = R"(
Examples:
  headway calibrate --out scenarios/gpus/this-machine.yaml
  headway calibrate --backend cuda --base H100-SXM5-80GB --fabric nvlink4 --ranks 8 --out scenarios/gpus/my-h100.yaml

Times matrix products, attention, training steps of small models, and collectives among --ranks processes, and fits the
constants of the cost model to them. Writes three entries of one name: the GPU, stacks/NAME.yaml (Headway's own backend
on it) and fabrics/NAME.yaml. A scenario that names them is then simulated as this machine. Nothing else should run
meanwhile.
)";

inline constexpr const char* kCompareFooter = R"(
Example:
  headway compare monday.run.jsonl tuesday.run.jsonl
  headway compare real.run.jsonl --against-simulation
)";

inline constexpr const char* kExportFooter = R"(
Writes RUN.iterations.csv, RUN.telemetry.csv, RUN.disturbances.csv and so on, one file a kind of event that the record
holds, and prints their names. Files of an earlier export are overwritten.

Example:
  headway export monday.run.jsonl --csv tables
)";

inline constexpr const char* kExportWeightsFooter = R"(
CHECKPOINT is a folder of checkpoints (deploy --checkpoints), of which the newest is taken, or one of them. The model has
to be a GPT-2 or a Llama. OUT that ends in .safetensors becomes that file; else it is a folder, which gets
model.safetensors and a config.json, so that transformers load it. deploy --init reads both.

Example:
  headway export-weights checkpoints --out my-gpt2
)";

inline constexpr const char* kValidateFooter = R"(
Tables are YAML in one of the formats of scenarios/measured/README.md; a folder stands for all tables in it, and without
any the tables that come with the program are predicted. For each row: prediction, measured value and signed error
(predicted - measured) / measured; for each table: mean absolute error, worst, bias and Kendall's rank correlation within
each model. Rows that cannot be expressed are listed with the reason. A table's `software` names its stack
(aliases/measured-tables.yaml); --stack NAME takes another for all rows.

Examples:
  headway validate --summary
  headway validate my-cluster.yaml --stack nemo-2025 --json
)";

inline constexpr const char* kDeployFooter = R"(
Trains the scenario's job for real: GPU p of its cluster is process p. Alone, the command starts all of them on this
machine; under mpirun or srun it is one of them (--rendezvous where they are on several machines and the launcher does
not say where they meet). Host processes compute in fp32 (job.precision), CUDA devices in bf16. Where deploy.pace says so,
host ranks keep the pace of the declared GPUs. Disturbances are made physical as far as they can be; a warning names the
others. Ctrl-C or SIGTERM ends the run after the iteration, with a checkpoint where there is a folder for them.

Examples:
  headway deploy scenarios/lab-4.yaml --policy greedy
  headway deploy scenarios/lab-4.yaml --policy greedy --shadow hysteresis --out a.run.jsonl
  headway deploy scenarios/lab-4.yaml --data my.txt --iterations 200 --checkpoints kept
  headway deploy scenarios/lab-4.yaml --data my.txt --iterations 400 --checkpoints kept --resume
  mpirun -n 16 headway deploy scenarios/two-racks.yaml
  headway deploy scenarios/h100-node.yaml --backend cuda
)";

}  // namespace headway::cli
