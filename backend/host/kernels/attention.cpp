#include "backend/host/kernels/attention.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "backend/host/kernels/lanes.h"
#include "backend/host/kernels/matrix_product.h"

namespace headway::backend::host {

namespace {

/// Query rows handled together: their scores against all keys up to the last of them are one strip, the only scores
/// that exist at a time. Keys after that last row are masked for all of the strip and never touched.
constexpr std::int64_t kStripRows = 64;

/// Rows [first, first + rows) of one head of one sequence.
template <typename Real>
Matrix<Real> part(Matrix<Real> of, std::int64_t first, std::int64_t rows, std::int64_t head, std::int64_t head_dim) {
    return {of.row(first) + head * head_dim, rows, head_dim, of.stride};
}

/// One strip: query rows [first, first + rows) of one head of one sequence.
struct Strip {
    std::int64_t sequence_start;  ///< its row in the tensors
    std::int64_t first;           ///< position in the sequence
    std::int64_t rows;
    std::int64_t keys;  ///< positions [0, keys) are visible to some of its rows
    std::int64_t head, kv_head;
};

template <typename Real, typename Body>
void over_strips(const AttentionTask<Real>& task, Body body) {
    const std::int64_t shared_by = task.heads / task.kv_heads;
    for (std::int64_t b = 0; b < task.batch; ++b)
        for (std::int64_t h = 0; h < task.heads; ++h)
            for (std::int64_t first = 0; first < task.sequence; first += kStripRows) {
                const std::int64_t rows = std::min(kStripRows, task.sequence - first);
                body(Strip{b * task.sequence, first, rows, first + rows, h, h / shared_by});
            }
}

/// exp(x - shift) over [0, visible), zero after. Returns the sum.
template <typename Real>
Real masked_exponentials(Real* row, std::int64_t visible, std::int64_t columns, Real shift) {
    Lanes<Real> sum{};
    over_lanes<Real>(visible, [&](auto at) {
        const Lanes<Real> value = exponential(at.load(row, -std::numeric_limits<Real>::infinity()) - shift);
        sum += value;
        at.store(row, value);
    });
    std::fill(row + visible, row + columns, Real(0));
    return sum_of<Real>(sum);
}

}  // namespace

template <typename Real>
void attention(const AttentionTask<Real>& task, Matrix<Real> out, Matrix<Real> log_sums, std::vector<Real>& scratch) {
    scratch.resize(static_cast<std::size_t>(std::min(kStripRows, task.sequence) * task.sequence));
    const Real scale = Real(1) / std::sqrt(static_cast<Real>(task.head_dim));
    over_strips(task, [&](const Strip& strip) {
        const auto of_queries = [&](auto of) {
            return part(of, strip.sequence_start + strip.first, strip.rows, strip.head, task.head_dim);
        };
        const auto of_keys = [&](auto of) {
            return part(of, strip.sequence_start, strip.keys, strip.kv_head, task.head_dim);
        };
        const Matrix<Real> scores{scratch.data(), strip.rows, strip.keys, strip.keys};
        matrix_product<Real>(false, true, scale, of_queries(task.q), of_keys(task.k), Real(0), scores);
        const std::int64_t batch = strip.sequence_start / task.sequence;
        Real* log_sum = log_sums.row(batch * task.heads + strip.head) + strip.first;
        for (std::int64_t r = 0; r < strip.rows; ++r) {
            const std::int64_t visible = strip.first + r + 1;
            Real* row = scores.row(r);
            Lanes<Real> maxima = spread(row[0]);
            over_lanes<Real>(visible, [&](auto at) { maxima = larger<Real>(maxima, at.load(row, row[0])); });
            const Real maximum = largest_of<Real>(maxima);
            const Real sum = masked_exponentials(row, visible, strip.keys, maximum);
            log_sum[r] = maximum + std::log(sum);
            const Real share = Real(1) / sum;
            over_lanes<Real>(visible, [&](auto at) { at.store(row, at.load(row) * share); });
        }
        matrix_product<Real>(false, false, Real(1), scores, of_keys(task.v), Real(0), of_queries(out));
    });
}

// As in Dao et al. 2022 (FlashAttention), algorithm 4: probabilities are computed again from the scores, and the
// gradient of the softmax needs only the row sums of dout * out.
template <typename Real>
void attention_gradient(const AttentionTask<Real>& task, Matrix<const Real> dout, Matrix<const Real> out,
                        Matrix<const Real> log_sums, Matrix<Real> dq, Matrix<Real> dk, Matrix<Real> dv,
                        std::vector<Real>& scratch) {
    const std::int64_t strip_size = std::min(kStripRows, task.sequence) * task.sequence;
    scratch.resize(static_cast<std::size_t>(2 * strip_size));
    const Real scale = Real(1) / std::sqrt(static_cast<Real>(task.head_dim));
    for (const Matrix<Real>& overwritten : {dk, dv})
        for (std::int64_t r = 0; r < overwritten.rows; ++r)
            std::fill_n(overwritten.row(r), overwritten.columns, Real(0));
    over_strips(task, [&](const Strip& strip) {
        const auto of_queries = [&](auto of) {
            return part(of, strip.sequence_start + strip.first, strip.rows, strip.head, task.head_dim);
        };
        const auto of_keys = [&](auto of) {
            return part(of, strip.sequence_start, strip.keys, strip.kv_head, task.head_dim);
        };
        const Matrix<Real> shares{scratch.data(), strip.rows, strip.keys, strip.keys};
        const Matrix<Real> gradients{scratch.data() + strip_size, strip.rows, strip.keys, strip.keys};
        const Matrix<const Real> strip_dout = of_queries(dout), strip_out = of_queries(out);
        matrix_product<Real>(false, true, scale, of_queries(task.q), of_keys(task.k), Real(0), shares);
        matrix_product<Real>(false, true, Real(1), strip_dout, of_keys(task.v), Real(0), gradients);
        const std::int64_t batch = strip.sequence_start / task.sequence;
        const Real* log_sum = log_sums.row(batch * task.heads + strip.head) + strip.first;
        for (std::int64_t r = 0; r < strip.rows; ++r) {
            const std::int64_t visible = strip.first + r + 1;
            Lanes<Real> products{};
            over_lanes<Real>(task.head_dim,
                             [&](auto at) { products += at.load(strip_dout.row(r)) * at.load(strip_out.row(r)); });
            const Real mean = sum_of<Real>(products);
            masked_exponentials(shares.row(r), visible, strip.keys, log_sum[r]);
            Real* gradient = gradients.row(r);
            over_lanes<Real>(visible, [&](auto at) {
                at.store(gradient, at.load(shares.row(r)) * (at.load(gradient) - mean) * scale);
            });
            std::fill(gradient + visible, gradient + strip.keys, Real(0));
        }
        matrix_product<Real>(false, false, Real(1), gradients, of_keys(task.k), Real(0), of_queries(dq));
        matrix_product<Real>(true, false, Real(1), gradients, of_queries(task.q), Real(1), of_keys(dk));
        matrix_product<Real>(true, false, Real(1), shares, strip_dout, Real(1), of_keys(dv));
    });
}

template <typename Real>
void rotary(Matrix<Real> x, std::int64_t sequence, std::int64_t head_dim, double base, bool inverse) {
    const std::int64_t half = head_dim / 2, heads = x.columns / head_dim;
    std::vector<double> frequencies(static_cast<std::size_t>(half));
    for (std::int64_t i = 0; i < half; ++i)
        frequencies[static_cast<std::size_t>(i)] =
            std::pow(base, -2.0 * static_cast<double>(i) / static_cast<double>(head_dim));
    std::vector<Real> cosines(static_cast<std::size_t>(half)), sines(static_cast<std::size_t>(half));
    // Position by position, so that a position's angles serve every sequence that has it.
    for (std::int64_t position = 0; position < std::min(sequence, x.rows); ++position) {
        for (std::size_t i = 0; i < frequencies.size(); ++i) {
            const double angle = static_cast<double>(position) * frequencies[i];
            cosines[i] = static_cast<Real>(std::cos(angle));
            sines[i] = static_cast<Real>(inverse ? -std::sin(angle) : std::sin(angle));
        }
        for (std::int64_t r = position; r < x.rows; r += sequence)
            for (std::int64_t h = 0; h < heads; ++h) {
                Real *low = x.row(r) + h * head_dim, *high = low + half;
                over_lanes<Real>(half, [&](auto at) {
                    const Lanes<Real> a = at.load(low), b = at.load(high);
                    const Lanes<Real> cosine = at.load(cosines.data()), sine = at.load(sines.data());
                    at.store(low, a * cosine - b * sine);
                    at.store(high, b * cosine + a * sine);
                });
            }
    }
}

#define HEADWAY_INSTANTIATE(Real)                                                                        \
    template void attention(const AttentionTask<Real>&, Matrix<Real>, Matrix<Real>, std::vector<Real>&); \
    template void attention_gradient(const AttentionTask<Real>&, Matrix<const Real>, Matrix<const Real>, \
                                     Matrix<const Real>, Matrix<Real>, Matrix<Real>, Matrix<Real>,       \
                                     std::vector<Real>&);                                                \
    template void rotary(Matrix<Real>, std::int64_t, std::int64_t, double, bool);
HEADWAY_INSTANTIATE(float)
HEADWAY_INSTANTIATE(double)
#undef HEADWAY_INSTANTIATE

}  // namespace headway::backend::host
