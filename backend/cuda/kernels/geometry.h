#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <initializer_list>

#include "backend/device/tensor.h"

/// How work is laid out over blocks and threads: arithmetic of the host alone.
namespace headway::backend::cuda {

struct Extent {
    unsigned x = 1, y = 1, z = 1;
};

struct Geometry {
    Extent grid;
    Extent block;
    std::size_t shared_bytes = 0;
};

inline constexpr int kBlockThreads = 256;
/// Elements of one access where alignment allows it.
inline constexpr int kWidth = 8;

constexpr std::int64_t divided_up(std::int64_t a, std::int64_t b) {
    return (a + b - 1) / b;
}

/// kWidth where every row of every tensor is whole packs at aligned addresses, else 1.
inline int common_width(std::initializer_list<Tensor> tensors) {
    for (const Tensor& tensor : tensors) {
        const bool aligned = reinterpret_cast<std::uintptr_t>(tensor.data) % 16 == 0;
        const bool whole = tensor.columns % kWidth == 0 && (tensor.rows <= 1 || tensor.stride % kWidth == 0);
        if (!aligned || !whole) return 1;
    }
    return kWidth;
}

/// Threads side by side along the columns, blocks of rows beside that; a thread takes several elements where the grid
/// would become too large.
inline Geometry elements_geometry(std::int64_t rows, std::int64_t packs) {
    unsigned across = 1;
    while (across < kBlockThreads && across < packs) across *= 2;
    const unsigned down = kBlockThreads / across;
    Geometry geometry;
    geometry.block = {across, down, 1};
    geometry.grid.x = static_cast<unsigned>(std::min<std::int64_t>(divided_up(packs, across), 1 << 20));
    geometry.grid.y = static_cast<unsigned>(std::min<std::int64_t>(divided_up(rows, down), 1 << 15));
    return geometry;
}

/// Threads that share a row: a warp for short rows, a block for long ones.
constexpr int threads_of_row(std::int64_t columns) {
    return columns <= 1024 ? 32 : kBlockThreads;
}
inline Geometry rows_geometry(std::int64_t rows, int row_threads) {
    const unsigned rows_of_block = static_cast<unsigned>(kBlockThreads / row_threads);
    Geometry geometry;
    geometry.block = {static_cast<unsigned>(row_threads), rows_of_block, 1};
    geometry.grid.x = static_cast<unsigned>(divided_up(rows, rows_of_block));
    return geometry;
}

/// Sums down columns go in two steps: strips of rows, then the strips in order. Their number depends on the shape
/// alone, so that the same values give the same bits on every device.
constexpr std::int64_t strips_of_rows(std::int64_t rows) {
    return std::clamp<std::int64_t>(divided_up(rows, 32), 1, 64);
}

}  // namespace headway::backend::cuda
