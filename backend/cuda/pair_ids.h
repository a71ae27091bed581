#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "backend/communicator/communicator.h"

namespace headway::backend {

/// Small values that one process has and another wants, whenever either gets there: how two members of a group that
/// exchange messages for the first time agree on a communicator of their own, without the others. Each process answers
/// at a port of its address. Names no function of CUDA.
class PairIds {
  public:
    /// Every process of the job makes one at the same time. Throws BackendError.
    explicit PairIds(Control& control);
    ~PairIds();
    PairIds(const PairIds&) = delete;
    PairIds& operator=(const PairIds&) = delete;

    void publish(const std::string& key, std::vector<char> value);
    /// What `process` published, as soon as it does. Throws BackendError after `timeout`, or when `stopped` says so.
    std::vector<char> fetch(int process, const std::string& key, std::chrono::milliseconds timeout,
                            const std::function<bool()>& stopped) const;

  private:
    void answer();
    void answer_one(int connection);
    /// Nothing when the process has not published it yet.
    std::vector<char> ask(int process, const std::string& key) const;

    int rank_, size_;
    int listener_ = -1;
    std::vector<std::string> hosts_;
    std::vector<std::string> ports_;  // [processes]
    mutable std::mutex mutex_;
    std::map<std::string, std::vector<char>> values_;
    std::atomic<bool> stop_{false};
    std::thread thread_;
};

}  // namespace headway::backend
