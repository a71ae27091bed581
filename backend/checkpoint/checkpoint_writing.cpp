#include "backend/checkpoint/checkpoint_writing.h"

#include <array>
#include <chrono>
#include <cstdio>
#include <exception>
#include <system_error>

#include "backend/backend_error.h"
#include "backend/checkpoint/checkpoint_folder.h"
#include "backend/checkpoint/plain_file.h"

namespace headway::backend {
namespace {

constexpr std::chrono::milliseconds kPeerPoll{10};
constexpr std::chrono::seconds kPatienceAtTheEnd{30};
constexpr std::int64_t kLongestSaid = std::int64_t{1} << 30;

std::string name_of_process(int process, const char* suffix) {
    std::array<char, 48> name{};
    std::snprintf(name.data(), name.size(), "rank-%05d.%s", process, suffix);
    return name.data();
}

}  // namespace

CheckpointWriting::CheckpointWriting(WritingTask task) : task_(std::move(task)), thread_([this] { run(); }) {}

CheckpointWriting::~CheckpointWriting() {
    wait_or_give_up();
    thread_.join();
}

void CheckpointWriting::wait_or_give_up() {
    {
        std::unique_lock lock(mutex_);
        if (!changed_.wait_for(lock, kPatienceAtTheEnd, [&] { return complete_; })) given_up_ = "the job ended";
    }
    changed_.notify_all();
}

std::string CheckpointWriting::wait_written() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return written_; });
    return problem_;
}

std::string CheckpointWriting::wait_complete() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return complete_; });
    return problem_;
}

void CheckpointWriting::give_up(const std::string& reason) {
    {
        const std::lock_guard lock(mutex_);
        if (given_up_.empty()) given_up_ = reason;
    }
    changed_.notify_all();
}

std::string CheckpointWriting::given_up() {
    const std::lock_guard lock(mutex_);
    return given_up_;
}

void CheckpointWriting::run() {
    std::string problem;
    try {
        write();
        {
            const std::lock_guard lock(mutex_);
            written_ = true;
        }
        changed_.notify_all();
        if (task_.commits) complete();
    } catch (const std::exception& error) {
        problem = error.what();
    }
    if (!problem.empty() && task_.commits) {
        std::error_code ignored;
        std::filesystem::remove_all(task_.writing, ignored);
    }
    {
        const std::lock_guard lock(mutex_);
        problem_ = problem;
        written_ = complete_ = true;
    }
    changed_.notify_all();
}

void CheckpointWriting::write() {
    if (task_.parts.empty()) return;
    const SavedFile saved = write_state_file(task_.writing / name_of_process(task_.process, "safetensors"), task_.parts,
                                             [&] { return given_up(); });
    task_.parts.clear();
    task_.parts.shrink_to_fit();  // the copy is as large as the state
    place_file(task_.writing / name_of_process(task_.process, "json"), saved_file_text(saved));
}

std::vector<SavedFile> CheckpointWriting::said_by_others() {
    std::vector<SavedFile> files;
    for (const int process : task_.writers) {
        const std::filesystem::path said = task_.writing / name_of_process(process, "json");
        std::unique_lock lock(mutex_);
        // What is there counts, even where somebody was lost since.
        while (!std::filesystem::exists(said)) {
            if (!given_up_.empty()) throw BackendError("checkpoint " + task_.writing.string(), given_up_);
            changed_.wait_for(lock, kPeerPoll);
        }
        lock.unlock();
        files.push_back(parse_saved_file(text_of_file(said, kLongestSaid), said.string()));
    }
    return files;
}

void CheckpointWriting::complete() {
    task_.manifest.files = said_by_others();
    replace_file(task_.writing / kManifestName, manifest_text(task_.manifest));
    for (const int process : task_.writers) std::filesystem::remove(task_.writing / name_of_process(process, "json"));
    sync_folder(task_.writing);
    end_writing(task_.folder, task_.writing, task_.manifest.step, task_.keep);
}

}  // namespace headway::backend
