#pragma once

#include <algorithm>
#include <cstdint>

#include "backend/host/kernels/lanes.h"

/// Products of small matrices that are packed for it, some of whose parts are known to be zero or are not wanted: what
/// attention is made of. The BLAS is for everything else.
namespace headway::backend::host {

/// b comes in panels: all rows of the first so many columns, one after the other, then those of the next. So what a
/// tile reads is contiguous. Panels and rows of c are padded to whole tiles.
template <typename Real>
inline constexpr std::int64_t kTileColumns = 2 * kLanes<Real>;
inline constexpr std::int64_t kTileRows = 6;  ///< 12 sums and what they need fill the 16 registers

template <typename Real>
constexpr std::int64_t padded_columns(std::int64_t columns) {
    return (columns + kTileColumns<Real> - 1) / kTileColumns<Real> * kTileColumns<Real>;
}

/// What some rows of the product need.
struct TileRange {
    std::int64_t inner_begin = 0;
    std::int64_t inner_end = 0;
    std::int64_t columns = 0;  ///< wanted, from the first; whole tiles are computed
};

/// c = scale a b for `kRows` rows and one panel of b, or added to c. `kTurned`: a is read as its transpose.
template <typename Real, int kRows, bool kTurned>
inline void product_tile(const Real* a, std::int64_t a_stride, const Real* panel, Real* c, std::int64_t c_stride,
                         std::int64_t begin, std::int64_t end, Real scale, bool add) {
    Lanes<Real> sums[kRows][2];
#pragma GCC unroll 6
    for (int r = 0; r < kRows; ++r) sums[r][0] = sums[r][1] = Lanes<Real>{};
    panel += begin * kTileColumns<Real>;
    for (std::int64_t i = begin; i < end; ++i, panel += kTileColumns<Real>) {
        const Lanes<Real> left = load(panel), right = load(panel + kLanes<Real>);
#pragma GCC unroll 6
        for (int r = 0; r < kRows; ++r) {
            const Real factor = kTurned ? a[i * a_stride + r] : a[r * a_stride + i];
            sums[r][0] += factor * left;
            sums[r][1] += factor * right;
        }
    }
#pragma GCC unroll 6
    for (int r = 0; r < kRows; ++r) {
        Real *low = c + r * c_stride, *high = low + kLanes<Real>;
        store<Real>(low, add ? load(low) + scale * sums[r][0] : scale * sums[r][0]);
        store<Real>(high, add ? load(high) + scale * sums[r][1] : scale * sums[r][1]);
    }
}

template <typename Real, bool kTurned>
inline void product_tile_of(std::int64_t rows, const Real* a, std::int64_t a_stride, const Real* panel, Real* c,
                            std::int64_t c_stride, std::int64_t begin, std::int64_t end, Real scale, bool add) {
    switch (rows) {
        case 1:
            return product_tile<Real, 1, kTurned>(a, a_stride, panel, c, c_stride, begin, end, scale, add);
        case 2:
            return product_tile<Real, 2, kTurned>(a, a_stride, panel, c, c_stride, begin, end, scale, add);
        case 3:
            return product_tile<Real, 3, kTurned>(a, a_stride, panel, c, c_stride, begin, end, scale, add);
        case 4:
            return product_tile<Real, 4, kTurned>(a, a_stride, panel, c, c_stride, begin, end, scale, add);
        case 5:
            return product_tile<Real, 5, kTurned>(a, a_stride, panel, c, c_stride, begin, end, scale, add);
        default:
            return product_tile<Real, 6, kTurned>(a, a_stride, panel, c, c_stride, begin, end, scale, add);
    }
}

/// c [rows x ...] = scale a b, tile by tile; each panel of b has `panel_rows` rows. `range(first, many)` says what rows
/// [first, first + many) need.
template <typename Real, bool kTurned, typename Range>
inline void product_in_tiles(std::int64_t rows, const Real* a, std::int64_t a_stride, const Real* panels,
                             std::int64_t panel_rows, Real* c, std::int64_t c_stride, Real scale, bool add,
                             Range range) {
    for (std::int64_t first = 0; first < rows; first += kTileRows) {
        const std::int64_t many = std::min(kTileRows, rows - first);
        const TileRange needs = range(first, many);
        const Real* from = a + (kTurned ? first : first * a_stride);
        for (std::int64_t column = 0; column < needs.columns; column += kTileColumns<Real>)
            product_tile_of<Real, kTurned>(many, from, a_stride, panels + column * panel_rows,
                                           c + first * c_stride + column, c_stride, needs.inner_begin, needs.inner_end,
                                           scale, add);
    }
}

/// `rows` rows of `columns` as panels, padded with zeros.
template <typename Real>
inline void pack_panels(const Real* from, std::int64_t stride, std::int64_t rows, std::int64_t columns, Real* panels) {
    for (std::int64_t column = 0; column < columns; column += kTileColumns<Real>) {
        const std::int64_t many = std::min(kTileColumns<Real>, columns - column);
        for (std::int64_t r = 0; r < rows; ++r, panels += kTileColumns<Real>) {
            const Real* in = from + r * stride + column;
            if (many == kTileColumns<Real>) {
                store<Real>(panels, load(in));
                store<Real>(panels + kLanes<Real>, load(in + kLanes<Real>));
            } else {
                std::copy_n(in, many, panels);
                std::fill(panels + many, panels + kTileColumns<Real>, Real(0));
            }
        }
    }
}

/// Panels of the transpose: its rows are the `columns` columns of `from`.
template <typename Real>
inline void pack_turned_panels(const Real* from, std::int64_t stride, std::int64_t rows, std::int64_t columns,
                               Real* panels) {
    for (std::int64_t row = 0; row < rows; row += kTileColumns<Real>, panels += columns * kTileColumns<Real>) {
        const std::int64_t many = std::min(kTileColumns<Real>, rows - row);
        if (many < kTileColumns<Real>) std::fill_n(panels, columns * kTileColumns<Real>, Real(0));
        for (std::int64_t c = 0; c < columns; ++c)
            for (std::int64_t r = 0; r < many; ++r) panels[c * kTileColumns<Real> + r] = from[(row + r) * stride + c];
    }
}

}  // namespace headway::backend::host
