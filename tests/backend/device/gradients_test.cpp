#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "backend/host/host_device.h"
#include "tests/backend/device/operand.h"

/// Gradients of the float64 reference device by finite differences: of the sum of all outputs, each weighted at random.
namespace headway::tests {
namespace {

using backend::DataType;
using backend::Tensor;

constexpr double kDistance = 1e-4;
constexpr double kAllowed = 1e-7;  // central differences: the square of the distance, times third derivatives

class Gradients : public ::testing::Test {
  protected:
    Operand on_device(const Values& values) { return {*device_, DataType::kFloat64, values, 0}; }
    Operand tokens(const Values& values) { return {*device_, DataType::kInt32, values, 0}; }
    backend::Operations& operations() { return device_->operations(); }

    /// Fails unless `gradient` is what small changes of `input` do to `loss`.
    void expect_gradient(const Values& gradient, const Values& input, const std::function<double(const Values&)>& loss,
                         const char* what) {
        Values expected(input.rows, input.columns);
        for (std::size_t i = 0; i < input.at.size(); ++i) {
            Values moved = input;
            moved.at[i] = input.at[i] + kDistance;
            const double above = loss(moved);
            moved.at[i] = input.at[i] - kDistance;
            expected.at[i] = (above - loss(moved)) / (2.0 * kDistance);
        }
        EXPECT_LE(relative_error(gradient, expected), kAllowed) << what;
    }
    static double weighted(const Values& values, const Values& weights) {
        double sum = 0.0;
        for (std::size_t i = 0; i < values.at.size(); ++i) sum += values.at[i] * weights.at[i];
        return sum;
    }

    std::unique_ptr<backend::Device> device_ = backend::make_host_device(DataType::kFloat64);
    RandomValues random_{5};
};

TEST_F(Gradients, OfLayerNorm) {
    const Values x = random_.normal(1.0, 3, 9), gamma = random_.between(0.5, 1.5, 1, 9);
    const Values beta = random_.between(-1, 1, 1, 9), weights = random_.between(-1, 1, 3, 9);
    const auto loss = [&](const Values& at_x, const Values& at_gamma, const Values& at_beta) {
        Operand y = on_device(Values(3, 9)), mean = on_device(Values(1, 3)), rstd = on_device(Values(1, 3));
        operations().layer_norm(on_device(at_x), on_device(at_gamma), on_device(at_beta), 1e-5, y, mean, rstd);
        return weighted(y.read(), weights);
    };
    Operand y = on_device(Values(3, 9)), mean = on_device(Values(1, 3)), rstd = on_device(Values(1, 3));
    Operand dx = on_device(Values(3, 9)), dgamma = on_device(Values(1, 9)), dbeta = on_device(Values(1, 9));
    operations().layer_norm(on_device(x), on_device(gamma), on_device(beta), 1e-5, y, mean, rstd);
    operations().layer_norm_gradient(on_device(weights), on_device(x), on_device(gamma), mean, rstd, dx, dgamma, dbeta);
    expect_gradient(
        dx.read(), x, [&](const Values& at) { return loss(at, gamma, beta); }, "dx");
    expect_gradient(
        dgamma.read(), gamma, [&](const Values& at) { return loss(x, at, beta); }, "dgamma");
    expect_gradient(
        dbeta.read(), beta, [&](const Values& at) { return loss(x, gamma, at); }, "dbeta");
}

TEST_F(Gradients, OfRmsNorm) {
    const Values x = random_.normal(1.0, 3, 9), gamma = random_.between(0.5, 1.5, 1, 9);
    const Values weights = random_.between(-1, 1, 3, 9);
    const auto loss = [&](const Values& at_x, const Values& at_gamma) {
        Operand y = on_device(Values(3, 9)), rstd = on_device(Values(1, 3));
        operations().rms_norm(on_device(at_x), on_device(at_gamma), 1e-5, y, rstd);
        return weighted(y.read(), weights);
    };
    Operand y = on_device(Values(3, 9)), rstd = on_device(Values(1, 3));
    Operand dx = on_device(Values(3, 9)), dgamma = on_device(Values(1, 9));
    operations().rms_norm(on_device(x), on_device(gamma), 1e-5, y, rstd);
    operations().rms_norm_gradient(on_device(weights), on_device(x), on_device(gamma), rstd, dx, dgamma);
    expect_gradient(
        dx.read(), x, [&](const Values& at) { return loss(at, gamma); }, "dx");
    expect_gradient(
        dgamma.read(), gamma, [&](const Values& at) { return loss(x, at); }, "dgamma");
}

TEST_F(Gradients, OfAttentionWithSharedKeys) {
    const backend::AttentionShape shape{2, 7, 4, 2, 3};
    const Values q = random_.normal(1.0, 14, 12), k = random_.normal(1.0, 14, 6), v = random_.normal(1.0, 14, 6);
    const Values weights = random_.between(-1, 1, 14, 12);
    const auto loss = [&](const Values& at_q, const Values& at_k, const Values& at_v) {
        Operand out = on_device(Values(14, 12)), log_sums = on_device(Values(8, 7));
        operations().attention(shape, on_device(at_q), on_device(at_k), on_device(at_v), out, log_sums);
        return weighted(out.read(), weights);
    };
    Operand on_q = on_device(q), on_k = on_device(k), on_v = on_device(v), on_weights = on_device(weights);
    Operand out = on_device(Values(14, 12)), log_sums = on_device(Values(8, 7));
    Operand dq = on_device(q), dk = on_device(k), dv = on_device(v);
    operations().attention(shape, on_q, on_k, on_v, out, log_sums);
    operations().attention_gradient(shape, on_weights, on_q, on_k, on_v, out, log_sums, dq, dk, dv);
    expect_gradient(
        dq.read(), q, [&](const Values& at) { return loss(at, k, v); }, "dq");
    expect_gradient(
        dk.read(), k, [&](const Values& at) { return loss(q, at, v); }, "dk");
    expect_gradient(
        dv.read(), v, [&](const Values& at) { return loss(q, k, at); }, "dv");
}

TEST_F(Gradients, OfRotaryAreItsInverse) {
    const Values x = random_.normal(1.0, 5, 12), weights = random_.between(-1, 1, 5, 12);
    const auto loss = [&](const Values& at) {
        Operand turned = on_device(at);
        operations().rotary(turned, 5, 6, 100.0, false);
        return weighted(turned.read(), weights);
    };
    Operand dx = on_device(weights);
    operations().rotary(dx, 5, 6, 100.0, true);
    expect_gradient(dx.read(), x, loss, "dx");
}

TEST_F(Gradients, OfGelu) {
    const Values x = random_.normal(1.5, 4, 9), weights = random_.between(-1, 1, 4, 9);
    const auto loss = [&](const Values& at) {
        Operand y = on_device(at);
        operations().gelu(on_device(at), y);
        return weighted(y.read(), weights);
    };
    Operand dx = on_device(x);
    operations().gelu_gradient(on_device(x), on_device(weights), dx);
    expect_gradient(dx.read(), x, loss, "dx");
}

TEST_F(Gradients, OfSwiglu) {
    const Values gate = random_.normal(1.5, 4, 9), up = random_.normal(1.0, 4, 9);
    const Values weights = random_.between(-1, 1, 4, 9);
    const auto loss = [&](const Values& at_gate, const Values& at_up) {
        Operand y = on_device(at_gate);
        operations().swiglu(on_device(at_gate), on_device(at_up), y);
        return weighted(y.read(), weights);
    };
    Operand dgate = on_device(gate), dup = on_device(up);
    operations().swiglu_gradient(on_device(gate), on_device(up), on_device(weights), dgate, dup);
    expect_gradient(
        dgate.read(), gate, [&](const Values& at) { return loss(at, up); }, "dgate");
    expect_gradient(
        dup.read(), up, [&](const Values& at) { return loss(gate, at); }, "dup");
}

TEST_F(Gradients, OfCrossEntropyAreThoseOfTheSummedLosses) {
    const Values logits = random_.normal(2.0, 3, 8), targets = random_.whole(0, 7, 1, 3);
    const Operand on_targets = tokens(targets);
    Values losses, gradient;
    const auto loss = [&](const Values& at) {
        Operand on_logits = on_device(at), maxima = on_device(Values(1, 3)), sums = on_device(Values(1, 3));
        Operand target_logits = on_device(Values(1, 3)), on_losses = on_device(Values(1, 3));
        operations().row_maxima(on_logits, maxima);
        operations().exponential_sums(on_logits, maxima, on_targets, 0, sums, target_logits);
        operations().cross_entropy(on_logits, maxima, sums, on_targets, target_logits, 0, 0.25, on_losses);
        losses = on_losses.read();
        gradient = on_logits.read();
        double sum = 0.0;
        for (const double value : losses.at) sum += 0.25 * value;
        return sum;
    };
    loss(logits);
    const Values found = gradient;
    expect_gradient(found, logits, loss, "logits");
}

TEST_F(Gradients, OfEmbeddingAndPositions) {
    const Values table = random_.normal(1.0, 6, 5), ids = random_.whole(1, 8, 1, 11);
    const Values weights = random_.between(-1, 1, 11, 5);
    const Operand on_ids = tokens(ids);
    const auto loss = [&](const Values& at) {
        Operand out = on_device(Values(11, 5));
        operations().embedding(on_ids, on_device(at), 2, out);
        operations().add_positions(on_device(at), 4, 3, out);
        return weighted(out.read(), weights);
    };
    Operand dtable = on_device(Values(6, 5));
    operations().embedding_gradient(on_ids, on_device(weights), 2, dtable);
    operations().positions_gradient(on_device(weights), 4, 3, dtable);
    expect_gradient(dtable.read(), table, loss, "table");
}

TEST_F(Gradients, OfBias) {
    const Values x = random_.normal(1.0, 6, 5), bias = random_.normal(1.0, 1, 5),
                 weights = random_.between(-1, 1, 6, 5);
    const auto loss = [&](const Values& at) {
        Operand y = on_device(x);
        operations().add_bias(y, on_device(at));
        return weighted(y.read(), weights);
    };
    Operand dbias = on_device(Values(1, 5));
    operations().bias_gradient(on_device(weights), dbias);
    expect_gradient(dbias.read(), bias, loss, "dbias");
}

}  // namespace
}  // namespace headway::tests
