#pragma once

#include <cstdint>
#include <deque>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "backend/device/device.h"
#include "backend/training/trainer.h"
#include "scenarios/language/job.h"
#include "scenarios/language/plan.h"
#include "scenarios/transfer/ownership.h"

/// State to be saved and loaded, without a training.
namespace headway::backend {

/// A folder that goes with the test.
class ScratchFolder {
  public:
    ScratchFolder();
    ScratchFolder(const ScratchFolder&) = delete;
    ScratchFolder& operator=(const ScratchFolder&) = delete;
    ~ScratchFolder();
    const std::filesystem::path& path() const { return path_; }

  private:
    std::filesystem::path path_;
};

/// What the tests keep in an element: another number for every one; `generation` tells apart checkpoints. Padding rows
/// are 0.
double state_value(const scenarios::Job& job, const scenarios::Block& block, std::int64_t element, std::size_t part,
                   int generation);

/// The slices that one process owns under a plan (none where it has no rank), as a trainer holds them.
class PlanState {
  public:
    PlanState(const scenarios::Job& job, const scenarios::Plan& plan, int process, Device& device);

    std::span<StateSlice> slices() { return slices_; }
    void fill(int generation);
    /// Elements whose value is not that of `generation`, in words; empty: none.
    std::string difference(int generation) const;

  private:
    scenarios::Job job_;
    Device& device_;
    std::vector<StateSlice> slices_;
    std::deque<Buffer> memory_;
};

}  // namespace headway::backend
