#pragma once

#include <cstdint>

#include "backend/device/tensor.h"

/// The operations of a transformer, on one device.
///
/// Types. W is the device's working type (weights, activations and their gradients: float64, float32 or bfloat16), A
/// its accumulation type (float64 for float64, float32 otherwise: parameter gradients, optimizer state, statistics,
/// losses). Sums inside an operation run in A or wider. Tokens and targets are kInt32.
/// All operations are issued in order on the device's compute stream and may return before they are done. Tensors may
/// be strided unless said otherwise. Wrong types or shapes throw std::invalid_argument, a failed device BackendError.
/// "Adds to" means that the result is accumulated; otherwise it overwrites. What works element by element may work in
/// place: the result may be one of the operands (of gelu_gradient x, of swiglu_gradient gate and up).
namespace headway::backend {

enum class Transpose : std::uint8_t { kNo, kYes };

/// Causal self-attention of `batch` sequences. Token t of sequence b is row b * sequence + t of every tensor. Columns
/// of q and out: heads * head_dim; of k and v: kv_heads * head_dim; query head h reads key/value head h / (heads /
/// kv_heads) (Ainslie et al. 2023, grouped-query attention). Scores are scaled by 1/sqrt(head_dim).
struct AttentionShape {
    std::int64_t batch = 1;
    std::int64_t sequence = 1;
    std::int64_t heads = 1;
    std::int64_t kv_heads = 1;
    std::int64_t head_dim = 1;
};

/// AdamW (Loshchilov & Hutter 2019): decoupled weight decay, bias-corrected moments.
struct AdamW {
    double learning_rate = 0.0;
    double beta1 = 0.9;
    double beta2 = 0.95;
    double epsilon = 1e-8;
    double weight_decay = 0.0;
    double gradient_scale = 1.0;  ///< gradients are multiplied by it first (clipping)
    std::int64_t step = 1;        ///< of this update, counted from 1
};

class Operations {
  public:
    virtual ~Operations() = default;

    /// c = alpha op(a) op(b) + beta c. a and b are W; c is W or A. c is not read where beta is 0.
    virtual void gemm(Transpose ta, Transpose tb, double alpha, const Tensor& a, const Tensor& b, double beta,
                      const Tensor& c) = 0;
    /// Adds `bias` [1 x columns] (W) to each row of x (W).
    virtual void add_bias(const Tensor& x, const Tensor& bias) = 0;
    /// Adds the column sums of dy (W) to dbias [1 x columns] (A).
    virtual void bias_gradient(const Tensor& dy, const Tensor& dbias) = 0;

    /// y = (x - mean) rstd gamma + beta, per row (Ba et al. 2016). mean, rstd: [1 x rows] (A), kept for the gradient.
    virtual void layer_norm(const Tensor& x, const Tensor& gamma, const Tensor& beta, double epsilon, const Tensor& y,
                            const Tensor& mean, const Tensor& rstd) = 0;
    /// Adds to dx (W), dgamma and dbeta (A).
    virtual void layer_norm_gradient(const Tensor& dy, const Tensor& x, const Tensor& gamma, const Tensor& mean,
                                     const Tensor& rstd, const Tensor& dx, const Tensor& dgamma,
                                     const Tensor& dbeta) = 0;
    /// y = x rstd gamma with rstd = 1/sqrt(mean(x^2) + epsilon), per row (Zhang & Sennrich 2019).
    virtual void rms_norm(const Tensor& x, const Tensor& gamma, double epsilon, const Tensor& y,
                          const Tensor& rstd) = 0;
    /// Adds to dx (W) and dgamma (A).
    virtual void rms_norm_gradient(const Tensor& dy, const Tensor& x, const Tensor& gamma, const Tensor& rstd,
                                   const Tensor& dx, const Tensor& dgamma) = 0;

    /// Rotary embedding in place (Su et al. 2021; halves are paired as in Llama: element i with i + head_dim/2). Row r
    /// is at position r % sequence; columns are whole heads. `inverse` rotates back, which is also the gradient.
    virtual void rotary(const Tensor& x, std::int64_t sequence, std::int64_t head_dim, double base, bool inverse) = 0;
    /// `log_sums` [batch * heads x sequence] (A): log of the softmax's denominators, kept for the gradient.
    virtual void attention(const AttentionShape& shape, const Tensor& q, const Tensor& k, const Tensor& v,
                           const Tensor& out, const Tensor& log_sums) = 0;
    /// Overwrites dq, dk and dv.
    virtual void attention_gradient(const AttentionShape& shape, const Tensor& dout, const Tensor& q, const Tensor& k,
                                    const Tensor& v, const Tensor& out, const Tensor& log_sums, const Tensor& dq,
                                    const Tensor& dk, const Tensor& dv) = 0;

    /// GELU by tanh, as in GPT-2 (Hendrycks & Gimpel 2016).
    virtual void gelu(const Tensor& x, const Tensor& y) = 0;
    virtual void gelu_gradient(const Tensor& x, const Tensor& dy, const Tensor& dx) = 0;
    /// y = silu(gate) * up (Shazeer 2020).
    virtual void swiglu(const Tensor& gate, const Tensor& up, const Tensor& y) = 0;
    virtual void swiglu_gradient(const Tensor& gate, const Tensor& up, const Tensor& dy, const Tensor& dgate,
                                 const Tensor& dup) = 0;

    /// out [tokens x hidden] = row (token - first_row) of `table`; zero where this table does not have the token.
    virtual void embedding(const Tensor& tokens, const Tensor& table, std::int64_t first_row, const Tensor& out) = 0;
    /// Adds each row of dout to its token's row of dtable (A), in the order of the tokens.
    virtual void embedding_gradient(const Tensor& tokens, const Tensor& dout, std::int64_t first_row,
                                    const Tensor& dtable) = 0;
    /// Adds row ((first_token + r) % sequence) of `table` to row r of x.
    virtual void add_positions(const Tensor& table, std::int64_t sequence, std::int64_t first_token,
                               const Tensor& x) = 0;
    /// The other way round: adds row r of dx to that row of dtable (A).
    virtual void positions_gradient(const Tensor& dx, std::int64_t sequence, std::int64_t first_token,
                                    const Tensor& dtable) = 0;

    // Cross entropy over a vocabulary that several ranks share (Shoeybi et al. 2019): between the first two steps the
    // maxima, between the second and the third the sums and target logits are reduced over them.
    /// maxima [1 x rows] (A)
    virtual void row_maxima(const Tensor& logits, const Tensor& maxima) = 0;
    /// sums [1 x rows] (A): of exp(logit - maximum). target_logits [1 x rows] (A): logit of the target minus the
    /// maximum, where one of these columns is the target (column c is token first_column + c), else 0.
    virtual void exponential_sums(const Tensor& logits, const Tensor& maxima, const Tensor& targets,
                                  std::int64_t first_column, const Tensor& sums, const Tensor& target_logits) = 0;
    /// logits become scale * (softmax - one-hot of the target), in place. losses [1 x rows] (A) = log(sum) -
    /// target_logit.
    virtual void cross_entropy(const Tensor& logits, const Tensor& maxima, const Tensor& sums, const Tensor& targets,
                               const Tensor& target_logits, std::int64_t first_column, double scale,
                               const Tensor& losses) = 0;

    /// All A, contiguous, of one size.
    virtual void adamw(const AdamW& settings, const Tensor& gradient, const Tensor& parameters,
                       const Tensor& first_moment, const Tensor& second_moment) = 0;
    /// Adds the sum of the squares of x (W or A) to `result` [1] (kFloat64).
    virtual void sum_of_squares(const Tensor& x, const Tensor& result) = 0;

    /// y += x; each W or A.
    virtual void add(const Tensor& x, const Tensor& y) = 0;
    virtual void scale(const Tensor& x, double factor) = 0;
    virtual void fill(const Tensor& x, double value) = 0;
    /// Same shape; converts between types.
    virtual void copy(const Tensor& from, const Tensor& to) = 0;
    /// to [columns x rows] = transpose of from, same type.
    virtual void transpose(const Tensor& from, const Tensor& to) = 0;
};

}  // namespace headway::backend
