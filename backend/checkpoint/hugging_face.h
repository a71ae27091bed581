#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "backend/checkpoint/checkpoint_reader.h"
#include "backend/checkpoint/safetensors.h"
#include "backend/communicator/communicator.h"
#include "backend/data/mapped_file.h"
#include "backend/device/device.h"
#include "backend/training/trainer.h"
#include "scenarios/language/job.h"

namespace headway::backend {

/// Weights of a GPT-2 or Llama model as Hugging Face's transformers save them, in safetensors: F32, F16, BF16 or F64.
/// Mapped, so that a process reads no more than what it asks for.
class HuggingFaceWeights {
  public:
    /// `path`: a folder with model.safetensors, or with model.safetensors.index.json and the files that it names; or
    /// one such file. Names may have the prefix "transformer." (GPT-2) or lack "model." (Llama). A config.json beside
    /// them is held against the model. Throws ConfigError naming file and tensor: missing, not of the model's shape, or
    /// not of the model at all. Position tables may be longer than the model's.
    HuggingFaceWeights(const std::filesystem::path& path, const scenarios::Model& model);

    /// Elements of a block in block order. Padding rows are 0.
    std::vector<float> read(const scenarios::Block& block, const scenarios::Interval& elements) const;

  private:
    struct Source {
        std::size_t file = 0;
        SafetensorsEntry entry;
        const std::byte* data = nullptr;
    };
    void open(const std::filesystem::path& file);
    void open_index(const std::filesystem::path& index);
    void check_names() const;
    const Source& source(const std::string& name) const;

    scenarios::Model model_;
    std::string what_;  ///< for messages
    std::vector<std::unique_ptr<MappedFile>> files_;
    std::map<std::string, Source> sources_;  ///< by the family's names
};

/// Fills the master weights of the slices and sets the moments to 0. Every process calls it with its own slices. Throws
/// ConfigError, the same on every process. Trainer::state_changed() is the caller's.
void load_hugging_face(const std::filesystem::path& path, const scenarios::Job& job, Control& control, Device& device,
                       std::span<StateSlice> state);

enum class WeightType : std::uint8_t { kFloat32, kBfloat16, kFloat16 };

/// Writes the weights of a checkpoint so that transformers load them. `out` that ends in ".safetensors" is the one
/// file; else a folder, which gets model.safetensors and config.json. Written under another name and renamed. Throws
/// ConfigError for a model of neither family or a damaged checkpoint, BackendError when it cannot be written.
void export_hugging_face(CheckpointReader& checkpoint, const std::filesystem::path& out, WeightType type);

}  // namespace headway::backend
