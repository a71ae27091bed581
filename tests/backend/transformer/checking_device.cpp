#include "tests/backend/transformer/checking_device.h"

#include <cstring>
#include <stdexcept>
#include <vector>

#include "backend/device/operation_checks.h"

namespace headway::backend {

class CheckingDevice::Pool {
  public:
    ~Pool() {
        for (auto& [size, blocks] : kept_)
            for (void* block : blocks) ::operator delete(block);
    }
    void* take(std::int64_t bytes) {
        std::vector<void*>& blocks = kept_[bytes];
        if (blocks.empty()) {
            ++fresh;
            blocks.push_back(::operator new(static_cast<std::size_t>(bytes)));
        }
        void* const block = blocks.back();
        blocks.pop_back();
        used += bytes;
        return block;
    }
    void give_back(void* block, std::int64_t bytes) {
        kept_[bytes].push_back(block);
        used -= bytes;
    }
    int fresh = 0;
    std::int64_t used = 0;

  private:
    std::map<std::int64_t, std::vector<void*>> kept_;  ///< by size
};

#define HEADWAY_CHECK(operation, ...)   \
    {                                   \
        ++counts[#operation];           \
        checks_.operation(__VA_ARGS__); \
    }

class CheckingDevice::Calls : public Operations {
  public:
    std::map<std::string, int> counts;

    void gemm(Transpose ta, Transpose tb, double, const Tensor& a, const Tensor& b, double, const Tensor& c) override
        HEADWAY_CHECK(gemm, ta, tb, a, b, c) void add_bias(const Tensor& x, const Tensor& bias) override
        HEADWAY_CHECK(add_bias, x, bias) void bias_gradient(const Tensor& dy, const Tensor& dbias) override
        HEADWAY_CHECK(bias_gradient, dy, dbias) void layer_norm(const Tensor& x, const Tensor& gamma,
                                                                const Tensor& beta, double, const Tensor& y,
                                                                const Tensor& mean, const Tensor& rstd) override
        HEADWAY_CHECK(layer_norm, x, gamma, beta, y, mean,
                      rstd) void layer_norm_gradient(const Tensor& dy, const Tensor& x, const Tensor& gamma,
                                                     const Tensor& mean, const Tensor& rstd, const Tensor& dx,
                                                     const Tensor& dgamma, const Tensor& dbeta) override
        HEADWAY_CHECK(layer_norm_gradient, dy, x, gamma, mean, rstd, dx, dgamma,
                      dbeta) void rms_norm(const Tensor& x, const Tensor& gamma, double, const Tensor& y,
                                           const Tensor& rstd) override
        HEADWAY_CHECK(rms_norm, x, gamma, y,
                      rstd) void rms_norm_gradient(const Tensor& dy, const Tensor& x, const Tensor& gamma,
                                                   const Tensor& rstd, const Tensor& dx, const Tensor& dgamma) override
        HEADWAY_CHECK(rms_norm_gradient, dy, x, gamma, rstd, dx,
                      dgamma) void rotary(const Tensor& x, std::int64_t sequence, std::int64_t head_dim, double,
                                          bool) override
        HEADWAY_CHECK(rotary, x, sequence, head_dim) void attention(const AttentionShape& shape, const Tensor& q,
                                                                    const Tensor& k, const Tensor& v, const Tensor& out,
                                                                    const Tensor& log_sums) override
        HEADWAY_CHECK(attention, shape, q, k, v, out,
                      log_sums) void attention_gradient(const AttentionShape& shape, const Tensor& dout,
                                                        const Tensor& q, const Tensor& k, const Tensor& v,
                                                        const Tensor& out, const Tensor& log_sums, const Tensor& dq,
                                                        const Tensor& dk, const Tensor& dv) override
        HEADWAY_CHECK(attention_gradient, shape, dout, q, k, v, out, log_sums, dq, dk,
                      dv) void gelu(const Tensor& x, const Tensor& y) override
        HEADWAY_CHECK(gelu, x, y) void gelu_gradient(const Tensor& x, const Tensor& dy, const Tensor& dx) override
        HEADWAY_CHECK(gelu_gradient, x, dy, dx) void swiglu(const Tensor& gate, const Tensor& up,
                                                            const Tensor& y) override
        HEADWAY_CHECK(swiglu, gate, up, y) void swiglu_gradient(const Tensor& gate, const Tensor& up, const Tensor& dy,
                                                                const Tensor& dgate, const Tensor& dup) override
        HEADWAY_CHECK(swiglu_gradient, gate, up, dy, dgate, dup) void embedding(const Tensor& tokens,
                                                                                const Tensor& table, std::int64_t,
                                                                                const Tensor& out) override
        HEADWAY_CHECK(embedding, tokens, table, out) void embedding_gradient(const Tensor& tokens, const Tensor& dout,
                                                                             std::int64_t,
                                                                             const Tensor& dtable) override
        HEADWAY_CHECK(embedding_gradient, tokens, dout,
                      dtable) void add_positions(const Tensor& table, std::int64_t sequence, std::int64_t first,
                                                 const Tensor& x) override
        HEADWAY_CHECK(add_positions, table, sequence, first,
                      x) void positions_gradient(const Tensor& dx, std::int64_t sequence, std::int64_t first,
                                                 const Tensor& dtable) override
        HEADWAY_CHECK(positions_gradient, dx, sequence, first, dtable) void row_maxima(const Tensor& logits,
                                                                                       const Tensor& maxima) override
        HEADWAY_CHECK(row_maxima, logits, maxima) void exponential_sums(const Tensor& logits, const Tensor& maxima,
                                                                        const Tensor& targets, std::int64_t,
                                                                        const Tensor& sums,
                                                                        const Tensor& target_logits) override
        HEADWAY_CHECK(exponential_sums, logits, maxima, targets, sums,
                      target_logits) void cross_entropy(const Tensor& logits, const Tensor& maxima, const Tensor& sums,
                                                        const Tensor& targets, const Tensor& target_logits,
                                                        std::int64_t, double, const Tensor& losses) override
        HEADWAY_CHECK(cross_entropy, logits, maxima, sums, targets, target_logits,
                      losses) void adamw(const AdamW& settings, const Tensor& gradient, const Tensor& parameters,
                                         const Tensor& first_moment, const Tensor& second_moment) override
        HEADWAY_CHECK(adamw, settings, gradient, parameters, first_moment,
                      second_moment) void sum_of_squares(const Tensor& x, const Tensor& result) override
        HEADWAY_CHECK(sum_of_squares, x, result) void add(const Tensor& x, const Tensor& y) override
        HEADWAY_CHECK(add, x, y) void scale(const Tensor& x, double) override
        HEADWAY_CHECK(scale, x) void fill(const Tensor& x, double) override
        HEADWAY_CHECK(fill, x) void copy(const Tensor& from, const Tensor& to) override
        HEADWAY_CHECK(copy, from, to) void transpose(const Tensor& from, const Tensor& to) override
        HEADWAY_CHECK(transpose, from, to)

            private : const OperationChecks checks_{DataType::kBfloat16, DataType::kFloat32};
};

#undef HEADWAY_CHECK

CheckingDevice::CheckingDevice() : calls_(std::make_unique<Calls>()), pool_(std::make_unique<Pool>()) {}
CheckingDevice::~CheckingDevice() = default;

const std::map<std::string, int>& CheckingDevice::calls() const {
    return calls_->counts;
}
int CheckingDevice::fresh_allocations() const {
    return pool_->fresh;
}
Operations& CheckingDevice::operations() {
    return *calls_;
}
Buffer CheckingDevice::allocate(scenarios::Bytes bytes) {
    const std::int64_t count = bytes.count();
    return {pool_->take(count), count, [pool = pool_.get(), count](void* block) { pool->give_back(block, count); }};
}
scenarios::Bytes CheckingDevice::memory_used() const {
    return scenarios::Bytes(pool_->used);
}
void CheckingDevice::to_host(const Tensor& from, void* to) {
    std::memset(to, 0, static_cast<std::size_t>(from.bytes()));
}

namespace {

class CheckingCommunicator : public Communicator {
  public:
    CheckingCommunicator(int rank, int size) : rank_(rank), size_(size) {}
    int rank() const override { return rank_; }
    int size() const override { return size_; }
    const std::string& name() const override { return name_; }
    std::unique_ptr<Work> all_reduce(const Tensor& tensor, ReduceOperation) override {
        return checked(tensor, tensor, 1);
    }
    std::unique_ptr<Work> reduce_scatter(const Tensor& from, const Tensor& to) override {
        return checked(from, to, size_);
    }
    std::unique_ptr<Work> all_gather(const Tensor& from, const Tensor& to) override { return checked(to, from, size_); }
    std::unique_ptr<Work> broadcast(const Tensor& tensor, int) override { return checked(tensor, tensor, 1); }
    std::unique_ptr<Work> exchange(std::span<const Message>) override { throw std::logic_error("not of a chunk"); }
    void abort(const std::string&) override {}

  private:
    class Done : public Work {
      public:
        void wait() override {}
        bool done() override { return true; }
    };
    std::unique_ptr<Work> checked(const Tensor& whole, const Tensor& part, int parts) const {
        if (whole.empty() || !whole.contiguous() || !part.contiguous() || whole.type != part.type ||
            whole.count() != part.count() * parts)
            throw std::invalid_argument("a collective of tensors that do not fit");
        return std::make_unique<Done>();
    }
    int rank_;
    int size_;
    std::string name_ = "checking";
};

}  // namespace

std::unique_ptr<Communicator> make_checking_communicator(int rank, int size) {
    return std::make_unique<CheckingCommunicator>(rank, size);
}

}  // namespace headway::backend
