#pragma once

#include <cstdint>
#include <map>
#include <tuple>

#include "backend/cuda/kernels/stream.h"
#include "backend/cuda/matrix_products.h"
#include "backend/device/device.h"
#include "backend/device/operation_checks.h"
#include "backend/device/operations.h"

namespace headway::backend {

/// The operations over own kernels (backend/cuda/kernels) and a library for products: checks, then launches. Working
/// type bfloat16 or float32, accumulation float32. Names no function of CUDA: the tests run it over an emulated device.
class CudaOperations final : public Operations {
  public:
    /// `device` provides scratch memory; all three outlive this.
    CudaOperations(Device& device, DataType working_type, cuda::Stream stream, MatrixProducts& products);

    void gemm(Transpose ta, Transpose tb, double alpha, const Tensor& a, const Tensor& b, double beta,
              const Tensor& c) override;
    void add_bias(const Tensor& x, const Tensor& bias) override;
    void bias_gradient(const Tensor& dy, const Tensor& dbias) override;
    void layer_norm(const Tensor& x, const Tensor& gamma, const Tensor& beta, double epsilon, const Tensor& y,
                    const Tensor& mean, const Tensor& rstd) override;
    void layer_norm_gradient(const Tensor& dy, const Tensor& x, const Tensor& gamma, const Tensor& mean,
                             const Tensor& rstd, const Tensor& dx, const Tensor& dgamma, const Tensor& dbeta) override;
    void rms_norm(const Tensor& x, const Tensor& gamma, double epsilon, const Tensor& y, const Tensor& rstd) override;
    void rms_norm_gradient(const Tensor& dy, const Tensor& x, const Tensor& gamma, const Tensor& rstd, const Tensor& dx,
                           const Tensor& dgamma) override;
    void rotary(const Tensor& x, std::int64_t sequence, std::int64_t head_dim, double base, bool inverse) override;
    /// Heads of up to 256.
    void attention(const AttentionShape& shape, const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& out,
                   const Tensor& log_sums) override;
    void attention_gradient(const AttentionShape& shape, const Tensor& dout, const Tensor& q, const Tensor& k,
                            const Tensor& v, const Tensor& out, const Tensor& log_sums, const Tensor& dq,
                            const Tensor& dk, const Tensor& dv) override;
    void gelu(const Tensor& x, const Tensor& y) override;
    void gelu_gradient(const Tensor& x, const Tensor& dy, const Tensor& dx) override;
    void swiglu(const Tensor& gate, const Tensor& up, const Tensor& y) override;
    void swiglu_gradient(const Tensor& gate, const Tensor& up, const Tensor& dy, const Tensor& dgate,
                         const Tensor& dup) override;
    void embedding(const Tensor& tokens, const Tensor& table, std::int64_t first_row, const Tensor& out) override;
    void embedding_gradient(const Tensor& tokens, const Tensor& dout, std::int64_t first_row,
                            const Tensor& dtable) override;
    void add_positions(const Tensor& table, std::int64_t sequence, std::int64_t first_token, const Tensor& x) override;
    void positions_gradient(const Tensor& dx, std::int64_t sequence, std::int64_t first_token,
                            const Tensor& dtable) override;
    void row_maxima(const Tensor& logits, const Tensor& maxima) override;
    void exponential_sums(const Tensor& logits, const Tensor& maxima, const Tensor& targets, std::int64_t first_column,
                          const Tensor& sums, const Tensor& target_logits) override;
    void cross_entropy(const Tensor& logits, const Tensor& maxima, const Tensor& sums, const Tensor& targets,
                       const Tensor& target_logits, std::int64_t first_column, double scale,
                       const Tensor& losses) override;
    void adamw(const AdamW& settings, const Tensor& gradient, const Tensor& parameters, const Tensor& first_moment,
               const Tensor& second_moment) override;
    void sum_of_squares(const Tensor& x, const Tensor& result) override;
    void add(const Tensor& x, const Tensor& y) override;
    void scale(const Tensor& x, double factor) override;
    void fill(const Tensor& x, double value) override;
    void copy(const Tensor& from, const Tensor& to) override;
    void transpose(const Tensor& from, const Tensor& to) override;

  private:
    using RotaryKey = std::tuple<std::int64_t, std::int64_t, double>;  // sequence, head_dim, base
    const float* rotary_turns(std::int64_t sequence, std::int64_t head_dim, double base);
    Buffer scratch(std::int64_t bytes) { return device_.allocate(scenarios::Bytes(bytes)); }

    Device& device_;
    OperationChecks checks_;
    cuda::Stream stream_;
    MatrixProducts& products_;
    std::map<RotaryKey, Buffer> turns_;
};

}  // namespace headway::backend
