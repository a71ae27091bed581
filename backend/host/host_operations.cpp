#include "backend/host/host_operations.h"

#include <cmath>
#include <stdexcept>

#include "backend/host/kernels/attention.h"
#include "backend/host/kernels/elementwise.h"
#include "backend/host/kernels/matrix_product.h"
#include "backend/host/kernels/normalization.h"
#include "backend/host/kernels/optimizer.h"
#include "backend/host/kernels/vocabulary.h"

namespace headway::backend {

namespace {

template <typename Real>
host::Matrix<const Real> input(const Tensor& tensor) {
    return {static_cast<const Real*>(tensor.data), tensor.rows, tensor.columns, tensor.stride};
}
template <typename Real>
host::Matrix<Real> output(const Tensor& tensor) {
    return {static_cast<Real*>(tensor.data), tensor.rows, tensor.columns, tensor.stride};
}
template <typename Real>
Real* values(const Tensor& tensor) {
    return static_cast<Real*>(tensor.data);
}
const std::int32_t* token_values(const Tensor& tensor) {
    return static_cast<const std::int32_t*>(tensor.data);
}

template <typename Real>
host::AttentionTask<Real> task_of(const AttentionShape& shape, const Tensor& q, const Tensor& k, const Tensor& v) {
    return {shape.batch,    shape.sequence, shape.heads,    shape.kv_heads,
            shape.head_dim, input<Real>(q), input<Real>(k), input<Real>(v)};
}

template <typename From>
void copy_from(const Tensor& from, const Tensor& to) {
    if (to.type == DataType::kFloat64) return host::copy(input<From>(from), output<double>(to));
    if (to.type == DataType::kFloat32) return host::copy(input<From>(from), output<float>(to));
    throw std::invalid_argument("copy: the host has no bfloat16");
}

}  // namespace

template <typename Real>
void HostOperations<Real>::gemm(Transpose ta, Transpose tb, double alpha, const Tensor& a, const Tensor& b, double beta,
                                const Tensor& c) {
    checks_.gemm(ta, tb, a, b, c);
    host::matrix_product<Real>(ta == Transpose::kYes, tb == Transpose::kYes, static_cast<Real>(alpha), input<Real>(a),
                               input<Real>(b), static_cast<Real>(beta), output<Real>(c));
}

template <typename Real>
void HostOperations<Real>::add_bias(const Tensor& x, const Tensor& bias) {
    checks_.add_bias(x, bias);
    host::add_bias(output<Real>(x), values<const Real>(bias));
}

template <typename Real>
void HostOperations<Real>::bias_gradient(const Tensor& dy, const Tensor& dbias) {
    checks_.bias_gradient(dy, dbias);
    host::bias_gradient(input<Real>(dy), values<Real>(dbias));
}

template <typename Real>
void HostOperations<Real>::layer_norm(const Tensor& x, const Tensor& gamma, const Tensor& beta, double epsilon,
                                      const Tensor& y, const Tensor& mean, const Tensor& rstd) {
    checks_.layer_norm(x, gamma, beta, y, mean, rstd);
    host::layer_norm(input<Real>(x), values<const Real>(gamma), values<const Real>(beta), epsilon, output<Real>(y),
                     values<Real>(mean), values<Real>(rstd));
}

template <typename Real>
void HostOperations<Real>::layer_norm_gradient(const Tensor& dy, const Tensor& x, const Tensor& gamma,
                                               const Tensor& mean, const Tensor& rstd, const Tensor& dx,
                                               const Tensor& dgamma, const Tensor& dbeta) {
    checks_.layer_norm_gradient(dy, x, gamma, mean, rstd, dx, dgamma, dbeta);
    host::layer_norm_gradient(input<Real>(dy), input<Real>(x), values<const Real>(gamma), values<const Real>(mean),
                              values<const Real>(rstd), output<Real>(dx), values<Real>(dgamma), values<Real>(dbeta));
}

template <typename Real>
void HostOperations<Real>::rms_norm(const Tensor& x, const Tensor& gamma, double epsilon, const Tensor& y,
                                    const Tensor& rstd) {
    checks_.rms_norm(x, gamma, y, rstd);
    host::rms_norm(input<Real>(x), values<const Real>(gamma), epsilon, output<Real>(y), values<Real>(rstd));
}

template <typename Real>
void HostOperations<Real>::rms_norm_gradient(const Tensor& dy, const Tensor& x, const Tensor& gamma, const Tensor& rstd,
                                             const Tensor& dx, const Tensor& dgamma) {
    checks_.rms_norm_gradient(dy, x, gamma, rstd, dx, dgamma);
    host::rms_norm_gradient(input<Real>(dy), input<Real>(x), values<const Real>(gamma), values<const Real>(rstd),
                            output<Real>(dx), values<Real>(dgamma));
}

template <typename Real>
void HostOperations<Real>::rotary(const Tensor& x, std::int64_t sequence, std::int64_t head_dim, double base,
                                  bool inverse) {
    checks_.rotary(x, sequence, head_dim);
    host::rotary(output<Real>(x), sequence, head_dim, base, inverse);
}

template <typename Real>
void HostOperations<Real>::attention(const AttentionShape& shape, const Tensor& q, const Tensor& k, const Tensor& v,
                                     const Tensor& out, const Tensor& log_sums) {
    checks_.attention(shape, q, k, v, out, log_sums);
    host::attention(task_of<Real>(shape, q, k, v), output<Real>(out), output<Real>(log_sums), scratch_);
}

template <typename Real>
void HostOperations<Real>::attention_gradient(const AttentionShape& shape, const Tensor& dout, const Tensor& q,
                                              const Tensor& k, const Tensor& v, const Tensor& out,
                                              const Tensor& log_sums, const Tensor& dq, const Tensor& dk,
                                              const Tensor& dv) {
    checks_.attention_gradient(shape, dout, q, k, v, out, log_sums, dq, dk, dv);
    host::attention_gradient(task_of<Real>(shape, q, k, v), input<Real>(dout), input<Real>(out), input<Real>(log_sums),
                             output<Real>(dq), output<Real>(dk), output<Real>(dv), scratch_);
}

template <typename Real>
void HostOperations<Real>::gelu(const Tensor& x, const Tensor& y) {
    checks_.gelu(x, y);
    host::gelu(input<Real>(x), output<Real>(y));
}

template <typename Real>
void HostOperations<Real>::gelu_gradient(const Tensor& x, const Tensor& dy, const Tensor& dx) {
    checks_.gelu_gradient(x, dy, dx);
    host::gelu_gradient(input<Real>(x), input<Real>(dy), output<Real>(dx));
}

template <typename Real>
void HostOperations<Real>::swiglu(const Tensor& gate, const Tensor& up, const Tensor& y) {
    checks_.swiglu(gate, up, y);
    host::swiglu(input<Real>(gate), input<Real>(up), output<Real>(y));
}

template <typename Real>
void HostOperations<Real>::swiglu_gradient(const Tensor& gate, const Tensor& up, const Tensor& dy, const Tensor& dgate,
                                           const Tensor& dup) {
    checks_.swiglu_gradient(gate, up, dy, dgate, dup);
    host::swiglu_gradient(input<Real>(gate), input<Real>(up), input<Real>(dy), output<Real>(dgate), output<Real>(dup));
}

template <typename Real>
void HostOperations<Real>::embedding(const Tensor& tokens, const Tensor& table, std::int64_t first_row,
                                     const Tensor& out) {
    checks_.embedding(tokens, table, out);
    host::embedding(token_values(tokens), input<Real>(table), first_row, output<Real>(out));
}

template <typename Real>
void HostOperations<Real>::embedding_gradient(const Tensor& tokens, const Tensor& dout, std::int64_t first_row,
                                              const Tensor& dtable) {
    checks_.embedding_gradient(tokens, dout, dtable);
    host::embedding_gradient(token_values(tokens), input<Real>(dout), first_row, output<Real>(dtable));
}

template <typename Real>
void HostOperations<Real>::add_positions(const Tensor& table, std::int64_t sequence, std::int64_t first_token,
                                         const Tensor& x) {
    checks_.add_positions(table, sequence, first_token, x);
    host::add_positions(input<Real>(table), sequence, first_token, output<Real>(x));
}

template <typename Real>
void HostOperations<Real>::positions_gradient(const Tensor& dx, std::int64_t sequence, std::int64_t first_token,
                                              const Tensor& dtable) {
    checks_.positions_gradient(dx, sequence, first_token, dtable);
    host::positions_gradient(input<Real>(dx), sequence, first_token, output<Real>(dtable));
}

template <typename Real>
void HostOperations<Real>::row_maxima(const Tensor& logits, const Tensor& maxima) {
    checks_.row_maxima(logits, maxima);
    host::row_maxima(input<Real>(logits), values<Real>(maxima));
}

template <typename Real>
void HostOperations<Real>::exponential_sums(const Tensor& logits, const Tensor& maxima, const Tensor& targets,
                                            std::int64_t first_column, const Tensor& sums,
                                            const Tensor& target_logits) {
    checks_.exponential_sums(logits, maxima, targets, sums, target_logits);
    host::exponential_sums(input<Real>(logits), values<const Real>(maxima), token_values(targets), first_column,
                           values<Real>(sums), values<Real>(target_logits));
}

template <typename Real>
void HostOperations<Real>::cross_entropy(const Tensor& logits, const Tensor& maxima, const Tensor& sums,
                                         const Tensor& targets, const Tensor& target_logits, std::int64_t first_column,
                                         double scale, const Tensor& losses) {
    checks_.cross_entropy(logits, maxima, sums, targets, target_logits, losses);
    host::cross_entropy(output<Real>(logits), values<const Real>(maxima), values<const Real>(sums),
                        token_values(targets), values<const Real>(target_logits), first_column, scale,
                        values<Real>(losses));
}

template <typename Real>
void HostOperations<Real>::adamw(const AdamW& settings, const Tensor& gradient, const Tensor& parameters,
                                 const Tensor& first_moment, const Tensor& second_moment) {
    checks_.adamw(settings, gradient, parameters, first_moment, second_moment);
    const double step = static_cast<double>(settings.step);
    host::AdamWFactors<Real> factors{};
    factors.beta1 = static_cast<Real>(settings.beta1);
    factors.beta2 = static_cast<Real>(settings.beta2);
    factors.fresh1 = static_cast<Real>(1.0 - settings.beta1);
    factors.fresh2 = static_cast<Real>(1.0 - settings.beta2);
    factors.gradient_scale = static_cast<Real>(settings.gradient_scale);
    factors.rate = static_cast<Real>(settings.learning_rate / (1.0 - std::pow(settings.beta1, step)));
    factors.root_scale = static_cast<Real>(1.0 / std::sqrt(1.0 - std::pow(settings.beta2, step)));
    factors.epsilon = static_cast<Real>(settings.epsilon);
    factors.decay = static_cast<Real>(1.0 - settings.learning_rate * settings.weight_decay);
    host::adamw(factors, values<const Real>(gradient), values<Real>(parameters), values<Real>(first_moment),
                values<Real>(second_moment), parameters.count());
}

template <typename Real>
void HostOperations<Real>::sum_of_squares(const Tensor& x, const Tensor& result) {
    checks_.sum_of_squares(x, result);
    *values<double>(result) += host::sum_of_squares(input<Real>(x));
}

template <typename Real>
void HostOperations<Real>::add(const Tensor& x, const Tensor& y) {
    checks_.add(x, y);
    host::add(input<Real>(x), output<Real>(y));
}

template <typename Real>
void HostOperations<Real>::scale(const Tensor& x, double factor) {
    checks_.scale(x);
    host::scale(output<Real>(x), static_cast<Real>(factor));
}

template <typename Real>
void HostOperations<Real>::fill(const Tensor& x, double value) {
    checks_.fill(x);
    if (x.type == DataType::kFloat64) return host::fill(output<double>(x), value);
    if (x.type == DataType::kFloat32) return host::fill(output<float>(x), static_cast<float>(value));
    host::fill(output<std::int32_t>(x), static_cast<std::int32_t>(value));
}

template <typename Real>
void HostOperations<Real>::copy(const Tensor& from, const Tensor& to) {
    checks_.copy(from, to);
    if (from.type == DataType::kInt32) return host::copy(input<std::int32_t>(from), output<std::int32_t>(to));
    if (from.type == DataType::kFloat64) return copy_from<double>(from, to);
    if (from.type == DataType::kFloat32) return copy_from<float>(from, to);
    throw std::invalid_argument("copy: the host has no bfloat16");
}

template <typename Real>
void HostOperations<Real>::transpose(const Tensor& from, const Tensor& to) {
    checks_.transpose(from, to);
    if (from.type == DataType::kFloat64) return host::transpose(input<double>(from), output<double>(to));
    if (from.type == DataType::kFloat32) return host::transpose(input<float>(from), output<float>(to));
    if (from.type == DataType::kInt32) return host::transpose(input<std::int32_t>(from), output<std::int32_t>(to));
    throw std::invalid_argument("transpose: the host has no bfloat16");
}

template class HostOperations<float>;
template class HostOperations<double>;

}  // namespace headway::backend
