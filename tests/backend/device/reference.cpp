#include "tests/backend/device/reference.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace headway::tests::reference {

Values transposed(const Values& a) {
    Values result(a.columns, a.rows);
    for (std::int64_t r = 0; r < a.rows; ++r)
        for (std::int64_t c = 0; c < a.columns; ++c) result(c, r) = a(r, c);
    return result;
}

Values product(const Values& a, const Values& b) {
    Values result(a.rows, b.columns);
    for (std::int64_t i = 0; i < a.rows; ++i)
        for (std::int64_t k = 0; k < a.columns; ++k)
            for (std::int64_t j = 0; j < b.columns; ++j) result(i, j) += a(i, k) * b(k, j);
    return result;
}

Normalized layer_norm(const Values& x, const Values& gamma, const Values& beta, double epsilon) {
    Normalized result{Values(x.rows, x.columns), Values(1, x.rows), Values(1, x.rows)};
    const double n = static_cast<double>(x.columns);
    for (std::int64_t r = 0; r < x.rows; ++r) {
        double mean = 0.0, variance = 0.0;
        for (std::int64_t c = 0; c < x.columns; ++c) mean += x(r, c) / n;
        for (std::int64_t c = 0; c < x.columns; ++c) variance += (x(r, c) - mean) * (x(r, c) - mean) / n;
        const double rstd = 1.0 / std::sqrt(variance + epsilon);
        for (std::int64_t c = 0; c < x.columns; ++c)
            result.y(r, c) = (x(r, c) - mean) * rstd * gamma(0, c) + beta(0, c);
        result.mean(0, r) = mean;
        result.rstd(0, r) = rstd;
    }
    return result;
}

Normalized rms_norm(const Values& x, const Values& gamma, double epsilon) {
    Normalized result{Values(x.rows, x.columns), Values(), Values(1, x.rows)};
    for (std::int64_t r = 0; r < x.rows; ++r) {
        double mean_square = 0.0;
        for (std::int64_t c = 0; c < x.columns; ++c) mean_square += x(r, c) * x(r, c) / static_cast<double>(x.columns);
        result.rstd(0, r) = 1.0 / std::sqrt(mean_square + epsilon);
        for (std::int64_t c = 0; c < x.columns; ++c) result.y(r, c) = x(r, c) * result.rstd(0, r) * gamma(0, c);
    }
    return result;
}

// By the full Jacobian of each row: d normal_j / d x_i = rstd (delta_ij - 1/n - normal_i normal_j / n).
NormGradient layer_norm_gradient(const Values& dy, const Values& x, const Values& gamma, double epsilon) {
    const Values none(1, x.columns), ones(1, x.columns, 1.0);
    const Normalized normal = layer_norm(x, ones, none, epsilon);
    NormGradient result{Values(x.rows, x.columns), none, none};
    const double n = static_cast<double>(x.columns);
    for (std::int64_t r = 0; r < x.rows; ++r)
        for (std::int64_t j = 0; j < x.columns; ++j) {
            result.dgamma(0, j) += dy(r, j) * normal.y(r, j);
            result.dbeta(0, j) += dy(r, j);
            for (std::int64_t i = 0; i < x.columns; ++i)
                result.dx(r, i) += dy(r, j) * gamma(0, j) * normal.rstd(0, r) *
                                   ((i == j ? 1.0 : 0.0) - 1.0 / n - normal.y(r, i) * normal.y(r, j) / n);
        }
    return result;
}

NormGradient rms_norm_gradient(const Values& dy, const Values& x, const Values& gamma, double epsilon) {
    const Normalized normal = rms_norm(x, Values(1, x.columns, 1.0), epsilon);
    NormGradient result{Values(x.rows, x.columns), Values(1, x.columns), Values()};
    for (std::int64_t r = 0; r < x.rows; ++r)
        for (std::int64_t j = 0; j < x.columns; ++j) {
            result.dgamma(0, j) += dy(r, j) * normal.y(r, j);
            for (std::int64_t i = 0; i < x.columns; ++i)
                result.dx(r, i) +=
                    dy(r, j) * gamma(0, j) * normal.rstd(0, r) *
                    ((i == j ? 1.0 : 0.0) - normal.y(r, i) * normal.y(r, j) / static_cast<double>(x.columns));
        }
    return result;
}

Values rotary(const Values& x, std::int64_t sequence, std::int64_t head_dim, double base, bool inverse) {
    Values result = x;
    for (std::int64_t r = 0; r < x.rows; ++r)
        for (std::int64_t first = 0; first < x.columns; first += head_dim)
            for (std::int64_t i = 0; i < head_dim / 2; ++i) {
                const double frequency = std::pow(base, -2.0 * static_cast<double>(i) / static_cast<double>(head_dim));
                const double angle = (inverse ? -1.0 : 1.0) * static_cast<double>(r % sequence) * frequency;
                const std::int64_t low = first + i, high = low + head_dim / 2;
                result(r, low) = x(r, low) * std::cos(angle) - x(r, high) * std::sin(angle);
                result(r, high) = x(r, high) * std::cos(angle) + x(r, low) * std::sin(angle);
            }
    return result;
}

namespace {

/// One head of one sequence: which rows and columns it has.
struct Head {
    std::int64_t first_row, query_column, key_column;
};

template <typename Body>
void over_heads(const Heads& heads, Body body) {
    for (std::int64_t b = 0; b < heads.batch; ++b)
        for (std::int64_t h = 0; h < heads.heads; ++h)
            body(Head{b * heads.sequence, h * heads.head_dim, h / (heads.heads / heads.kv_heads) * heads.head_dim},
                 b * heads.heads + h);
}

/// Probabilities of one head [sequence x sequence], and the log of the denominators.
Values probabilities(const Heads& heads, const Head& head, const Values& q, const Values& k,
                     std::vector<double>& log_sums) {
    Values p(heads.sequence, heads.sequence);
    log_sums.assign(static_cast<std::size_t>(heads.sequence), 0.0);
    for (std::int64_t i = 0; i < heads.sequence; ++i) {
        double sum = 0.0, largest = -1e300;
        for (std::int64_t j = 0; j <= i; ++j) {
            for (std::int64_t d = 0; d < heads.head_dim; ++d)
                p(i, j) += q(head.first_row + i, head.query_column + d) * k(head.first_row + j, head.key_column + d);
            p(i, j) /= std::sqrt(static_cast<double>(heads.head_dim));
            largest = std::max(largest, p(i, j));
        }
        for (std::int64_t j = 0; j <= i; ++j) sum += std::exp(p(i, j) - largest);
        for (std::int64_t j = 0; j <= i; ++j) p(i, j) = std::exp(p(i, j) - largest) / sum;
        log_sums[static_cast<std::size_t>(i)] = largest + std::log(sum);
    }
    return p;
}

}  // namespace

Attended attention(const Heads& heads, const Values& q, const Values& k, const Values& v) {
    Attended result{Values(q.rows, q.columns), Values(heads.batch * heads.heads, heads.sequence)};
    over_heads(heads, [&](const Head& head, std::int64_t index) {
        std::vector<double> log_sums;
        const Values p = probabilities(heads, head, q, k, log_sums);
        for (std::int64_t i = 0; i < heads.sequence; ++i) {
            result.log_sums(index, i) = log_sums[static_cast<std::size_t>(i)];
            for (std::int64_t j = 0; j <= i; ++j)
                for (std::int64_t d = 0; d < heads.head_dim; ++d)
                    result.out(head.first_row + i, head.query_column + d) +=
                        p(i, j) * v(head.first_row + j, head.key_column + d);
        }
    });
    return result;
}

AttentionGradient attention_gradient(const Heads& heads, const Values& dout, const Values& q, const Values& k,
                                     const Values& v) {
    AttentionGradient result{Values(q.rows, q.columns), Values(k.rows, k.columns), Values(v.rows, v.columns)};
    const double scale = 1.0 / std::sqrt(static_cast<double>(heads.head_dim));
    over_heads(heads, [&](const Head& head, std::int64_t) {
        std::vector<double> log_sums;
        const Values p = probabilities(heads, head, q, k, log_sums);
        for (std::int64_t i = 0; i < heads.sequence; ++i) {
            std::vector<double> dp(static_cast<std::size_t>(i + 1), 0.0);
            double mean = 0.0;
            for (std::int64_t j = 0; j <= i; ++j) {
                double& slope = dp[static_cast<std::size_t>(j)];
                for (std::int64_t d = 0; d < heads.head_dim; ++d) {
                    const double gradient = dout(head.first_row + i, head.query_column + d);
                    slope += gradient * v(head.first_row + j, head.key_column + d);
                    result.dv(head.first_row + j, head.key_column + d) += p(i, j) * gradient;
                }
                mean += p(i, j) * slope;
            }
            for (std::int64_t j = 0; j <= i; ++j) {
                const double ds = p(i, j) * (dp[static_cast<std::size_t>(j)] - mean) * scale;
                for (std::int64_t d = 0; d < heads.head_dim; ++d) {
                    result.dq(head.first_row + i, head.query_column + d) +=
                        ds * k(head.first_row + j, head.key_column + d);
                    result.dk(head.first_row + j, head.key_column + d) +=
                        ds * q(head.first_row + i, head.query_column + d);
                }
            }
        }
    });
    return result;
}

double gelu(double x) {
    return 0.5 * x * (1.0 + std::tanh(std::sqrt(2.0 / std::numbers::pi) * (x + 0.044715 * x * x * x)));
}

double gelu_slope(double x) {
    const double scale = std::sqrt(2.0 / std::numbers::pi), tanh = std::tanh(scale * (x + 0.044715 * x * x * x));
    return 0.5 * (1.0 + tanh) + 0.5 * x * (1.0 - tanh * tanh) * scale * (1.0 + 3.0 * 0.044715 * x * x);
}

double silu(double x) {
    return x / (1.0 + std::exp(-x));
}

double silu_slope(double x) {
    const double share = 1.0 / (1.0 + std::exp(-x));
    return share * (1.0 + x * (1.0 - share));
}

}  // namespace headway::tests::reference
