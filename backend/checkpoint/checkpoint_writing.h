#pragma once

#include <condition_variable>
#include <filesystem>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "backend/checkpoint/manifest.h"
#include "backend/checkpoint/state_file.h"

namespace headway::backend {

/// What one process does of one checkpoint behind its back.
struct WritingTask {
    std::filesystem::path folder;   ///< of the checkpoints
    std::filesystem::path writing;  ///< in it, where this one is written
    int process = 0;
    std::vector<StagedPart> parts;  ///< this process's; none: it writes nothing
    bool commits = false;           ///< process 0
    std::vector<int> writers;       ///< all that write; of the one that commits
    Manifest manifest;              ///< without its files; of the one that commits
    int keep = 2;
};

/// A thread that writes this process's file and says so beside it (rank-00003.json); process 0 waits until all have
/// said so, writes the manifest and gives the folder its name. So a checkpoint is complete as soon as the slowest has
/// written, without anybody asking.
class CheckpointWriting {
  public:
    explicit CheckpointWriting(WritingTask task);
    ~CheckpointWriting();  ///< wait_or_give_up()

    /// Returns when this process has written; what went wrong, or nothing.
    std::string wait_written();
    /// Returns when the checkpoint is complete; what went wrong, or nothing. At once but for process 0.
    std::string wait_complete();
    /// Others will not write: what has not begun is left, the old checkpoints stay.
    void give_up(const std::string& reason);
    /// Waits for what is under way, but not for ever: then it is given up and removed.
    void wait_or_give_up();

  private:
    void run();
    void write();
    void complete();
    std::string given_up();
    std::vector<SavedFile> said_by_others();

    WritingTask task_;
    std::mutex mutex_;
    std::condition_variable changed_;
    bool written_ = false;
    bool complete_ = false;
    std::string problem_;  ///< of writing or completing
    std::string given_up_;
    std::thread thread_;
};

}  // namespace headway::backend
