#pragma once

#include <atomic>
#include <mutex>
#include <optional>

#include "backend/backend_error.h"

namespace headway::backend {

/// The first failure of something that several threads use. What ends a hanging collective also lets the stream go on,
/// with garbage: who waits for the device looks here afterwards.
class Failure {
  public:
    /// Later ones are consequences, and ignored.
    void set(const BackendError& error) {
        const std::lock_guard lock(mutex_);
        if (!error_) error_ = error;
        failed_ = true;
    }
    bool failed() const { return failed_; }
    /// Throws the failure, if there was one.
    void check() const {
        if (!failed_) return;
        const std::lock_guard lock(mutex_);
        throw BackendError(*error_);
    }

  private:
    std::atomic<bool> failed_{false};
    mutable std::mutex mutex_;
    std::optional<BackendError> error_;
};

}  // namespace headway::backend
