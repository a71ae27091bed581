#include "backend/host/kernels/vocabulary.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "backend/host/kernels/lanes.h"

namespace headway::backend::host {

namespace {

template <typename Real>
void add_row(const Real* from, Real* to, std::int64_t columns) {
    over_lanes<Real>(columns, [&](auto at) { at.store(to, at.load(to) + at.load(from)); });
}

}  // namespace

template <typename Real>
void embedding(const std::int32_t* tokens, Matrix<const Real> table, std::int64_t first_row, Matrix<Real> out) {
    for (std::int64_t r = 0; r < out.rows; ++r) {
        const std::int64_t row = tokens[r] - first_row;
        if (row >= 0 && row < table.rows) {
            std::copy_n(table.row(row), out.columns, out.row(r));
        } else {
            std::fill_n(out.row(r), out.columns, Real(0));
        }
    }
}

template <typename Real>
void embedding_gradient(const std::int32_t* tokens, Matrix<const Real> dout, std::int64_t first_row,
                        Matrix<Real> dtable) {
    for (std::int64_t r = 0; r < dout.rows; ++r) {
        const std::int64_t row = tokens[r] - first_row;
        if (row >= 0 && row < dtable.rows) add_row(dout.row(r), dtable.row(row), dout.columns);
    }
}

template <typename Real>
void add_positions(Matrix<const Real> table, std::int64_t sequence, std::int64_t first_token, Matrix<Real> x) {
    for (std::int64_t r = 0; r < x.rows; ++r) add_row(table.row((first_token + r) % sequence), x.row(r), x.columns);
}

template <typename Real>
void positions_gradient(Matrix<const Real> dx, std::int64_t sequence, std::int64_t first_token, Matrix<Real> dtable) {
    for (std::int64_t r = 0; r < dx.rows; ++r) add_row(dx.row(r), dtable.row((first_token + r) % sequence), dx.columns);
}

template <typename Real>
void row_maxima(Matrix<const Real> logits, Real* maxima) {
    for (std::int64_t r = 0; r < logits.rows; ++r) {
        const Real* row = logits.row(r);
        Lanes<Real> largest = spread(row[0]);
        over_lanes<Real>(logits.columns, [&](auto at) { largest = larger<Real>(largest, at.load(row, row[0])); });
        maxima[r] = largest_of<Real>(largest);
    }
}

template <typename Real>
void exponential_sums(Matrix<const Real> logits, const Real* maxima, const std::int32_t* targets,
                      std::int64_t first_column, Real* sums, Real* target_logits) {
    for (std::int64_t r = 0; r < logits.rows; ++r) {
        const Real *row = logits.row(r), maximum = maxima[r];
        Lanes<Real> sum{};
        over_lanes<Real>(logits.columns, [&](auto at) {
            sum += exponential(at.load(row, -std::numeric_limits<Real>::infinity()) - maximum);
        });
        sums[r] = sum_of<Real>(sum);
        const std::int64_t column = targets[r] - first_column;
        target_logits[r] = column >= 0 && column < logits.columns ? row[column] - maximum : Real(0);
    }
}

template <typename Real>
void cross_entropy(Matrix<Real> logits, const Real* maxima, const Real* sums, const std::int32_t* targets,
                   const Real* target_logits, std::int64_t first_column, double scale, Real* losses) {
    for (std::int64_t r = 0; r < logits.rows; ++r) {
        Real *row = logits.row(r), maximum = maxima[r], share = static_cast<Real>(scale) / sums[r];
        over_lanes<Real>(logits.columns, [&](auto at) { at.store(row, exponential(at.load(row) - maximum) * share); });
        const std::int64_t column = targets[r] - first_column;
        if (column >= 0 && column < logits.columns) row[column] -= static_cast<Real>(scale);
        losses[r] = std::log(sums[r]) - target_logits[r];
    }
}

#define HEADWAY_INSTANTIATE(Real)                                                                                     \
    template void embedding(const std::int32_t*, Matrix<const Real>, std::int64_t, Matrix<Real>);                     \
    template void embedding_gradient(const std::int32_t*, Matrix<const Real>, std::int64_t, Matrix<Real>);            \
    template void add_positions(Matrix<const Real>, std::int64_t, std::int64_t, Matrix<Real>);                        \
    template void positions_gradient(Matrix<const Real>, std::int64_t, std::int64_t, Matrix<Real>);                   \
    template void row_maxima(Matrix<const Real>, Real*);                                                              \
    template void exponential_sums(Matrix<const Real>, const Real*, const std::int32_t*, std::int64_t, Real*, Real*); \
    template void cross_entropy(Matrix<Real>, const Real*, const Real*, const std::int32_t*, const Real*,             \
                                std::int64_t, double, Real*);
HEADWAY_INSTANTIATE(float)
HEADWAY_INSTANTIATE(double)
#undef HEADWAY_INSTANTIATE

}  // namespace headway::backend::host
