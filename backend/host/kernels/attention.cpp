#include "backend/host/kernels/attention.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "backend/host/kernels/lanes.h"
#include "backend/host/kernels/tile_product.h"

namespace headway::backend::host {

namespace {

/// Query rows handled together: their scores against all keys up to the last of them are one strip, the only scores
/// that exist at a time. Tiles that are masked altogether are never computed.
constexpr std::int64_t kStripRows = 60;

template <typename Real>
void unpack(const Real* from, std::int64_t stride, Matrix<Real> to, std::int64_t first_row, std::int64_t rows,
            std::int64_t first_column, std::int64_t columns) {
    for (std::int64_t r = 0; r < rows; ++r)
        std::copy_n(from + r * stride, columns, to.row(first_row + r) + first_column);
}

/// Parts of the scratch memory, one after the other.
template <typename Real>
class Scratch {
  public:
    Scratch(std::vector<Real>& memory, std::int64_t elements) : memory_(memory) {
        if (memory_.size() < static_cast<std::size_t>(elements)) memory_.resize(static_cast<std::size_t>(elements));
    }
    Real* take(std::int64_t elements) {
        Real* part = memory_.data() + taken_;
        taken_ += elements;
        return part;
    }

  private:
    std::vector<Real>& memory_;
    std::int64_t taken_ = 0;
};

/// Sizes of a task with their padding, and the products of its strips. Panels hold the rows of one head of one
/// sequence.
template <typename Real>
struct AttentionSizes {
    explicit AttentionSizes(const AttentionTask<Real>& task)
        : sequence(task.sequence),
          head_dim(task.head_dim),
          keys_stride(padded_columns<Real>(task.sequence)),
          head_stride(padded_columns<Real>(task.head_dim)),
          scale(Real(1) / std::sqrt(static_cast<Real>(task.head_dim))) {}

    std::int64_t sequence, head_dim;
    std::int64_t keys_stride;  ///< of scores
    std::int64_t head_stride;  ///< of rows of results
    Real scale;

    std::int64_t of_strip() const { return std::min(kStripRows, sequence) * keys_stride; }
    std::int64_t of_head() const { return sequence * head_stride; }
    std::int64_t of_turned_head() const { return head_dim * keys_stride; }

    /// `strip` = factor * queries times keys, where not masked. `queries`: from row `first` on; `turned_keys`: panels.
    void scores(const Real* queries, std::int64_t stride, const Real* turned_keys, std::int64_t first,
                std::int64_t rows, Real factor, Real* strip) const {
        product_in_tiles<Real, false>(rows, queries, stride, turned_keys, head_dim, strip, keys_stride, factor, false,
                                      [&](std::int64_t row, std::int64_t many) {
                                          return TileRange{0, head_dim, first + row + many};
                                      });
    }
    /// `out` [rows x head] = strip times values.
    void strip_times(const Real* strip, const Real* values, std::int64_t first, std::int64_t rows, Real* out) const {
        product_in_tiles<Real, false>(rows, strip, keys_stride, values, sequence, out, head_stride, Real(1), false,
                                      [&](std::int64_t row, std::int64_t many) {
                                          return TileRange{0, first + row + many, head_dim};
                                      });
    }
    /// `out` [keys x head] += transpose of the strip times the strip's rows of `values`.
    void add_turned_strip_times(const Real* strip, const Real* values, std::int64_t first, std::int64_t rows,
                                Real* out) const {
        product_in_tiles<Real, true>(first + rows, strip, keys_stride, values + first * kTileColumns<Real>, sequence,
                                     out, head_stride, Real(1), true, [&](std::int64_t key, std::int64_t) {
                                         return TileRange{std::max<std::int64_t>(key - first, 0), rows, head_dim};
                                     });
    }
};

/// One row of a strip: columns [0, visible) are scores, those up to `end`, which is whole lanes, are masked. Tiles read
/// beyond what is visible, but not beyond `end`.
template <typename Real>
class ScoreRow {
  public:
    ScoreRow(Real* row, std::int64_t visible, std::int64_t stride)
        : row_(row), end_(std::min((visible + kTileRows + kLanes<Real> - 1) / kLanes<Real> * kLanes<Real>, stride)) {
        std::fill(row_ + visible, row_ + end_, -std::numeric_limits<Real>::infinity());
    }
    Real maximum() const {
        Lanes<Real> maxima = load(row_);
        for (std::int64_t i = kLanes<Real>; i < end_; i += kLanes<Real>) maxima = larger<Real>(maxima, load(row_ + i));
        return largest_of<Real>(maxima);
    }
    /// Scores become exp(score - shift), masked ones 0. Returns the sum.
    Real exponentials(Real shift) const {
        Lanes<Real> sum{};
        for (std::int64_t i = 0; i < end_; i += kLanes<Real>) {
            const Lanes<Real> value = exponential(load(row_ + i) - shift);
            sum += value;
            store<Real>(row_ + i, value);
        }
        return sum_of<Real>(sum);
    }
    void scale(Real factor) const {
        for (std::int64_t i = 0; i < end_; i += kLanes<Real>) store<Real>(row_ + i, load(row_ + i) * factor);
    }
    /// `slopes`, as many, become share * (slope - mean) * scale.
    void score_gradients(Real* slopes, std::int64_t visible, Real mean, Real scale) const {
        std::fill(slopes + visible, slopes + end_, Real(0));
        for (std::int64_t i = 0; i < end_; i += kLanes<Real>)
            store<Real>(slopes + i, load(row_ + i) * (load(slopes + i) - mean) * scale);
    }

  private:
    Real* row_;
    std::int64_t end_;
};

}  // namespace

template <typename Real>
void attention(const AttentionTask<Real>& task, Matrix<Real> out, Matrix<Real> log_sums, std::vector<Real>& memory) {
    const AttentionSizes<Real> sizes(task);
    Scratch<Real> scratch(memory, sizes.of_strip() + 2 * sizes.of_head() + sizes.of_turned_head());
    Real *strip = scratch.take(sizes.of_strip()), *turned_keys = scratch.take(sizes.of_turned_head());
    Real *values = scratch.take(sizes.of_head()), *result = scratch.take(sizes.of_head());
    const std::int64_t shared_by = task.heads / task.kv_heads;
    for (std::int64_t b = 0; b < task.batch; ++b)
        for (std::int64_t h = 0; h < task.heads; ++h) {
            const std::int64_t start = b * task.sequence, column = h * task.head_dim;
            if (h % shared_by == 0) {
                const std::int64_t key_column = h / shared_by * task.head_dim;
                pack_turned_panels(task.k.row(start) + key_column, task.k.stride, task.sequence, task.head_dim,
                                   turned_keys);
                pack_panels(task.v.row(start) + key_column, task.v.stride, task.sequence, task.head_dim, values);
            }
            for (std::int64_t first = 0; first < task.sequence; first += kStripRows) {
                const std::int64_t rows = std::min(kStripRows, task.sequence - first);
                sizes.scores(task.q.row(start + first) + column, task.q.stride, turned_keys, first, rows, sizes.scale,
                             strip);
                Real* log_sum = log_sums.row(b * task.heads + h) + first;
                for (std::int64_t r = 0; r < rows; ++r) {
                    const std::int64_t visible = first + r + 1;
                    const ScoreRow<Real> row(strip + r * sizes.keys_stride, visible, sizes.keys_stride);
                    const Real maximum = row.maximum(), sum = row.exponentials(maximum);
                    log_sum[r] = maximum + std::log(sum);
                    row.scale(Real(1) / sum);
                }
                sizes.strip_times(strip, values, first, rows, result);
                unpack(result, sizes.head_stride, out, start + first, rows, column, task.head_dim);
            }
        }
}

// As in Dao et al. 2022 (FlashAttention), algorithm 4: probabilities are computed again from the scores, and the
// gradient of the softmax needs only the row sums of dout * out.
template <typename Real>
void attention_gradient(const AttentionTask<Real>& task, Matrix<const Real> dout, Matrix<const Real> out,
                        Matrix<const Real> log_sums, Matrix<Real> dq, Matrix<Real> dk, Matrix<Real> dv,
                        std::vector<Real>& memory) {
    const AttentionSizes<Real> sizes(task);
    Scratch<Real> scratch(memory, 2 * sizes.of_strip() + 6 * sizes.of_head() + 2 * sizes.of_turned_head());
    Real *shares = scratch.take(sizes.of_strip()), *slopes = scratch.take(sizes.of_strip());
    Real *queries = scratch.take(sizes.of_head()), *keys = scratch.take(sizes.of_head());
    Real *gradients = scratch.take(sizes.of_head()), *query_gradients = scratch.take(sizes.of_head());
    Real *key_gradients = scratch.take(sizes.of_head()), *value_gradients = scratch.take(sizes.of_head());
    Real *turned_keys = scratch.take(sizes.of_turned_head()), *turned_values = scratch.take(sizes.of_turned_head());
    const std::int64_t shared_by = task.heads / task.kv_heads;
    for (std::int64_t b = 0; b < task.batch; ++b)
        for (std::int64_t h = 0; h < task.heads; ++h) {
            const std::int64_t start = b * task.sequence, column = h * task.head_dim;
            const std::int64_t key_column = h / shared_by * task.head_dim;
            const auto packed = [&](Matrix<const Real> from, std::int64_t from_column, Real* to, auto pack) {
                pack(from.row(start) + from_column, from.stride, task.sequence, task.head_dim, to);
            };
            packed(task.q, column, queries, pack_panels<Real>);
            packed(dout, column, gradients, pack_panels<Real>);
            if (h % shared_by == 0) {
                packed(task.k, key_column, keys, pack_panels<Real>);
                packed(task.k, key_column, turned_keys, pack_turned_panels<Real>);
                packed(task.v, key_column, turned_values, pack_turned_panels<Real>);
                std::fill_n(key_gradients, sizes.of_head(), Real(0));
                std::fill_n(value_gradients, sizes.of_head(), Real(0));
            }
            for (std::int64_t first = 0; first < task.sequence; first += kStripRows) {
                const std::int64_t rows = std::min(kStripRows, task.sequence - first);
                const Real* strip_dout = dout.row(start + first) + column;
                sizes.scores(task.q.row(start + first) + column, task.q.stride, turned_keys, first, rows, sizes.scale,
                             shares);
                sizes.scores(strip_dout, dout.stride, turned_values, first, rows, Real(1), slopes);
                const Real* log_sum = log_sums.row(b * task.heads + h) + first;
                for (std::int64_t r = 0; r < rows; ++r) {
                    const std::int64_t visible = first + r + 1;
                    const Real* out_row = out.row(start + first + r) + column;
                    Lanes<Real> products{};
                    over_lanes<Real>(task.head_dim, [&](auto at) {
                        products += at.load(strip_dout + r * dout.stride) * at.load(out_row);
                    });
                    const ScoreRow<Real> share(shares + r * sizes.keys_stride, visible, sizes.keys_stride);
                    share.exponentials(log_sum[r]);
                    share.score_gradients(slopes + r * sizes.keys_stride, visible, sum_of<Real>(products), sizes.scale);
                }
                sizes.strip_times(slopes, keys, first, rows, query_gradients);
                unpack(query_gradients, sizes.head_stride, dq, start + first, rows, column, task.head_dim);
                sizes.add_turned_strip_times(slopes, queries, first, rows, key_gradients);
                sizes.add_turned_strip_times(shares, gradients, first, rows, value_gradients);
            }
            if (h % shared_by == shared_by - 1) {
                unpack(key_gradients, sizes.head_stride, dk, start, task.sequence, key_column, task.head_dim);
                unpack(value_gradients, sizes.head_stride, dv, start, task.sequence, key_column, task.head_dim);
            }
        }
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
