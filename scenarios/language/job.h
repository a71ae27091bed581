#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "scenarios/language/plan.h"
#include "scenarios/language/stack.h"
#include "scenarios/language/units.h"

/// What is trained: the shape of a decoder-only transformer and how it is trained. Nothing here knows a cluster, and
/// only a recording knows a layout.
namespace headway::scenarios {

/// Learned positions are parameters (sequence_length x hidden); ALiBi is a bias on the attention scores, without
/// parameters.
enum class Positions { kLearned, kRotary, kAlibi };
enum class Norm { kLayer, kRms };

/// Shape of a GPT-style transformer. Widths count elements, not bytes.
struct Model {
    std::string name;
    int layers = 1;
    int hidden = 1;
    int heads = 1;     ///< query heads
    int kv_heads = 0;  ///< key/value heads (grouped-query attention when fewer); 0 stands for `heads` until resolved
    int head_dim = 0;  ///< width of one head; 0 stands for hidden / heads until the scenario is resolved
    int ffn = 1;       ///< inner width of the MLP
    bool gated_mlp = false;  ///< SwiGLU: three MLP matrices instead of two
    int vocab = 1;
    int sequence_length = 1;  ///< tokens a sequence
    Positions positions = Positions::kLearned;
    Norm norm = Norm::kLayer;
    bool biases = true;          ///< linear layers carry a bias (GPT yes, Llama no)
    bool tied_embedding = true;  ///< the logits layer shares the embedding's weights
    double norm_epsilon = 1e-5;
    double rotary_base = 10000.0;  ///< Su et al. 2021; only with rotary positions
    bool operator==(const Model&) const = default;
};

enum class Precision { kFp16, kBf16, kFp8, kFp32 };

/// Of a weight or an activation, as it is kept and sent; fp8 layers cast theirs from two bytes.
constexpr std::int64_t bytes_of_element(Precision precision) {
    return precision == Precision::kFp32 ? 4 : 2;
}

/// Checkpoints: how often state is saved, and what a restart costs besides reading it back.
struct Checkpointing {
    Duration interval = Duration::seconds(1800);  ///< 0 switches checkpoints off
    bool asynchronous = false;                    ///< true: only the copy to host memory stops the job
    Duration detection = Duration::seconds(60);   ///< from the loss of a rank until the job notices (watchdog)
    Duration restart = Duration::seconds(180);    ///< relaunch, communicators and warm-up, without reading state
    bool operator==(const Checkpointing&) const = default;
};

/// Measured times of one worker, a micro-batch each.
struct MeasuredWorker {
    int replica = 0;
    int stage = 0;
    Duration forward;
    Duration backward;
    Duration send_activation;  ///< to the next stage; 0 where not measured
    Duration send_gradient;    ///< to the previous stage; 0 where not measured
    bool operator==(const MeasuredWorker&) const = default;
};

/// Measured operation times. They correct the cost model GPU by GPU (costs/measured_scales.h), so that other plans than
/// the measured one can be judged too. In YAML `workers` is a list, or names a CSV file relative to
/// the scenario's folder: one row a replica and stage, columns replica,stage,forward_ms,backward_ms and optionally
/// send_activation_ms,send_gradient_ms. A resolved scenario holds the rows and needs the file no more.
struct MeasuredTimes {
    std::vector<MeasuredWorker> workers;  ///< every replica and stage once, ordered by replica, then stage
    Duration rest_of_step;                ///< what follows the last backward: gradients, optimizer, parameters
    Plan plan;  ///< under which they were measured: the scenario's initial plan, put here on reading and not written
    bool operator==(const MeasuredTimes&) const = default;
};

/// How the optimizer trains: read by a deployment, and without influence on the time of an iteration. Defaults are
/// those of small GPTs.
struct Training {
    double learning_rate = 3e-4;        ///< after warm-up
    double final_learning_rate = 3e-5;  ///< reached by a cosine at `decay_iterations`
    int warmup_iterations = 0;          ///< linear from 0
    int decay_iterations = 0;           ///< 0: the rate stays
    double beta1 = 0.9;
    double beta2 = 0.95;
    double epsilon = 1e-8;
    double weight_decay = 0.0;        ///< of matrices, not of norms and biases
    double clip_gradient_norm = 1.0;  ///< of the whole model; 0: never
    bool operator==(const Training&) const = default;
};

struct Job {
    Model model;
    Precision precision = Precision::kBf16;
    int global_batch = 1;  ///< sequences an optimizer step
    int micro_batch = 1;   ///< sequences a micro-batch
    SoftwareStack stack;
    Checkpointing checkpoint;
    std::optional<MeasuredTimes> measured;
    std::optional<std::string> data;   ///< what a deployment learns from: a file, relative to the scenario's folder
    std::optional<Training> training;  ///< absent: the defaults

    std::int64_t tokens_per_iteration() const {
        return static_cast<std::int64_t>(global_batch) * model.sequence_length;
    }
    bool operator==(const Job&) const = default;
};

}  // namespace headway::scenarios
