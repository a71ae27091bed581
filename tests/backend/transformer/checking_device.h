#pragma once

#include <map>
#include <memory>
#include <string>

#include "backend/communicator/communicator.h"
#include "backend/device/device.h"

/// A device that computes nothing: it checks types, shapes and strides of every call as a device in bfloat16 would, and
/// counts what it is asked for.
namespace headway::backend {

class CheckingDevice : public Device {
  public:
    CheckingDevice();
    ~CheckingDevice() override;

    /// Calls of each operation so far, by name.
    const std::map<std::string, int>& calls() const;
    /// Memory that was not there to be used again.
    int fresh_allocations() const;

    std::string name() const override { return "checking"; }
    DataType working_type() const override { return DataType::kBfloat16; }
    Operations& operations() override;
    Buffer allocate(scenarios::Bytes bytes) override;
    scenarios::Bytes memory_used() const override;
    scenarios::Bytes memory_total() const override { return scenarios::Bytes(std::int64_t{1} << 30); }
    void to_host(const Tensor& from, void* to) override;
    void from_host(const void*, const Tensor&) override {}
    void synchronize() override {}
    Mark mark() override { return {0}; }
    scenarios::Duration time_of(const Mark&) override { return {}; }
    void forget_marks() override {}

  private:
    class Calls;
    class Pool;
    std::unique_ptr<Calls> calls_;
    std::unique_ptr<Pool> pool_;
};

/// Of a group in which nobody else is: checks that tensors are contiguous and parts fit.
std::unique_ptr<Communicator> make_checking_communicator(int rank, int size);

}  // namespace headway::backend
