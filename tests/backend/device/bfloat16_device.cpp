#include "tests/backend/device/bfloat16_device.h"

#include <cstdint>
#include <vector>

#include "backend/device/operation_checks.h"
#include "backend/host/host_device.h"

namespace headway::tests {

namespace {

using backend::AdamW;
using backend::AttentionShape;
using backend::Buffer;
using backend::DataType;
using backend::Mark;
using backend::OperationChecks;
using backend::Operations;
using backend::Tensor;
using backend::Transpose;
using scenarios::Bytes;

/// A float32 tensor that stands for one of bfloat16 during an operation: read before, or written back after it. Of
/// other types it is the tensor itself.
class Widened {
  public:
    enum class Use : std::uint8_t { kRead, kWrite };

    Widened(const Tensor& tensor, Use use = Use::kRead) : original_(tensor), wide_(tensor), use_(use) {
        if (tensor.type != DataType::kBfloat16) return;
        values_.resize(static_cast<std::size_t>(tensor.count()) + 1);  // has memory even where it is empty
        wide_ = {values_.data(), DataType::kFloat32, tensor.rows, tensor.columns, tensor.columns};
        over_elements([](Bfloat16& narrow, float& wide) { wide = narrow; });
    }
    ~Widened() {
        if (original_.type == DataType::kBfloat16 && use_ == Use::kWrite)
            over_elements([](Bfloat16& narrow, float& wide) { narrow = wide; });
    }
    Widened(const Widened&) = delete;
    Widened& operator=(const Widened&) = delete;

    operator const Tensor&() const { return wide_; }

  private:
    template <typename Body>
    void over_elements(Body body) {
        for (std::int64_t r = 0; r < original_.rows; ++r)
            for (std::int64_t c = 0; c < original_.columns; ++c)
                body(static_cast<Bfloat16*>(original_.data)[r * original_.stride + c],
                     values_[static_cast<std::size_t>(r * original_.columns + c)]);
    }

    Tensor original_, wide_;
    Use use_;
    std::vector<float> values_;
};

/// Written by the operation; what it held before is there to add to.
struct Written : Widened {
    explicit Written(const Tensor& tensor) : Widened(tensor, Use::kWrite) {}
};

class Bfloat16Operations final : public Operations {
  public:
    explicit Bfloat16Operations(Operations& wide) : wide_(wide) {}

    void gemm(Transpose ta, Transpose tb, double alpha, const Tensor& a, const Tensor& b, double beta,
              const Tensor& c) override {
        checks_.gemm(ta, tb, a, b, c);
        wide_.gemm(ta, tb, alpha, Widened(a), Widened(b), beta, Written(c));
    }
    void add_bias(const Tensor& x, const Tensor& bias) override {
        checks_.add_bias(x, bias);
        wide_.add_bias(Written(x), Widened(bias));
    }
    void bias_gradient(const Tensor& dy, const Tensor& dbias) override {
        checks_.bias_gradient(dy, dbias);
        wide_.bias_gradient(Widened(dy), dbias);
    }
    void layer_norm(const Tensor& x, const Tensor& gamma, const Tensor& beta, double epsilon, const Tensor& y,
                    const Tensor& mean, const Tensor& rstd) override {
        checks_.layer_norm(x, gamma, beta, y, mean, rstd);
        wide_.layer_norm(Widened(x), Widened(gamma), Widened(beta), epsilon, Written(y), mean, rstd);
    }
    void layer_norm_gradient(const Tensor& dy, const Tensor& x, const Tensor& gamma, const Tensor& mean,
                             const Tensor& rstd, const Tensor& dx, const Tensor& dgamma, const Tensor& dbeta) override {
        checks_.layer_norm_gradient(dy, x, gamma, mean, rstd, dx, dgamma, dbeta);
        wide_.layer_norm_gradient(Widened(dy), Widened(x), Widened(gamma), mean, rstd, Written(dx), dgamma, dbeta);
    }
    void rms_norm(const Tensor& x, const Tensor& gamma, double epsilon, const Tensor& y, const Tensor& rstd) override {
        checks_.rms_norm(x, gamma, y, rstd);
        wide_.rms_norm(Widened(x), Widened(gamma), epsilon, Written(y), rstd);
    }
    void rms_norm_gradient(const Tensor& dy, const Tensor& x, const Tensor& gamma, const Tensor& rstd, const Tensor& dx,
                           const Tensor& dgamma) override {
        checks_.rms_norm_gradient(dy, x, gamma, rstd, dx, dgamma);
        wide_.rms_norm_gradient(Widened(dy), Widened(x), Widened(gamma), rstd, Written(dx), dgamma);
    }
    void rotary(const Tensor& x, std::int64_t sequence, std::int64_t head_dim, double base, bool inverse) override {
        checks_.rotary(x, sequence, head_dim);
        wide_.rotary(Written(x), sequence, head_dim, base, inverse);
    }
    void attention(const AttentionShape& shape, const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& out,
                   const Tensor& log_sums) override {
        checks_.attention(shape, q, k, v, out, log_sums);
        wide_.attention(shape, Widened(q), Widened(k), Widened(v), Written(out), log_sums);
    }
    void attention_gradient(const AttentionShape& shape, const Tensor& dout, const Tensor& q, const Tensor& k,
                            const Tensor& v, const Tensor& out, const Tensor& log_sums, const Tensor& dq,
                            const Tensor& dk, const Tensor& dv) override {
        checks_.attention_gradient(shape, dout, q, k, v, out, log_sums, dq, dk, dv);
        wide_.attention_gradient(shape, Widened(dout), Widened(q), Widened(k), Widened(v), Widened(out), log_sums,
                                 Written(dq), Written(dk), Written(dv));
    }
    void gelu(const Tensor& x, const Tensor& y) override {
        checks_.gelu(x, y);
        wide_.gelu(Widened(x), Written(y));
    }
    void gelu_gradient(const Tensor& x, const Tensor& dy, const Tensor& dx) override {
        checks_.gelu_gradient(x, dy, dx);
        wide_.gelu_gradient(Widened(x), Widened(dy), Written(dx));
    }
    void swiglu(const Tensor& gate, const Tensor& up, const Tensor& y) override {
        checks_.swiglu(gate, up, y);
        wide_.swiglu(Widened(gate), Widened(up), Written(y));
    }
    void swiglu_gradient(const Tensor& gate, const Tensor& up, const Tensor& dy, const Tensor& dgate,
                         const Tensor& dup) override {
        checks_.swiglu_gradient(gate, up, dy, dgate, dup);
        wide_.swiglu_gradient(Widened(gate), Widened(up), Widened(dy), Written(dgate), Written(dup));
    }
    void embedding(const Tensor& tokens, const Tensor& table, std::int64_t first_row, const Tensor& out) override {
        checks_.embedding(tokens, table, out);
        wide_.embedding(tokens, Widened(table), first_row, Written(out));
    }
    void embedding_gradient(const Tensor& tokens, const Tensor& dout, std::int64_t first_row,
                            const Tensor& dtable) override {
        checks_.embedding_gradient(tokens, dout, dtable);
        wide_.embedding_gradient(tokens, Widened(dout), first_row, dtable);
    }
    void add_positions(const Tensor& table, std::int64_t sequence, std::int64_t first_token, const Tensor& x) override {
        checks_.add_positions(table, sequence, first_token, x);
        wide_.add_positions(Widened(table), sequence, first_token, Written(x));
    }
    void positions_gradient(const Tensor& dx, std::int64_t sequence, std::int64_t first_token,
                            const Tensor& dtable) override {
        checks_.positions_gradient(dx, sequence, first_token, dtable);
        wide_.positions_gradient(Widened(dx), sequence, first_token, dtable);
    }
    void row_maxima(const Tensor& logits, const Tensor& maxima) override {
        checks_.row_maxima(logits, maxima);
        wide_.row_maxima(Widened(logits), maxima);
    }
    void exponential_sums(const Tensor& logits, const Tensor& maxima, const Tensor& targets, std::int64_t first_column,
                          const Tensor& sums, const Tensor& target_logits) override {
        checks_.exponential_sums(logits, maxima, targets, sums, target_logits);
        wide_.exponential_sums(Widened(logits), maxima, targets, first_column, sums, target_logits);
    }
    void cross_entropy(const Tensor& logits, const Tensor& maxima, const Tensor& sums, const Tensor& targets,
                       const Tensor& target_logits, std::int64_t first_column, double scale,
                       const Tensor& losses) override {
        checks_.cross_entropy(logits, maxima, sums, targets, target_logits, losses);
        wide_.cross_entropy(Written(logits), maxima, sums, targets, target_logits, first_column, scale, losses);
    }
    void adamw(const AdamW& settings, const Tensor& gradient, const Tensor& parameters, const Tensor& first_moment,
               const Tensor& second_moment) override {
        checks_.adamw(settings, gradient, parameters, first_moment, second_moment);
        wide_.adamw(settings, gradient, parameters, first_moment, second_moment);
    }
    void sum_of_squares(const Tensor& x, const Tensor& result) override {
        checks_.sum_of_squares(x, result);
        wide_.sum_of_squares(Widened(x), result);
    }
    void add(const Tensor& x, const Tensor& y) override {
        checks_.add(x, y);
        wide_.add(Widened(x), Written(y));
    }
    void scale(const Tensor& x, double factor) override {
        checks_.scale(x);
        wide_.scale(Written(x), factor);
    }
    void fill(const Tensor& x, double value) override {
        checks_.fill(x);
        wide_.fill(Written(x), value);
    }
    void copy(const Tensor& from, const Tensor& to) override {
        checks_.copy(from, to);
        wide_.copy(Widened(from), Written(to));
    }
    void transpose(const Tensor& from, const Tensor& to) override {
        checks_.transpose(from, to);
        wide_.transpose(Widened(from), Written(to));
    }

  private:
    OperationChecks checks_{DataType::kBfloat16, DataType::kFloat32};
    Operations& wide_;
};

class Bfloat16Device final : public backend::Device {
  public:
    std::string name() const override { return "bfloat16 on the host"; }
    DataType working_type() const override { return DataType::kBfloat16; }
    Operations& operations() override { return operations_; }
    Buffer allocate(Bytes bytes) override { return host_->allocate(bytes); }
    Bytes memory_used() const override { return host_->memory_used(); }
    Bytes memory_total() const override { return host_->memory_total(); }
    void to_host(const Tensor& from, void* to) override { host_->to_host(from, to); }
    void from_host(const void* from, const Tensor& to) override { host_->from_host(from, to); }
    void synchronize() override { host_->synchronize(); }
    Mark mark() override { return host_->mark(); }
    scenarios::Duration time_of(const Mark& mark) override { return host_->time_of(mark); }
    void forget_marks() override { host_->forget_marks(); }

  private:
    std::unique_ptr<backend::Device> host_ = backend::make_host_device();
    Bfloat16Operations operations_{host_->operations()};
};

}  // namespace

std::unique_ptr<backend::Device> make_bfloat16_device() {
    return std::make_unique<Bfloat16Device>();
}

}  // namespace headway::tests
