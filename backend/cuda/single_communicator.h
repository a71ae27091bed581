#pragma once

#include <stdexcept>
#include <string>
#include <utility>

#include "backend/backend_error.h"
#include "backend/communicator/communicator.h"
#include "backend/device/device.h"

namespace headway::backend {

/// A group of one: what it would receive is what it has.
class SingleCommunicator final : public Communicator {
  public:
    SingleCommunicator(Device& device, std::string name) : device_(device), name_(std::move(name)) {}

    int rank() const override { return 0; }
    int size() const override { return 1; }
    const std::string& name() const override { return name_; }
    std::unique_ptr<Work> all_reduce(const Tensor&, ReduceOperation) override { return over(); }
    std::unique_ptr<Work> reduce_scatter(const Tensor& from, const Tensor& to) override { return moved(from, to); }
    std::unique_ptr<Work> all_gather(const Tensor& from, const Tensor& to) override { return moved(from, to); }
    std::unique_ptr<Work> broadcast(const Tensor&, int) override { return over(); }
    std::unique_ptr<Work> exchange(std::span<const Message> messages) override {
        if (!messages.empty()) throw std::invalid_argument("exchange of group '" + name_ + "': no such peer");
        return over();
    }
    void abort(const std::string& reason) override {
        if (aborted_.empty()) aborted_ = reason.empty() ? "aborted" : reason;
    }

  private:
    class Done final : public Work {
      public:
        void wait() override {}
        bool done() override { return true; }
    };
    std::unique_ptr<Work> over() const {
        if (!aborted_.empty()) throw BackendError(0, 1, "group '" + name_ + "'", aborted_);
        return std::make_unique<Done>();
    }
    std::unique_ptr<Work> moved(const Tensor& from, const Tensor& to) {
        if (from.data != to.data && !from.empty()) device_.operations().copy(from, to);
        return over();
    }

    Device& device_;
    std::string name_;
    std::string aborted_;
};

}  // namespace headway::backend
