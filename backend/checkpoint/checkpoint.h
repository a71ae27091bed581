#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "backend/communicator/communicator.h"
#include "backend/device/device.h"
#include "backend/training/trainer.h"
#include "scenarios/language/job.h"
#include "scenarios/language/plan.h"

/// Checkpoints: a folder with one safetensors file a writing process and manifest.json, which names the model, the
/// step, the plan it was written under, and of every file its size, checksums and which elements of which block it
/// holds. The folder is written under a temporary name and renamed last, so a reader never sees half of one. It has to
/// be one that all machines of the job see.
namespace headway::backend {

struct CheckpointInfo {
    std::int64_t step = 0;  ///< next optimizer step
    std::uint64_t seed = 0;
    std::string scenario;
};

class CheckpointStore {
  public:
    /// `folder` holds step-0000120/ and so on. `keep`: so many of the newest stay.
    CheckpointStore(std::filesystem::path folder, Control& control, int keep = 2);
    /// Waits for a writing under way; half a minute at most, then it is given up.
    ~CheckpointStore();

    /// Every process calls it with its own slices (none: an empty span). Copies the state to host memory and returns; a
    /// thread writes; the checkpoint is complete as soon as all threads have written. The one before is finished first.
    /// Each element is written once, by the first rank that owns it. Throws what finish() throws, and ConfigError, on
    /// every process, for a folder that cannot be made.
    void save(const scenarios::Job& job, const scenarios::Plan& plan, const CheckpointInfo& info, Device& device,
              std::span<const StateSlice> state);
    /// Waits for the writing. Every process calls it. Throws BackendError with what went wrong (disk full, a process
    /// that is lost), the same on every process; the checkpoint before stays.
    void finish();
    /// Newest complete one, nothing where there is none. Every process calls it, all get the same. Throws ConfigError
    /// for one whose manifest is damaged.
    std::optional<CheckpointInfo> newest();
    /// Fills the slices, whatever the plan it was written under. Every process calls it. Throws ConfigError on every
    /// process, naming file and reason: another model, a checksum that differs, a cut file, elements that are missing.
    void load(const scenarios::Job& job, const CheckpointInfo& info, Device& device, std::span<StateSlice> state);

  private:
    class Impl;
    std::unique_ptr<Impl> impl_;
};

}  // namespace headway::backend
