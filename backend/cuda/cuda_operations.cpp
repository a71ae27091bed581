#include "backend/cuda/cuda_operations.h"

#include <cmath>
#include <stdexcept>
#include <vector>

#include "backend/cuda/kernels/kernels.h"

// Scratch memory goes back to the pool when a call returns, while its kernels may still run: the next to get it issues
// on the same stream, after them.
namespace headway::backend {

CudaOperations::CudaOperations(Device& device, DataType working_type, cuda::Stream stream, MatrixProducts& products)
    : device_(device), checks_{working_type, DataType::kFloat32}, stream_(stream), products_(products) {
    if (working_type != DataType::kBfloat16 && working_type != DataType::kFloat32) {
        throw std::invalid_argument("CUDA devices work in bfloat16 or float32");
    }
}

void CudaOperations::gemm(Transpose ta, Transpose tb, double alpha, const Tensor& a, const Tensor& b, double beta,
                          const Tensor& c) {
    checks_.gemm(ta, tb, a, b, c);
    if (c.empty()) return;
    if (!a.empty()) return products_.product(ta, tb, alpha, a, b, beta, c);
    if (beta == 0.0) return cuda::fill(stream_, c, 0.0);
    cuda::scale(stream_, c, beta);
}

void CudaOperations::add_bias(const Tensor& x, const Tensor& bias) {
    checks_.add_bias(x, bias);
    cuda::add_bias(stream_, x, bias);
}

void CudaOperations::bias_gradient(const Tensor& dy, const Tensor& dbias) {
    checks_.bias_gradient(dy, dbias);
    const Buffer strips = scratch(cuda::column_strips_bytes(dy.rows, dy.columns, 1));
    cuda::bias_gradient(stream_, dy, dbias, strips.data());
}

void CudaOperations::layer_norm(const Tensor& x, const Tensor& gamma, const Tensor& beta, double epsilon,
                                const Tensor& y, const Tensor& mean, const Tensor& rstd) {
    checks_.layer_norm(x, gamma, beta, y, mean, rstd);
    cuda::normalize(stream_, x, gamma, &beta, epsilon, y, &mean, rstd);
}

void CudaOperations::layer_norm_gradient(const Tensor& dy, const Tensor& x, const Tensor& gamma, const Tensor& mean,
                                         const Tensor& rstd, const Tensor& dx, const Tensor& dgamma,
                                         const Tensor& dbeta) {
    checks_.layer_norm_gradient(dy, x, gamma, mean, rstd, dx, dgamma, dbeta);
    const Buffer strips = scratch(cuda::column_strips_bytes(x.rows, x.columns, 2));
    cuda::normalize_gradient(stream_, dy, x, gamma, &mean, rstd, dx, dgamma, &dbeta, strips.data());
}

void CudaOperations::rms_norm(const Tensor& x, const Tensor& gamma, double epsilon, const Tensor& y,
                              const Tensor& rstd) {
    checks_.rms_norm(x, gamma, y, rstd);
    cuda::normalize(stream_, x, gamma, nullptr, epsilon, y, nullptr, rstd);
}

void CudaOperations::rms_norm_gradient(const Tensor& dy, const Tensor& x, const Tensor& gamma, const Tensor& rstd,
                                       const Tensor& dx, const Tensor& dgamma) {
    checks_.rms_norm_gradient(dy, x, gamma, rstd, dx, dgamma);
    const Buffer strips = scratch(cuda::column_strips_bytes(x.rows, x.columns, 1));
    cuda::normalize_gradient(stream_, dy, x, gamma, nullptr, rstd, dx, dgamma, nullptr, strips.data());
}

/// Angles of a few thousand radians keep no digits in float: cosines and sines are made in double, once, on the host.
const float* CudaOperations::rotary_turns(std::int64_t sequence, std::int64_t head_dim, double base) {
    Buffer& buffer = turns_[{sequence, head_dim, base}];
    if (buffer.data() == nullptr) {
        std::vector<float> turns;
        turns.reserve(static_cast<std::size_t>(sequence * head_dim));
        for (std::int64_t position = 0; position < sequence; ++position) {
            for (std::int64_t i = 0; i < head_dim / 2; ++i) {
                const double exponent = -2.0 * static_cast<double>(i) / static_cast<double>(head_dim);
                const double angle = static_cast<double>(position) * std::pow(base, exponent);
                turns.push_back(static_cast<float>(std::cos(angle)));
                turns.push_back(static_cast<float>(std::sin(angle)));
            }
        }
        Buffer made = device_.allocate(DataType::kFloat32, sequence * head_dim);
        device_.from_host(turns.data(), made.tensor(DataType::kFloat32, sequence, head_dim));
        buffer = std::move(made);
    }
    return static_cast<const float*>(buffer.data());
}

void CudaOperations::rotary(const Tensor& x, std::int64_t sequence, std::int64_t head_dim, double base, bool inverse) {
    checks_.rotary(x, sequence, head_dim);
    if (x.empty()) return;
    cuda::rotary(stream_, x, sequence, head_dim, rotary_turns(sequence, head_dim, base), inverse);
}

namespace {

void require_known_head(const char* operation, const AttentionShape& shape) {
    if (shape.head_dim <= cuda::kMostHeadDim) return;
    throw std::invalid_argument(std::string(operation) + ": head_dim " + std::to_string(shape.head_dim) +
                                " is more than " + std::to_string(cuda::kMostHeadDim));
}

}  // namespace

void CudaOperations::attention(const AttentionShape& shape, const Tensor& q, const Tensor& k, const Tensor& v,
                               const Tensor& out, const Tensor& log_sums) {
    checks_.attention(shape, q, k, v, out, log_sums);
    require_known_head("attention", shape);
    const cuda::AttentionTensors tensors{q, k, v, out, log_sums};
    if (cuda::tiles_fit(shape, tensors)) {
        cuda::tile_attention(stream_, shape, tensors);
    } else {
        cuda::row_attention(stream_, shape, tensors);
    }
}

void CudaOperations::attention_gradient(const AttentionShape& shape, const Tensor& dout, const Tensor& q,
                                        const Tensor& k, const Tensor& v, const Tensor& out, const Tensor& log_sums,
                                        const Tensor& dq, const Tensor& dk, const Tensor& dv) {
    checks_.attention_gradient(shape, dout, q, k, v, out, log_sums, dq, dk, dv);
    require_known_head("attention_gradient", shape);
    const Buffer products = device_.allocate(DataType::kFloat32, shape.batch * shape.heads * shape.sequence);
    const cuda::AttentionTensors tensors{q, k, v, out, log_sums};
    const cuda::AttentionGradients gradients{dout, dq, dk, dv, static_cast<float*>(products.data())};
    if (cuda::tiles_fit(shape, tensors, gradients)) {
        cuda::tile_attention_gradient(stream_, shape, tensors, gradients);
    } else {
        cuda::row_attention_gradient(stream_, shape, tensors, gradients);
    }
}

void CudaOperations::gelu(const Tensor& x, const Tensor& y) {
    checks_.gelu(x, y);
    cuda::gelu(stream_, x, y);
}
void CudaOperations::gelu_gradient(const Tensor& x, const Tensor& dy, const Tensor& dx) {
    checks_.gelu_gradient(x, dy, dx);
    cuda::gelu_gradient(stream_, x, dy, dx);
}
void CudaOperations::swiglu(const Tensor& gate, const Tensor& up, const Tensor& y) {
    checks_.swiglu(gate, up, y);
    cuda::swiglu(stream_, gate, up, y);
}
void CudaOperations::swiglu_gradient(const Tensor& gate, const Tensor& up, const Tensor& dy, const Tensor& dgate,
                                     const Tensor& dup) {
    checks_.swiglu_gradient(gate, up, dy, dgate, dup);
    cuda::swiglu_gradient(stream_, gate, up, dy, dgate, dup);
}

void CudaOperations::embedding(const Tensor& tokens, const Tensor& table, std::int64_t first_row, const Tensor& out) {
    checks_.embedding(tokens, table, out);
    cuda::embedding(stream_, tokens, table, first_row, out);
}
void CudaOperations::embedding_gradient(const Tensor& tokens, const Tensor& dout, std::int64_t first_row,
                                        const Tensor& dtable) {
    checks_.embedding_gradient(tokens, dout, dtable);
    cuda::embedding_gradient(stream_, tokens, dout, first_row, dtable);
}
void CudaOperations::add_positions(const Tensor& table, std::int64_t sequence, std::int64_t first_token,
                                   const Tensor& x) {
    checks_.add_positions(table, sequence, first_token, x);
    cuda::add_positions(stream_, table, sequence, first_token, x);
}
void CudaOperations::positions_gradient(const Tensor& dx, std::int64_t sequence, std::int64_t first_token,
                                        const Tensor& dtable) {
    checks_.positions_gradient(dx, sequence, first_token, dtable);
    cuda::positions_gradient(stream_, dx, sequence, first_token, dtable);
}

void CudaOperations::row_maxima(const Tensor& logits, const Tensor& maxima) {
    checks_.row_maxima(logits, maxima);
    cuda::row_maxima(stream_, logits, maxima);
}
void CudaOperations::exponential_sums(const Tensor& logits, const Tensor& maxima, const Tensor& targets,
                                      std::int64_t first_column, const Tensor& sums, const Tensor& target_logits) {
    checks_.exponential_sums(logits, maxima, targets, sums, target_logits);
    cuda::exponential_sums(stream_, logits, maxima, targets, first_column, sums, target_logits);
}
void CudaOperations::cross_entropy(const Tensor& logits, const Tensor& maxima, const Tensor& sums,
                                   const Tensor& targets, const Tensor& target_logits, std::int64_t first_column,
                                   double scale, const Tensor& losses) {
    checks_.cross_entropy(logits, maxima, sums, targets, target_logits, losses);
    cuda::cross_entropy(stream_, logits, maxima, sums, targets, target_logits, first_column, scale, losses);
}

void CudaOperations::adamw(const AdamW& settings, const Tensor& gradient, const Tensor& parameters,
                           const Tensor& first_moment, const Tensor& second_moment) {
    checks_.adamw(settings, gradient, parameters, first_moment, second_moment);
    cuda::adamw(stream_, settings, gradient, parameters, first_moment, second_moment);
}
void CudaOperations::sum_of_squares(const Tensor& x, const Tensor& result) {
    checks_.sum_of_squares(x, result);
    const Buffer parts = scratch(cuda::square_parts_bytes());
    cuda::sum_of_squares(stream_, x, result, parts.data());
}

void CudaOperations::add(const Tensor& x, const Tensor& y) {
    checks_.add(x, y);
    cuda::add(stream_, x, y);
}
void CudaOperations::scale(const Tensor& x, double factor) {
    checks_.scale(x);
    cuda::scale(stream_, x, factor);
}
void CudaOperations::fill(const Tensor& x, double value) {
    checks_.fill(x);
    cuda::fill(stream_, x, value);
}
void CudaOperations::copy(const Tensor& from, const Tensor& to) {
    checks_.copy(from, to);
    cuda::copy(stream_, from, to);
}
void CudaOperations::transpose(const Tensor& from, const Tensor& to) {
    checks_.transpose(from, to);
    cuda::transpose(stream_, from, to);
}

}  // namespace headway::backend
