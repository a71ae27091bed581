#include "backend/checkpoint/checkpoint.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <mutex>
#include <utility>
#include <vector>

#include "backend/backend_error.h"
#include "backend/checkpoint/agreement.h"
#include "backend/checkpoint/checkpoint_folder.h"
#include "backend/checkpoint/checkpoint_reader.h"
#include "backend/checkpoint/checkpoint_writing.h"
#include "backend/checkpoint/write_shares.h"

namespace headway::backend {
namespace {

constexpr std::int64_t kNumbersOfPart = 4;  ///< kind, layer, begin, end

std::vector<char> bytes_of_slices(std::span<const StateSlice> state) {
    std::vector<std::int64_t> numbers;
    for (const StateSlice& slice : state)
        for (const std::int64_t number : {static_cast<std::int64_t>(slice.block.kind), std::int64_t{slice.block.layer},
                                          slice.elements.begin, slice.elements.end})
            numbers.push_back(number);
    std::vector<char> bytes(numbers.size() * sizeof numbers[0]);
    if (!bytes.empty()) std::memcpy(bytes.data(), numbers.data(), bytes.size());
    return bytes;
}

std::vector<BlockPart> parts_of_bytes(const std::vector<char>& bytes) {
    std::vector<std::int64_t> numbers(bytes.size() / sizeof(std::int64_t));
    if (!bytes.empty()) std::memcpy(numbers.data(), bytes.data(), bytes.size());
    std::vector<BlockPart> parts;
    for (std::size_t i = 0; i + kNumbersOfPart <= numbers.size(); i += kNumbersOfPart)
        parts.push_back({{static_cast<scenarios::BlockKind>(numbers[i]), static_cast<int>(numbers[i + 1])},
                         {numbers[i + 2], numbers[i + 3]}});
    return parts;
}

std::array<const Tensor*, kStateParts> tensors_of(const StateSlice& slice) {
    return {&slice.master, &slice.first_moment, &slice.second_moment};
}

/// Host copies of what this process writes.
std::vector<StagedPart> staged(Device& device, std::span<const StateSlice> state, const std::vector<BlockPart>& share) {
    std::vector<StagedPart> result;
    for (const BlockPart& part : share) {
        const auto slice = std::find_if(state.begin(), state.end(), [&](const StateSlice& s) {
            return s.block == part.block && s.elements.begin <= part.elements.begin &&
                   s.elements.end >= part.elements.end;
        });
        StagedPart& copy = result.emplace_back();
        copy.part = part;
        copy.wide = slice->master.type == DataType::kFloat64;
        for (std::size_t i = 0; i < kStateParts; ++i) {
            const Tensor from =
                tensors_of(*slice)[i]->elements(part.elements.begin - slice->elements.begin, part.elements.size());
            copy.state[i] = HostCopy(from.bytes());
            device.to_host(from, copy.state[i].data());
        }
    }
    return result;
}

template <typename T>
void fill_slice(CheckpointReader& reader, Device& device, const StateSlice& slice) {
    for (std::size_t i = 0; i < kStateParts; ++i)
        device.from_host(reader.read<T>(slice.block, slice.elements, i).data(), *tensors_of(slice)[i]);
}

}  // namespace

class CheckpointStore::Impl {
  public:
    Impl(std::filesystem::path folder, Control& control, int keep)
        : folder_(std::move(folder)), control_(control), keep_(keep) {
        watch_ = control_.when_failed([this](const std::string& reason) {
            const std::lock_guard lock(mutex_);
            lost_ = reason.empty() ? "a process was lost" : reason;
            if (writing_) writing_->give_up(lost_);
        });
    }

    ~Impl() {
        // While it is waited for, the loss of a process is still heard; then nobody calls into what is gone.
        if (writing_) writing_->wait_or_give_up();
        watch_.reset();
    }

    void save(const scenarios::Job& job, const scenarios::Plan& plan, const CheckpointInfo& info, Device& device,
              std::span<const StateSlice> state) {
        finish();
        const std::filesystem::path writing =
            made_by_first(control_, [&] { return begin_writing(folder_, info.step).string(); });
        std::vector<std::vector<BlockPart>> owned;
        for (const std::vector<char>& bytes : control_.all_gather(bytes_of_slices(state)))
            owned.push_back(parts_of_bytes(bytes));
        const auto shares = write_shares(job.model, owned, plan.gpu_of_rank);

        WritingTask task;
        task.folder = folder_;
        task.writing = writing;
        task.process = control_.rank();
        task.parts = staged(device, state, shares[static_cast<std::size_t>(control_.rank())]);
        task.commits = control_.rank() == 0;
        task.keep = keep_;
        if (task.commits) {
            for (int process = 0; process < control_.size(); ++process)
                if (!shares[static_cast<std::size_t>(process)].empty()) task.writers.push_back(process);
            task.manifest = {info.step, info.seed, info.scenario, job.model, plan, kChunkElements, {}};
        }
        auto started = std::make_unique<CheckpointWriting>(std::move(task));
        const std::lock_guard lock(mutex_);
        writing_ = std::move(started);
        if (!lost_.empty()) writing_->give_up(lost_);
    }

    void finish() {
        if (!writing_) return;  // the same in every process
        const std::string wrote = first_problem(control_, writing_->wait_written());
        if (!wrote.empty()) writing_->give_up(wrote);
        const std::string completed = writing_->wait_complete();
        const std::string problem = first_problem(control_, wrote.empty() ? completed : wrote);
        taken();
        if (!problem.empty()) throw BackendError("checkpoint", problem);
    }

    std::optional<CheckpointInfo> newest() {
        const std::string text = made_by_first(control_, [&] {
            const std::vector<CheckpointName> names = complete_checkpoints(folder_);
            return names.empty() ? "" : name_and_manifest(names.back());
        });
        if (text.empty()) return std::nullopt;
        const Manifest manifest = read_manifest(text).second;
        return CheckpointInfo{manifest.step, manifest.seed, manifest.scenario};
    }

    void load(const scenarios::Job& job, const CheckpointInfo& info, Device& device, std::span<StateSlice> state) {
        const std::string text = made_by_first(control_, [&] {
            const std::vector<CheckpointName> names = complete_checkpoints(folder_);
            const auto name =
                std::find_if(names.rbegin(), names.rend(), [&](const auto& n) { return n.step == info.step; });
            if (name == names.rend())
                throw scenarios::ConfigError(folder_.string() + ": holds no checkpoint of step " +
                                             std::to_string(info.step));
            return name_and_manifest(*name);
        });
        const std::string problem = first_problem(
            control_, problem_of([&] {
                auto [folder, manifest] = read_manifest(text);
                const std::string difference = difference_of_models(manifest.model, job.model);
                if (!difference.empty())
                    throw scenarios::ConfigError(folder.string() + ": a checkpoint of another model: " + difference);
                CheckpointReader reader(folder, std::move(manifest));
                for (const StateSlice& slice : state) {
                    if (slice.master.type == DataType::kFloat64)
                        fill_slice<double>(reader, device, slice);
                    else
                        fill_slice<float>(reader, device, slice);
                }
            }));
        if (!problem.empty()) throw scenarios::ConfigError(problem);
    }

  private:
    /// Name, line feed, manifest: read once, by process 0, so that all see the same.
    std::string name_and_manifest(const CheckpointName& name) const {
        const std::filesystem::path file = folder_ / name.text() / kManifestName;
        const std::string text = text_of_file(file, std::int64_t{1} << 32);
        parse_manifest(text, file.string());
        return name.text() + "\n" + text;
    }
    std::pair<std::filesystem::path, Manifest> read_manifest(const std::string& text) const {
        const std::size_t end = text.find('\n');
        const std::filesystem::path folder = folder_ / text.substr(0, end);
        return {folder, parse_manifest(text.substr(end + 1), (folder / kManifestName).string())};
    }
    std::unique_ptr<CheckpointWriting> taken() {
        const std::lock_guard lock(mutex_);
        return std::move(writing_);
    }

    std::filesystem::path folder_;
    Control& control_;
    int keep_;
    std::mutex mutex_;  ///< of the two below, which the control's thread touches too
    std::unique_ptr<CheckpointWriting> writing_;
    std::string lost_;
    std::shared_ptr<void> watch_;
};

CheckpointStore::CheckpointStore(std::filesystem::path folder, Control& control, int keep)
    : impl_(std::make_unique<Impl>(std::move(folder), control, keep)) {}
CheckpointStore::~CheckpointStore() = default;

void CheckpointStore::save(const scenarios::Job& job, const scenarios::Plan& plan, const CheckpointInfo& info,
                           Device& device, std::span<const StateSlice> state) {
    impl_->save(job, plan, info, device, state);
}
void CheckpointStore::finish() {
    impl_->finish();
}
std::optional<CheckpointInfo> CheckpointStore::newest() {
    return impl_->newest();
}
void CheckpointStore::load(const scenarios::Job& job, const CheckpointInfo& info, Device& device,
                           std::span<StateSlice> state) {
    impl_->load(job, info, device, state);
}

}  // namespace headway::backend
