#include "scenarios/language/checks.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <string>
#include <utility>

#include "scenarios/language/words.h"

namespace headway::scenarios {
namespace {

constexpr std::int64_t kMostGpus = 1'048'576;

std::string counted(std::int64_t count, const char* what) {
    return std::to_string(count) + " " + what + (count == 1 ? "" : "s");
}

/// One `strategy` check after another; `refuse` points at the key that is easiest to change.
class StrategyChecks {
  public:
    StrategyChecks(Scenario& scenario, const KeyPlaces& places)
        : job_(scenario.job),
          cluster_(scenario.cluster),
          strategy_(scenario.strategy),
          layout_(scenario.strategy.layout),
          open_(scenario.strategy.wildcards),
          places_(places) {}

    void run() {
        degrees();
        shapes();
        schedule();
        layers();
        micro_batches();
        placement();
        measured();
        precision();
    }

  private:
    [[noreturn]] void refuse(const std::string& key, const std::string& value, const std::string& allowed) const {
        throw places_.error(key, value + " is not allowed (" + allowed + ")");
    }
    [[noreturn]] void refuse(const std::string& key, std::int64_t value, const std::string& allowed) const {
        refuse(key, std::to_string(value), allowed);
    }

    void degrees() {
        if (strategy_.idle_gpus >= cluster_.gpus())
            refuse("strategy.idle_gpus", strategy_.idle_gpus,
                   "fewer than the cluster's " + counted(cluster_.gpus(), "GPU"));
        if (!strategy_.placement.empty() && strategy_.idle_gpus > 0) {
            refuse("strategy.idle_gpus", strategy_.idle_gpus,
                   "0 where a placement is given: the GPUs it does not name are idle");
        }
        const std::int64_t used = gpus_used(strategy_, cluster_);
        // Bounded by 10^18: no product below overflows.
        const std::int64_t rest = std::int64_t{layout_.tensor} * layout_.pipeline * layout_.context;
        const std::string gpus = counted(used, "GPU") + (strategy_.placement.empty()
                                                             ? strategy_.idle_gpus > 0 ? " not idle" : " of the cluster"
                                                             : " of the placement");
        if (open_.tensor || open_.pipeline || open_.context) {
            if (rest > used || rest * layout_.data > used)
                throw places_.error("strategy",
                                    "the degrees that are not auto need more GPUs than there are (" + gpus + ")");
            return;
        }
        if (open_.data) {
            open_.data = false;  // what the others leave
            if (used % rest != 0 || used < rest) {
                refuse("strategy.data", "auto",
                       "tensor x pipeline x context = " + std::to_string(rest) + " does not divide the " + gpus);
            }
            layout_.data = static_cast<int>(used / rest);
        }
        if (rest > kMostGpus || rest * layout_.data != used) {
            const std::string product =
                rest > kMostGpus ? "more than " + std::to_string(kMostGpus) : std::to_string(rest * layout_.data);
            throw places_.error("strategy",
                                "tensor " + std::to_string(layout_.tensor) + " x pipeline " +
                                    std::to_string(layout_.pipeline) + " x data " + std::to_string(layout_.data) +
                                    " x context " + std::to_string(layout_.context) + " = " + product +
                                    " is not allowed (the " + gpus + "; `data: auto` fits, idle_gpus leaves some out)");
        }
    }

    void divides(const std::string& key, int degree, const std::string& what, std::int64_t amount) const {
        if (amount % degree != 0)
            refuse(key, degree, "a divisor of the model's " + what + ", " + std::to_string(amount));
    }

    void shapes() const {
        const Model& model = job_.model;
        divides("strategy.tensor", layout_.tensor, "heads", model.heads);
        divides("strategy.tensor", layout_.tensor, "kv_heads", model.kv_heads);
        divides("strategy.tensor", layout_.tensor, "hidden", model.hidden);
        divides("strategy.tensor", layout_.tensor, "ffn", model.ffn);
        divides("strategy.context", layout_.context, "sequence_length", model.sequence_length);
        if (layout_.sequence_parallel && model.sequence_length / layout_.context % layout_.tensor != 0) {
            refuse("strategy.sequence_parallel", "true",
                   "tensor x context = " + std::to_string(std::int64_t{layout_.tensor} * layout_.context) +
                       " must divide the model's sequence_length, " + std::to_string(model.sequence_length));
        }
    }

    void schedule() const {
        const bool interleaved = layout_.schedule == Schedule::kInterleaved;
        if (layout_.virtual_pipeline > 1 && !interleaved && !open_.schedule) {
            refuse("strategy.virtual_pipeline", layout_.virtual_pipeline,
                   "more than 1 only with schedule: interleaved");
        }
        if (layout_.zero_bubble_memory != 1 && layout_.schedule != Schedule::kZeroBubble && !open_.schedule) {
            refuse("strategy.zero_bubble_memory", layout_.zero_bubble_memory,
                   "more than 1 only with schedule: zero-bubble");
        }
        if (interleaved && layout_.virtual_pipeline == 1 && !open_.virtual_pipeline) {
            throw places_.error(
                "strategy.schedule",
                "interleaved is not allowed (virtual_pipeline is 1; give at least 2, or schedule: 1f1b)");
        }
        if (interleaved && layout_.pipeline == 1 && !open_.pipeline)
            throw places_.error("strategy.schedule", "interleaved is not allowed (pipeline is 1)");
        if (layout_.overlap_param_gather && !layout_.distributed_optimizer) {
            refuse("strategy.overlap.param_gather", "true",
                   "parameters are only gathered with distributed_optimizer: true");
        }
    }

    void layers() const {
        const std::int64_t stages = std::int64_t{layout_.pipeline} * layout_.virtual_pipeline;
        const std::string product = "pipeline x virtual_pipeline = " + std::to_string(stages);
        if (stages > job_.model.layers) {
            const std::string key = layout_.virtual_pipeline > 1 ? "strategy.virtual_pipeline" : "strategy.pipeline";
            refuse(key, layout_.virtual_pipeline > 1 ? layout_.virtual_pipeline : layout_.pipeline,
                   product + " is more than the model's " + counted(job_.model.layers, "layer"));
        }
        const std::vector<int>& given = strategy_.layers_per_stage;
        if (given.empty()) return;
        if (static_cast<std::int64_t>(given.size()) != stages && !open_.pipeline && !open_.virtual_pipeline) {
            throw places_.error("strategy.layers_per_stage", "a list of " + std::to_string(given.size()) +
                                                                 " is not allowed (" + product + " numbers)");
        }
        const std::int64_t sum = std::accumulate(given.begin(), given.end(), std::int64_t{0});
        if (sum != job_.model.layers) {
            throw places_.error("strategy.layers_per_stage", "a sum of " + std::to_string(sum) +
                                                                 " is not allowed (the model has " +
                                                                 counted(job_.model.layers, "layer") + ")");
        }
    }

    void micro_batches() const {
        if (open_.micro_batch) return;
        if (job_.global_batch % job_.micro_batch != 0) {
            refuse("job.global_batch", job_.global_batch,
                   "a multiple of micro_batch, " + std::to_string(job_.micro_batch));
        }
        if (open_.any()) return;  // a question of the layout that is chosen
        const int total = job_.global_batch / job_.micro_batch;
        const std::vector<int>& given = strategy_.micro_batches_per_replica;
        const bool interleaved = layout_.schedule == Schedule::kInterleaved;
        const std::string stages = std::to_string(layout_.pipeline);
        if (given.empty()) {
            if (total % layout_.data != 0) {
                refuse("job.global_batch", job_.global_batch,
                       "a multiple of micro_batch x data = " +
                           std::to_string(std::int64_t{job_.micro_batch} * layout_.data) +
                           ", or give strategy.micro_batches_per_replica");
            }
            if (interleaved && total / layout_.data % layout_.pipeline != 0) {
                refuse("job.global_batch", job_.global_batch,
                       "the interleaved schedule needs a multiple of " + stages + " micro-batches a replica, not " +
                           std::to_string(total / layout_.data));
            }
            return;
        }
        const std::string key = "strategy.micro_batches_per_replica";
        if (static_cast<int>(given.size()) != layout_.data) {
            throw places_.error(key, "a list of " + std::to_string(given.size()) +
                                         " is not allowed (data = " + std::to_string(layout_.data) + " numbers)");
        }
        const std::int64_t sum = std::accumulate(given.begin(), given.end(), std::int64_t{0});
        if (sum != total)
            throw places_.error(key, "a sum of " + std::to_string(sum) +
                                         " is not allowed (global_batch / micro_batch = " + std::to_string(total) +
                                         ")");
        for (std::size_t replica = 0; interleaved && replica < given.size(); ++replica) {
            if (given[replica] % layout_.pipeline != 0) {
                refuse(key + "." + std::to_string(replica), given[replica],
                       "the interleaved schedule needs a multiple of " + stages);
            }
        }
    }

    void placement() const {
        std::map<int, std::size_t> rank_of_gpu;
        for (std::size_t rank = 0; rank < strategy_.placement.size(); ++rank) {
            const int gpu = strategy_.placement[rank];
            const std::string key = "strategy.placement." + std::to_string(rank);
            if (gpu >= cluster_.gpus())
                refuse(key, gpu,
                       "0 to " + std::to_string(cluster_.gpus() - 1) + ": the cluster has " +
                           counted(cluster_.gpus(), "GPU"));
            const auto [there, added] = rank_of_gpu.emplace(gpu, rank);
            if (!added) refuse(key, gpu, "each GPU once; it is already given to rank " + std::to_string(there->second));
        }
    }

    void measured() const {
        if (!job_.measured) return;
        if (open_.any())
            throw places_.error("job.measured", "not allowed with auto in the strategy (" + describe(open_) +
                                                    "): times are measured under one layout");
        if (layout_.virtual_pipeline > 1)
            throw places_.error(
                "job.measured",
                "not allowed with virtual_pipeline above 1 (times are measured per stage, not per chunk)");
        if (layout_.schedule == Schedule::kZeroBubble)
            throw places_.error("job.measured",
                                "not allowed with schedule: zero-bubble (the measured backward is not split)");
        const std::string key = "job.measured.workers";
        if (job_.measured->workers.empty()) throw places_.error(key, "missing (a list, or the name of a CSV file)");
        std::vector<int> seen(static_cast<std::size_t>(layout_.data) * static_cast<std::size_t>(layout_.pipeline));
        for (const MeasuredWorker& worker : job_.measured->workers) {
            const std::string who =
                "replica " + std::to_string(worker.replica) + ", stage " + std::to_string(worker.stage);
            if (worker.replica >= layout_.data || worker.stage >= layout_.pipeline) {
                throw places_.error(key, who + " is not allowed (data is " + std::to_string(layout_.data) +
                                             ", pipeline is " + std::to_string(layout_.pipeline) + ")");
            }
            if (seen[static_cast<std::size_t>(worker.replica * layout_.pipeline + worker.stage)]++)
                throw places_.error(key, who + " is given twice");
        }
        for (std::size_t i = 0; i < seen.size(); ++i) {
            const auto stages = static_cast<std::size_t>(layout_.pipeline);
            if (!seen[i])
                throw places_.error(key, "replica " + std::to_string(i / stages) + ", stage " +
                                             std::to_string(i % stages) + " is missing");
        }
        std::sort(job_.measured->workers.begin(), job_.measured->workers.end(),
                  [](const MeasuredWorker& a, const MeasuredWorker& b) {
                      return std::pair(a.replica, a.stage) < std::pair(b.replica, b.stage);
                  });
    }

    void precision() const {
        for (const NodeGroup& group : cluster_.node_groups) {
            const GpuType& gpu = group.node.gpu;
            if (job_.precision == Precision::kFp8 && gpu.peak_fp8.value <= 0)
                throw places_.error("job.precision",
                                    "fp8 is not allowed (the cluster's " + gpu.name + " has no fp8 arithmetic)");
            if (job_.precision == Precision::kFp32 && !gpu.peak_single)
                throw places_.error("job.precision", "fp32 is not allowed (no peak_single is known of the cluster's " +
                                                         gpu.name + "; add it to its entry)");
        }
    }

    Job& job_;
    const Cluster& cluster_;
    Strategy& strategy_;
    Layout& layout_;
    Wildcards& open_;  ///< open degrees are 1 in the layout
    const KeyPlaces& places_;
};

void check_gpu(const GpuType& gpu, const KeyPlaces& places, const std::string& path) {
    const auto order = [&](bool right, const char* key, const char* allowed) {
        if (!right) throw places.error(path + "." + key, std::string("not allowed (") + allowed + ")");
    };
    order(gpu.min_clock <= gpu.boost_clock, "min_clock", "at most boost_clock");
    order(gpu.clock_step <= gpu.boost_clock, "clock_step", "at most boost_clock");
    order(gpu.idle_power < gpu.power_limit, "idle_power", "below power_limit");
    order(gpu.thermal.max_operating <= gpu.thermal.slowdown, "thermal.max_operating", "at most slowdown");
    order(gpu.thermal.slowdown <= gpu.thermal.shutdown, "thermal.slowdown", "at most shutdown");
}

}  // namespace

void complete_and_check_model(Model& model, const KeyPlaces& places, const std::string& path) {
    if (model.kv_heads == 0) model.kv_heads = model.heads;
    if (model.heads % model.kv_heads != 0) {
        throw places.error(path + ".kv_heads", std::to_string(model.kv_heads) +
                                                   " is not allowed (a divisor of heads, " +
                                                   std::to_string(model.heads) + ")");
    }
    if (model.head_dim == 0) {
        if (model.hidden % model.heads != 0) {
            throw places.error(path + ".heads", std::to_string(model.heads) + " is not allowed (a divisor of hidden, " +
                                                    std::to_string(model.hidden) + ", or give head_dim)");
        }
        model.head_dim = model.hidden / model.heads;
    }
}

void check_cluster(const Cluster& cluster, const KeyPlaces& places, const std::string& path) {
    if (cluster.node_groups.empty())
        throw places.error(path + ".node_groups", "an empty list is not allowed (at least one group)");
    std::int64_t gpus = 0;
    for (std::size_t i = 0; i < cluster.node_groups.size(); ++i) {
        const NodeGroup& group = cluster.node_groups[i];
        const std::string node_path = cluster.node_groups.size() == 1 && places.knows(path + ".node")
                                          ? path + ".node"
                                          : path + ".node_groups." + std::to_string(i) + ".node";
        const Node& node = group.node;
        gpus += std::int64_t{group.count} * node.gpus;
        if (gpus > kMostGpus) throw places.error(path, "more than " + std::to_string(kMostGpus) + " GPUs");
        if (node.gpus % node.nics != 0 && node.nics % node.gpus != 0) {
            throw places.error(node_path + ".nics", std::to_string(node.nics) + " is not allowed (the node's " +
                                                        std::to_string(node.gpus) + " GPUs share them evenly)");
        }
        check_gpu(node.gpu, places, node_path + ".gpu");
    }
}

namespace {

/// AdamW divides by 1 - beta^step.
void check_training(const Training& training, const KeyPlaces& places) {
    for (const auto& [key, beta] : {std::pair{"beta1", training.beta1}, {"beta2", training.beta2}})
        if (beta >= 1.0) throw places.error(std::string("job.training.") + key, "1 is not allowed (0 to below 1)");
}

}  // namespace

void complete_and_check(Scenario& scenario, const KeyPlaces& places) {
    complete_and_check_model(scenario.job.model, places, "job.model");
    if (scenario.job.training) check_training(*scenario.job.training, places);
    check_cluster(scenario.cluster, places, "cluster");
    StrategyChecks(scenario, places).run();
    for (Disturbance& disturbance : scenario.disturbances) {
        if (disturbance.name.empty()) disturbance.name = default_name(disturbance.cause);
    }
    check_disturbances(scenario, places);
}

}  // namespace headway::scenarios
