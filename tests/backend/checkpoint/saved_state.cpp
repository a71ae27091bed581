#include "tests/backend/checkpoint/saved_state.h"

#include <stdlib.h>

#include <algorithm>
#include <array>

#include "backend/checkpoint/manifest.h"

namespace headway::backend {

ScratchFolder::ScratchFolder() {
    std::string pattern = (std::filesystem::temp_directory_path() / "headway-checkpoint-XXXXXX").string();
    path_ = ::mkdtemp(pattern.data());
}

ScratchFolder::~ScratchFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
}

double state_value(const scenarios::Job& job, const scenarios::Block& block, std::int64_t element, std::size_t part,
                   int generation) {
    if (element >= real_elements(job.model, block.kind)) return 0.0;
    const double place = static_cast<double>(block.kind) * 1e5 + (block.layer + 1) * 1e4 + static_cast<double>(element);
    return static_cast<float>(place + 0.25 * static_cast<double>(part + 1)) * (generation + 1);
}

PlanState::PlanState(const scenarios::Job& job, const scenarios::Plan& plan, int process, Device& device)
    : job_(job), device_(device) {
    const auto found = std::find(plan.gpu_of_rank.begin(), plan.gpu_of_rank.end(), process);
    if (found == plan.gpu_of_rank.end()) return;
    const scenarios::Ownership ownership(job, plan);
    const int rank = static_cast<int>(found - plan.gpu_of_rank.begin());
    const DataType type = device.accumulation_type();
    for (const scenarios::Block& block : ownership.blocks()) {
        const scenarios::Interval owned = ownership.owned(rank, block, scenarios::StateKind::kOptimizer);
        if (owned.empty()) continue;
        StateSlice& slice = slices_.emplace_back();
        slice.block = block;
        slice.elements = owned;
        for (Tensor* tensor : {&slice.master, &slice.first_moment, &slice.second_moment})
            *tensor = memory_.emplace_back(device.allocate(type, owned.size())).tensor(type, 1, owned.size());
    }
}

void PlanState::fill(int generation) {
    for (StateSlice& slice : slices_) {
        const std::array<Tensor, kStateParts> tensors = {slice.master, slice.first_moment, slice.second_moment};
        for (std::size_t part = 0; part < kStateParts; ++part)
            for (std::int64_t i = 0; i < slice.elements.size(); ++i) {
                const double value = state_value(job_, slice.block, slice.elements.begin + i, part, generation);
                if (tensors[part].type == DataType::kFloat64)
                    static_cast<double*>(tensors[part].data)[i] = value;
                else
                    static_cast<float*>(tensors[part].data)[i] = static_cast<float>(value);
            }
    }
}

std::string PlanState::difference(int generation) const {
    for (const StateSlice& slice : slices_) {
        const std::array<Tensor, kStateParts> tensors = {slice.master, slice.first_moment, slice.second_moment};
        for (std::size_t part = 0; part < kStateParts; ++part)
            for (std::int64_t i = 0; i < slice.elements.size(); ++i) {
                const double wanted = state_value(job_, slice.block, slice.elements.begin + i, part, generation);
                const double value = tensors[part].type == DataType::kFloat64
                                         ? static_cast<double*>(tensors[part].data)[i]
                                         : static_cast<float*>(tensors[part].data)[i];
                if (value != wanted)
                    return block_text(slice.block) + " " + std::to_string(slice.elements.begin + i) + " " +
                           kStatePartNames[part] + " is " + std::to_string(value) + ", not " + std::to_string(wanted);
            }
    }
    return "";
}

}  // namespace headway::backend
