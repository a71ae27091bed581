#pragma once

#include <cstdint>

#include "tests/backend/device/values.h"

/// What the operations compute, in float64 and as plainly as it can be said: formula by formula, element by element.
/// Shares no code with what it judges.
namespace headway::tests::reference {

Values transposed(const Values& a);
Values product(const Values& a, const Values& b);

struct Normalized {
    Values y, mean, rstd;
};
Normalized layer_norm(const Values& x, const Values& gamma, const Values& beta, double epsilon);
Normalized rms_norm(const Values& x, const Values& gamma, double epsilon);  ///< no mean

struct NormGradient {
    Values dx, dgamma, dbeta;
};
NormGradient layer_norm_gradient(const Values& dy, const Values& x, const Values& gamma, double epsilon);
NormGradient rms_norm_gradient(const Values& dy, const Values& x, const Values& gamma, double epsilon);

Values rotary(const Values& x, std::int64_t sequence, std::int64_t head_dim, double base, bool inverse);

struct Heads {
    std::int64_t batch, sequence, heads, kv_heads, head_dim;
};
struct Attended {
    Values out, log_sums;
};
Attended attention(const Heads& heads, const Values& q, const Values& k, const Values& v);
struct AttentionGradient {
    Values dq, dk, dv;
};
AttentionGradient attention_gradient(const Heads& heads, const Values& dout, const Values& q, const Values& k,
                                     const Values& v);

double gelu(double x);
double gelu_slope(double x);
double silu(double x);
double silu_slope(double x);

}  // namespace headway::tests::reference
