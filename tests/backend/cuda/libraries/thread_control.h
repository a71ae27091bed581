#pragma once

#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "backend/backend_error.h"
#include "backend/communicator/communicator.h"

namespace headway::tests {

/// What the controls of the ranks of one job share, where ranks are threads.
class ThreadJob {
  public:
    explicit ThreadJob(int size) : given_(static_cast<std::size_t>(size)) {}

    int size() const { return static_cast<int>(given_.size()); }
    std::vector<std::vector<char>> all_gather(int rank, const std::vector<char>& bytes) {
        std::unique_lock lock(mutex_);
        const int round = round_;
        given_[static_cast<std::size_t>(rank)] = bytes;
        if (++arrived_ == size()) {
            arrived_ = 0;
            ++round_;
            taken_ = given_;
            changed_.notify_all();
        }
        changed_.wait(lock, [&] { return round_ > round || !reason_.empty(); });
        if (round_ == round) throw backend::BackendError(rank, size(), "control", reason_);
        return taken_;
    }
    void abort(const std::string& reason) {
        std::map<int, std::shared_ptr<std::function<void(const std::string&)>>> told;
        {
            const std::lock_guard lock(mutex_);
            if (!reason_.empty()) return;
            reason_ = reason;
            for (const auto& [number, weak] : notified_)
                if (auto notify = weak.lock()) told[number] = std::move(notify);
        }
        changed_.notify_all();
        for (const auto& [number, notify] : told) (*notify)(reason);
    }
    std::shared_ptr<void> when_failed(std::function<void(const std::string&)> notify) {
        auto kept = std::make_shared<std::function<void(const std::string&)>>(std::move(notify));
        std::string reason;
        {
            const std::lock_guard lock(mutex_);
            notified_[next_++] = kept;
            reason = reason_;
        }
        if (!reason.empty()) (*kept)(reason);
        return kept;
    }

  private:
    std::mutex mutex_;
    std::condition_variable changed_;
    std::vector<std::vector<char>> given_, taken_;
    int arrived_ = 0, round_ = 0, next_ = 0;
    std::string reason_;
    std::map<int, std::weak_ptr<std::function<void(const std::string&)>>> notified_;
};

class ThreadControl final : public backend::Control {
  public:
    ThreadControl(ThreadJob& job, int rank) : job_(job), rank_(rank) {}
    int rank() const override { return rank_; }
    int size() const override { return job_.size(); }
    const std::string& address() const override { return address_; }
    void broadcast(std::vector<char>& bytes, int root) override {
        bytes = job_.all_gather(rank_, bytes)[static_cast<std::size_t>(root)];
    }
    std::vector<std::vector<char>> gather(const std::vector<char>& bytes, int root) override {
        auto all = job_.all_gather(rank_, bytes);
        return rank_ == root ? std::move(all) : std::vector<std::vector<char>>{};
    }
    std::vector<std::vector<char>> all_gather(const std::vector<char>& bytes) override {
        return job_.all_gather(rank_, bytes);
    }
    void abort(const std::string& reason) override { job_.abort(reason); }
    std::shared_ptr<void> when_failed(std::function<void(const std::string&)> notify) override {
        return job_.when_failed(std::move(notify));
    }

  private:
    ThreadJob& job_;
    int rank_;
    std::string address_ = "127.0.0.1";
};

}  // namespace headway::tests
