#pragma once

#include <optional>
#include <string>

#include "scenarios/language/stack.h"
#include "scenarios/language/units.h"

/// What is trained: the shape of a decoder-only transformer and how it is trained. Nothing here knows a cluster or a layout.
namespace headway::scenarios {

enum class Positions { kLearned, kRotary };
enum class Norm { kLayer, kRms };

/// Shape of a GPT-style transformer. Widths count elements, not bytes.
struct Model {
  std::string name;
  int layers = 1;
  int hidden = 1;
  int heads = 1;              ///< query heads
  int kv_heads = 1;           ///< key/value heads (grouped-query attention when fewer than `heads`)
  int head_dim = 0;           ///< width of one head; 0 stands for hidden / heads until the scenario is resolved
  int ffn = 1;                ///< inner width of the MLP
  bool gated_mlp = false;     ///< SwiGLU: three MLP matrices instead of two
  int vocab = 1;
  int sequence_length = 1;    ///< tokens a sequence
  Positions positions = Positions::kLearned;
  Norm norm = Norm::kLayer;
  bool biases = true;         ///< linear layers carry a bias (GPT yes, Llama no)
  bool tied_embedding = true; ///< the logits layer shares the embedding's weights
};

enum class Precision { kFp16, kBf16, kFp8 };

/// Checkpoints: how often state is saved, and what a restart costs besides reading it back.
struct Checkpointing {
  Duration interval = Duration::seconds(1800);      ///< 0 switches checkpoints off
  bool asynchronous = false;                        ///< true: only the copy to host memory stops the job
  Duration detection = Duration::seconds(60);       ///< from the loss of a rank until the job notices (watchdog)
  Duration restart = Duration::seconds(180);        ///< relaunch, communicators and warm-up, without reading state
};

/// Measured operation times in place of the cost model (CSV files, relative to the scenario file).
/// `workers`: one row a replica and stage, columns replica,stage,forward_ms,backward_ms
/// (optional: send_activation_ms,send_gradient_ms). `rest_of_step`: what follows the last backward.
struct MeasuredTimes {
  std::string workers;
  Duration rest_of_step;
};

struct Job {
  Model model;
  Precision precision = Precision::kBf16;
  int global_batch = 1;        ///< sequences an optimizer step
  int micro_batch = 1;         ///< sequences a micro-batch
  SoftwareStack stack;
  Checkpointing checkpoint;
  std::optional<MeasuredTimes> measured;

  std::int64_t tokens_per_iteration() const {
    return static_cast<std::int64_t>(global_batch) * model.sequence_length;
  }
};

}  // namespace headway::scenarios
