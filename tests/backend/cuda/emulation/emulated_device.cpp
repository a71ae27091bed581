#include "tests/backend/cuda/emulation/emulated_device.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>

#include "backend/cuda/cuda_operations.h"
#include "backend/cuda/kernels/kernels.h"

namespace headway::tests {

namespace {

using backend::Buffer;
using backend::DataType;
using backend::Tensor;
using backend::Transpose;

class EmulatedProducts final : public backend::MatrixProducts {
  public:
    void product(Transpose ta, Transpose tb, double alpha, const Tensor& a, const Tensor& b, double beta,
                 const Tensor& c) override {
        backend::cuda::plain_product(nullptr, ta, tb, alpha, a, b, beta, c);
    }
};

class EmulatedCudaDevice final : public backend::Device {
  public:
    EmulatedCudaDevice(DataType type, const MakeProducts& make_products)
        : type_(type),
          products_(make_products ? make_products(*this) : std::make_unique<EmulatedProducts>()),
          operations_(*this, type, nullptr, *products_) {}

    std::string name() const override { return "emulated cuda"; }
    DataType working_type() const override { return type_; }
    backend::Operations& operations() override { return operations_; }

    Buffer allocate(scenarios::Bytes bytes) override {
        constexpr std::int64_t kAlignment = 256, kGuard = 256;
        const std::int64_t rounded = (bytes.count() + kAlignment - 1) / kAlignment * kAlignment;
        void* const memory = std::aligned_alloc(kAlignment, static_cast<std::size_t>(rounded + kGuard));
        std::memset(memory, 0xff, static_cast<std::size_t>(rounded));
        auto* const guard = static_cast<unsigned char*>(memory) + rounded;
        std::memset(guard, kGuardByte, kGuard);
        return {memory, bytes.count(), [guard](void* block) {
                    for (std::int64_t i = 0; i < kGuard; ++i)
                        if (guard[i] != kGuardByte) {
                            ADD_FAILURE() << "written past the end of a buffer";
                            break;
                        }
                    std::free(block);
                }};
    }
    scenarios::Bytes memory_used() const override { return scenarios::Bytes(0); }
    scenarios::Bytes memory_total() const override { return scenarios::Bytes(0); }
    void to_host(const Tensor& from, void* to) override {
        std::memcpy(to, from.data, static_cast<std::size_t>(from.bytes()));
    }
    void from_host(const void* from, const Tensor& to) override {
        std::memcpy(to.data, from, static_cast<std::size_t>(to.bytes()));
    }
    void synchronize() override {}
    backend::Mark mark() override { return {0}; }
    scenarios::Duration time_of(const backend::Mark&) override { return {}; }
    void forget_marks() override {}

  private:
    static constexpr unsigned char kGuardByte = 0x5a;
    DataType type_;
    std::unique_ptr<backend::MatrixProducts> products_;
    backend::CudaOperations operations_;
};

}  // namespace

std::unique_ptr<backend::Device> make_emulated_cuda_device(DataType working_type, const MakeProducts& make_products) {
    return std::make_unique<EmulatedCudaDevice>(working_type, make_products);
}

}  // namespace headway::tests
