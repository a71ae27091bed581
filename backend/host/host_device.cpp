#include "backend/host/host_device.h"

#include <chrono>
#include <cstring>
#include <stdexcept>

#include "backend/host/host_operations.h"
#include "backend/host/memory_pool.h"

namespace headway::backend {

namespace {

template <typename Real>
class HostDevice : public Device {
  public:
    HostDevice() : pool_(usable_memory_bytes()), made_(Clock::now()) {}

    std::string name() const override { return "host"; }
    DataType working_type() const override { return HostOperations<Real>::kType; }
    Operations& operations() override { return operations_; }

    Buffer allocate(scenarios::Bytes bytes) override {
        return {pool_.take(bytes.count()), bytes.count(), [this](void* block) { pool_.give_back(block); }};
    }
    scenarios::Bytes memory_used() const override { return scenarios::Bytes(pool_.used_bytes()); }
    scenarios::Bytes memory_total() const override { return scenarios::Bytes(pool_.most_bytes()); }

    void to_host(const Tensor& from, void* to) override {
        require_contiguous(from);
        if (!from.empty()) std::memcpy(to, from.data, static_cast<std::size_t>(from.bytes()));
    }
    void from_host(const void* from, const Tensor& to) override {
        require_contiguous(to);
        if (!to.empty()) std::memcpy(to.data, from, static_cast<std::size_t>(to.bytes()));
    }

    void synchronize() override {}
    /// The stream is always at its end: a mark is the time at which it was taken.
    Mark mark() override {
        return {std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now() - made_).count()};
    }
    scenarios::Duration time_of(const Mark& mark) override { return scenarios::Duration::nanoseconds(mark.value); }
    void forget_marks() override {}

  private:
    using Clock = std::chrono::steady_clock;
    static void require_contiguous(const Tensor& tensor) {
        if (!tensor.contiguous()) throw std::invalid_argument("copy to or from the host: the tensor is not contiguous");
    }

    MemoryPool pool_;
    HostOperations<Real> operations_;
    Clock::time_point made_;
};

}  // namespace

std::unique_ptr<Device> make_host_device(DataType type) {
    if (type == DataType::kFloat32) return std::make_unique<HostDevice<float>>();
    if (type == DataType::kFloat64) return std::make_unique<HostDevice<double>>();
    throw std::invalid_argument("the host computes in float32 or float64");
}

}  // namespace headway::backend
