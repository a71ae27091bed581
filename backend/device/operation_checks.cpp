#include "backend/device/operation_checks.h"

#include <initializer_list>
#include <limits>
#include <stdexcept>
#include <string>

namespace headway::backend {

namespace {

std::string name_of(DataType type) {
    switch (type) {
        case DataType::kFloat64:
            return "float64";
        case DataType::kFloat32:
            return "float32";
        case DataType::kBfloat16:
            return "bfloat16";
        case DataType::kInt32:
            return "int32";
    }
    return "unknown type";
}

/// The checks of one call of one operation.
class OperationCall {
  public:
    explicit OperationCall(const char* operation) : operation_(operation) {}

    [[noreturn]] void fail(const std::string& what) const {
        throw std::invalid_argument(std::string(operation_) + ": " + what);
    }
    void require(bool holds, const char* what) const {
        if (!holds) fail(what);
    }
    void matrix(const char* name, const Tensor& tensor, std::initializer_list<DataType> types, std::int64_t rows,
                std::int64_t columns) const {
        bool known = false;
        for (const DataType type : types) known = known || tensor.type == type;
        if (!known) fail(std::string(name) + " is " + name_of(tensor.type));
        if (tensor.rows != rows || tensor.columns != columns) {
            fail(std::string(name) + " is " + std::to_string(tensor.rows) + " x " + std::to_string(tensor.columns) +
                 ", not " + std::to_string(rows) + " x " + std::to_string(columns));
        }
        if (tensor.rows < 0 || tensor.columns < 0) fail(std::string(name) + " has a negative size");
        if (tensor.rows > 1 && tensor.stride < tensor.columns) {
            fail(std::string(name) + " has a stride of " + std::to_string(tensor.stride) + " for " +
                 std::to_string(tensor.columns) + " columns");
        }
        if (tensor.data == nullptr && !tensor.empty()) fail(std::string(name) + " has no memory");
    }
    void vector(const char* name, const Tensor& tensor, DataType type, std::int64_t columns) const {
        matrix(name, tensor, {type}, 1, columns);
    }

  private:
    const char* operation_;
};

}  // namespace

void OperationChecks::gemm(Transpose ta, Transpose tb, const Tensor& a, const Tensor& b, const Tensor& c) const {
    const OperationCall call("gemm");
    const std::int64_t inner = ta == Transpose::kYes ? a.rows : a.columns;
    const auto sized = [&](const char* name, const Tensor& tensor, Transpose transpose, std::int64_t rows,
                           std::int64_t columns) {
        const bool turned = transpose == Transpose::kYes;
        call.matrix(name, tensor, {working}, turned ? columns : rows, turned ? rows : columns);
    };
    sized("a", a, ta, c.rows, inner);
    sized("b", b, tb, inner, c.columns);
    call.matrix("c", c, {working, accumulation}, c.rows, c.columns);
    for (const Tensor* tensor : {&a, &b, &c}) {
        const std::int64_t most = std::numeric_limits<std::int32_t>::max();
        call.require(tensor->rows <= most && tensor->columns <= most && tensor->stride <= most,
                     "sizes and strides must fit 32 bits");
    }
}

void OperationChecks::add_bias(const Tensor& x, const Tensor& bias) const {
    const OperationCall call("add_bias");
    call.matrix("x", x, {working}, x.rows, x.columns);
    call.vector("bias", bias, working, x.columns);
}

void OperationChecks::bias_gradient(const Tensor& dy, const Tensor& dbias) const {
    const OperationCall call("bias_gradient");
    call.matrix("dy", dy, {working}, dy.rows, dy.columns);
    call.vector("dbias", dbias, accumulation, dy.columns);
}

void OperationChecks::layer_norm(const Tensor& x, const Tensor& gamma, const Tensor& beta, const Tensor& y,
                                 const Tensor& mean, const Tensor& rstd) const {
    const OperationCall call("layer_norm");
    call.matrix("x", x, {working}, x.rows, x.columns);
    call.vector("gamma", gamma, working, x.columns);
    call.vector("beta", beta, working, x.columns);
    call.matrix("y", y, {working}, x.rows, x.columns);
    call.vector("mean", mean, accumulation, x.rows);
    call.vector("rstd", rstd, accumulation, x.rows);
}

void OperationChecks::layer_norm_gradient(const Tensor& dy, const Tensor& x, const Tensor& gamma, const Tensor& mean,
                                          const Tensor& rstd, const Tensor& dx, const Tensor& dgamma,
                                          const Tensor& dbeta) const {
    const OperationCall call("layer_norm_gradient");
    call.matrix("x", x, {working}, x.rows, x.columns);
    call.matrix("dy", dy, {working}, x.rows, x.columns);
    call.vector("gamma", gamma, working, x.columns);
    call.vector("mean", mean, accumulation, x.rows);
    call.vector("rstd", rstd, accumulation, x.rows);
    call.matrix("dx", dx, {working}, x.rows, x.columns);
    call.vector("dgamma", dgamma, accumulation, x.columns);
    call.vector("dbeta", dbeta, accumulation, x.columns);
}

void OperationChecks::rms_norm(const Tensor& x, const Tensor& gamma, const Tensor& y, const Tensor& rstd) const {
    const OperationCall call("rms_norm");
    call.matrix("x", x, {working}, x.rows, x.columns);
    call.vector("gamma", gamma, working, x.columns);
    call.matrix("y", y, {working}, x.rows, x.columns);
    call.vector("rstd", rstd, accumulation, x.rows);
}

void OperationChecks::rms_norm_gradient(const Tensor& dy, const Tensor& x, const Tensor& gamma, const Tensor& rstd,
                                        const Tensor& dx, const Tensor& dgamma) const {
    const OperationCall call("rms_norm_gradient");
    call.matrix("x", x, {working}, x.rows, x.columns);
    call.matrix("dy", dy, {working}, x.rows, x.columns);
    call.vector("gamma", gamma, working, x.columns);
    call.vector("rstd", rstd, accumulation, x.rows);
    call.matrix("dx", dx, {working}, x.rows, x.columns);
    call.vector("dgamma", dgamma, accumulation, x.columns);
}

void OperationChecks::rotary(const Tensor& x, std::int64_t sequence, std::int64_t head_dim) const {
    const OperationCall call("rotary");
    call.require(sequence > 0, "sequence must be at least 1");
    call.require(head_dim > 0 && head_dim % 2 == 0, "head_dim must be even");
    call.require(x.columns % head_dim == 0, "the columns of x must be whole heads");
    call.matrix("x", x, {working}, x.rows, x.columns);
}

void OperationChecks::attention(const AttentionShape& shape, const Tensor& q, const Tensor& k, const Tensor& v,
                                const Tensor& out, const Tensor& log_sums) const {
    const OperationCall call("attention");
    call.require(shape.batch > 0 && shape.sequence > 0 && shape.heads > 0 && shape.kv_heads > 0 && shape.head_dim > 0,
                 "every size of the shape must be at least 1");
    call.require(shape.heads % shape.kv_heads == 0, "kv_heads must divide heads");
    const std::int64_t rows = shape.batch * shape.sequence, columns = shape.heads * shape.head_dim;
    call.matrix("q", q, {working}, rows, columns);
    call.matrix("k", k, {working}, rows, shape.kv_heads * shape.head_dim);
    call.matrix("v", v, {working}, rows, shape.kv_heads * shape.head_dim);
    call.matrix("out", out, {working}, rows, columns);
    call.matrix("log_sums", log_sums, {accumulation}, shape.batch * shape.heads, shape.sequence);
}

void OperationChecks::attention_gradient(const AttentionShape& shape, const Tensor& dout, const Tensor& q,
                                         const Tensor& k, const Tensor& v, const Tensor& out, const Tensor& log_sums,
                                         const Tensor& dq, const Tensor& dk, const Tensor& dv) const {
    attention(shape, q, k, v, out, log_sums);
    const OperationCall call("attention_gradient");
    call.matrix("dout", dout, {working}, out.rows, out.columns);
    call.matrix("dq", dq, {working}, q.rows, q.columns);
    call.matrix("dk", dk, {working}, k.rows, k.columns);
    call.matrix("dv", dv, {working}, v.rows, v.columns);
}

void OperationChecks::gelu(const Tensor& x, const Tensor& y) const {
    const OperationCall call("gelu");
    call.matrix("x", x, {working}, x.rows, x.columns);
    call.matrix("y", y, {working}, x.rows, x.columns);
}

void OperationChecks::gelu_gradient(const Tensor& x, const Tensor& dy, const Tensor& dx) const {
    const OperationCall call("gelu_gradient");
    call.matrix("x", x, {working}, x.rows, x.columns);
    call.matrix("dy", dy, {working}, x.rows, x.columns);
    call.matrix("dx", dx, {working}, x.rows, x.columns);
}

void OperationChecks::swiglu(const Tensor& gate, const Tensor& up, const Tensor& y) const {
    const OperationCall call("swiglu");
    call.matrix("gate", gate, {working}, y.rows, y.columns);
    call.matrix("up", up, {working}, y.rows, y.columns);
    call.matrix("y", y, {working}, y.rows, y.columns);
}

void OperationChecks::swiglu_gradient(const Tensor& gate, const Tensor& up, const Tensor& dy, const Tensor& dgate,
                                      const Tensor& dup) const {
    const OperationCall call("swiglu_gradient");
    call.matrix("gate", gate, {working}, dy.rows, dy.columns);
    call.matrix("up", up, {working}, dy.rows, dy.columns);
    call.matrix("dy", dy, {working}, dy.rows, dy.columns);
    call.matrix("dgate", dgate, {working}, dy.rows, dy.columns);
    call.matrix("dup", dup, {working}, dy.rows, dy.columns);
}

void OperationChecks::embedding(const Tensor& tokens, const Tensor& table, const Tensor& out) const {
    const OperationCall call("embedding");
    call.vector("tokens", tokens, DataType::kInt32, out.rows);
    call.matrix("table", table, {working}, table.rows, out.columns);
    call.matrix("out", out, {working}, out.rows, out.columns);
}

void OperationChecks::embedding_gradient(const Tensor& tokens, const Tensor& dout, const Tensor& dtable) const {
    const OperationCall call("embedding_gradient");
    call.vector("tokens", tokens, DataType::kInt32, dout.rows);
    call.matrix("dout", dout, {working}, dout.rows, dout.columns);
    call.matrix("dtable", dtable, {accumulation}, dtable.rows, dout.columns);
}

void OperationChecks::add_positions(const Tensor& table, std::int64_t sequence, std::int64_t first_token,
                                    const Tensor& x) const {
    const OperationCall call("add_positions");
    call.require(sequence > 0 && sequence <= table.rows, "sequence must be at least 1 and at most the table's rows");
    call.require(first_token >= 0, "first_token must not be negative");
    call.matrix("table", table, {working}, table.rows, x.columns);
    call.matrix("x", x, {working}, x.rows, x.columns);
}

void OperationChecks::positions_gradient(const Tensor& dx, std::int64_t sequence, std::int64_t first_token,
                                         const Tensor& dtable) const {
    const OperationCall call("positions_gradient");
    call.require(sequence > 0 && sequence <= dtable.rows, "sequence must be at least 1 and at most the table's rows");
    call.require(first_token >= 0, "first_token must not be negative");
    call.matrix("dx", dx, {working}, dx.rows, dx.columns);
    call.matrix("dtable", dtable, {accumulation}, dtable.rows, dx.columns);
}

void OperationChecks::row_maxima(const Tensor& logits, const Tensor& maxima) const {
    const OperationCall call("row_maxima");
    call.require(logits.columns > 0, "logits must have a column");
    call.matrix("logits", logits, {working}, logits.rows, logits.columns);
    call.vector("maxima", maxima, accumulation, logits.rows);
}

void OperationChecks::exponential_sums(const Tensor& logits, const Tensor& maxima, const Tensor& targets,
                                       const Tensor& sums, const Tensor& target_logits) const {
    const OperationCall call("exponential_sums");
    call.matrix("logits", logits, {working}, logits.rows, logits.columns);
    call.vector("maxima", maxima, accumulation, logits.rows);
    call.vector("targets", targets, DataType::kInt32, logits.rows);
    call.vector("sums", sums, accumulation, logits.rows);
    call.vector("target_logits", target_logits, accumulation, logits.rows);
}

void OperationChecks::cross_entropy(const Tensor& logits, const Tensor& maxima, const Tensor& sums,
                                    const Tensor& targets, const Tensor& target_logits, const Tensor& losses) const {
    const OperationCall call("cross_entropy");
    call.matrix("logits", logits, {working}, logits.rows, logits.columns);
    call.vector("maxima", maxima, accumulation, logits.rows);
    call.vector("sums", sums, accumulation, logits.rows);
    call.vector("targets", targets, DataType::kInt32, logits.rows);
    call.vector("target_logits", target_logits, accumulation, logits.rows);
    call.vector("losses", losses, accumulation, logits.rows);
}

void OperationChecks::adamw(const AdamW& settings, const Tensor& gradient, const Tensor& parameters,
                            const Tensor& first_moment, const Tensor& second_moment) const {
    const OperationCall call("adamw");
    call.require(settings.step >= 1, "steps are counted from 1");
    const auto flat = [&](const char* name, const Tensor& tensor) {
        call.matrix(name, tensor, {accumulation}, tensor.rows, tensor.columns);
        call.require(tensor.contiguous() && tensor.count() == parameters.count(),
                     "tensors must be contiguous and of one size");
    };
    flat("gradient", gradient);
    flat("parameters", parameters);
    flat("first_moment", first_moment);
    flat("second_moment", second_moment);
}

void OperationChecks::sum_of_squares(const Tensor& x, const Tensor& result) const {
    const OperationCall call("sum_of_squares");
    call.matrix("x", x, {working, accumulation}, x.rows, x.columns);
    call.vector("result", result, DataType::kFloat64, 1);
}

void OperationChecks::add(const Tensor& x, const Tensor& y) const {
    const OperationCall call("add");
    call.matrix("x", x, {working, accumulation}, y.rows, y.columns);
    call.matrix("y", y, {working, accumulation}, y.rows, y.columns);
}

void OperationChecks::scale(const Tensor& x) const {
    OperationCall("scale").matrix("x", x, {working, accumulation}, x.rows, x.columns);
}

void OperationChecks::fill(const Tensor& x) const {
    OperationCall("fill").matrix("x", x, {working, accumulation, DataType::kFloat64, DataType::kInt32}, x.rows,
                                 x.columns);
}

void OperationChecks::copy(const Tensor& from, const Tensor& to) const {
    const OperationCall call("copy");
    const std::initializer_list<DataType> any = {DataType::kFloat64, DataType::kFloat32, DataType::kBfloat16,
                                                 DataType::kInt32};
    call.matrix("from", from, any, to.rows, to.columns);
    call.matrix("to", to, any, to.rows, to.columns);
    call.require((from.type == DataType::kInt32) == (to.type == DataType::kInt32),
                 "whole numbers are copied to whole numbers only");
}

void OperationChecks::transpose(const Tensor& from, const Tensor& to) const {
    const OperationCall call("transpose");
    call.matrix("from", from, {to.type}, to.columns, to.rows);
    call.matrix("to", to, {to.type}, to.rows, to.columns);
}

}  // namespace headway::backend
