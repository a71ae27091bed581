#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "backend/backend_error.h"
#include "backend/communicator/communicator.h"

namespace headway::tests {

/// The control of a job of one process.
class OneProcess final : public backend::Control {
  public:
    int rank() const override { return 0; }
    int size() const override { return 1; }
    const std::string& address() const override { return address_; }
    void broadcast(std::vector<char>&, int) override { check(); }
    std::vector<std::vector<char>> gather(const std::vector<char>& bytes, int) override { return all_gather(bytes); }
    std::vector<std::vector<char>> all_gather(const std::vector<char>& bytes) override {
        check();
        return {bytes};
    }
    void abort(const std::string& reason) override {
        {
            const std::lock_guard lock(mutex_);
            if (!reason_.empty()) return;
            reason_ = reason;
        }
        if (const auto notify = notify_.lock()) (*notify)(reason);
    }
    std::shared_ptr<void> when_failed(std::function<void(const std::string&)> notify) override {
        auto kept = std::make_shared<std::function<void(const std::string&)>>(std::move(notify));
        notify_ = kept;
        return kept;
    }
    std::string reason() const {
        const std::lock_guard lock(mutex_);
        return reason_;
    }

  private:
    void check() const {
        const std::lock_guard lock(mutex_);
        if (!reason_.empty()) throw backend::BackendError(0, 1, "control", reason_);
    }
    mutable std::mutex mutex_;
    std::string reason_;
    std::weak_ptr<std::function<void(const std::string&)>> notify_;
    std::string address_ = "127.0.0.1";
};

}  // namespace headway::tests
