#include <type_traits>

#include "backend/cuda/kernels/elements.cuh"
#include "backend/cuda/kernels/kernels.h"

namespace headway::backend::cuda {

namespace {

template <typename From, typename To>
struct AddTo {
    View<From> x;
    View<To> y;
    template <int N>
    __device__ void at(std::int64_t row, std::int64_t column) const {
        const Values<N> more = x.template load<N>(row, column);
        Values<N> sum = y.template load<N>(row, column);
        for (int i = 0; i < N; ++i) sum.at[i] += more.at[i];
        y.store(row, column, sum);
    }
};

template <typename T>
struct ScaleBy {
    View<T> x;
    float factor;
    template <int N>
    __device__ void at(std::int64_t row, std::int64_t column) const {
        Values<N> value = x.template load<N>(row, column);
        for (int i = 0; i < N; ++i) value.at[i] *= factor;
        x.store(row, column, value);
    }
};

/// Bits as they are.
template <typename Word>
struct FillWith {
    View<Word> x;
    Word word;
    template <int N>
    __device__ void at(std::int64_t row, std::int64_t column) const {
        Pack<Word, N> pack;
        for (int i = 0; i < N; ++i) pack.at[i] = word;
        *reinterpret_cast<Pack<Word, N>*>(x.data + row * x.stride + column) = pack;
    }
};
template <typename Word>
struct CopyBits {
    View<Word> from, to;
    template <int N>
    __device__ void at(std::int64_t row, std::int64_t column) const {
        using Packed = Pack<Word, N>;
        *reinterpret_cast<Packed*>(to.data + row * to.stride + column) =
            *reinterpret_cast<const Packed*>(from.data + row * from.stride + column);
    }
};

template <typename From, typename To>
struct Convert {
    View<From> from;
    View<To> to;
    template <int N>
    __device__ void at(std::int64_t row, std::int64_t column) const {
        to.store(row, column, from.template load<N>(row, column));
    }
};

/// Calls `with` with an unsigned number as wide as the type.
template <typename With>
void by_size(DataType type, const With& with) {
    switch (size_of(type)) {
        case 2:
            return with(std::uint16_t{});
        case 4:
            return with(std::uint32_t{});
        default:
            return with(std::uint64_t{});
    }
}
/// Calls `with` with a value of a floating-point type.
template <typename With>
void by_any_type(DataType type, const With& with) {
    if (type == DataType::kFloat64) return with(double{});
    by_type(type, with);
}

template <typename Word, typename Value>
Word word_of(Value value) {
    static_assert(sizeof(Word) == sizeof(Value));
    Word word;
    std::memcpy(&word, &value, sizeof word);
    return word;
}
template <typename Word>
Word word_of(DataType type, double value) {
    if constexpr (sizeof(Word) == 2) {
        return word_of<Word>(from_float<Bf16>(static_cast<float>(value)));
    } else if constexpr (sizeof(Word) == 8) {
        return word_of<Word>(value);
    } else {
        return type == DataType::kInt32 ? word_of<Word>(static_cast<std::int32_t>(value))
                                        : word_of<Word>(static_cast<float>(value));
    }
}

constexpr int kTile = 32;

/// Tiles of 32 x 32 by blocks of 32 x 8; the shared tile has a column more, so that columns fall into different banks.
template <typename Word>
__global__ void transpose_kernel(View<Word> from, View<Word> to, std::int64_t rows, std::int64_t columns) {
    __shared__ Word tile[kTile][kTile + 1];
    const std::int64_t column = static_cast<std::int64_t>(blockIdx.x) * kTile + threadIdx.x;
    for (std::int64_t top = static_cast<std::int64_t>(blockIdx.y) * kTile; top < rows;
         top += static_cast<std::int64_t>(gridDim.y) * kTile) {
        for (int r = threadIdx.y; r < kTile; r += blockDim.y)
            if (top + r < rows && column < columns) tile[r][threadIdx.x] = from.data[(top + r) * from.stride + column];
        __syncthreads();
        for (int c = threadIdx.y; c < kTile; c += blockDim.y) {
            const std::int64_t to_row = static_cast<std::int64_t>(blockIdx.x) * kTile + c;
            if (to_row < columns && top + threadIdx.x < rows)
                to.data[to_row * to.stride + top + threadIdx.x] = tile[threadIdx.x][c];
        }
        __syncthreads();
    }
}

}  // namespace

void add(Stream stream, const Tensor& x, const Tensor& y) {
    by_type(x.type, [&](auto from) {
        by_type(y.type, [&](auto to) {
            using From = decltype(from);
            using To = decltype(to);
            over_alike("add", stream, {x, y}, [](const Tensor* t) {
                return AddTo<From, To>{view<From>(t[0]), view<To>(t[1])};
            });
        });
    });
}

void scale(Stream stream, const Tensor& x, double factor) {
    by_type(x.type, [&](auto type) {
        using T = decltype(type);
        over_alike("scale", stream, {x}, [&](const Tensor* t) {
            return ScaleBy<T>{view<T>(t[0]), static_cast<float>(factor)};
        });
    });
}

void fill(Stream stream, const Tensor& x, double value) {
    by_size(x.type, [&](auto word) {
        using Word = decltype(word);
        over_alike("fill", stream, {x}, [&](const Tensor* t) {
            return FillWith<Word>{view<Word>(t[0]), word_of<Word>(x.type, value)};
        });
    });
}

void copy(Stream stream, const Tensor& from, const Tensor& to) {
    if (from.type == to.type) {
        by_size(from.type, [&](auto word) {
            using Word = decltype(word);
            over_alike("copy", stream, {from, to}, [](const Tensor* t) {
                return CopyBits<Word>{view<Word>(t[0]), view<Word>(t[1])};
            });
        });
        return;
    }
    by_any_type(from.type, [&](auto source) {
        by_any_type(to.type, [&](auto target) {
            using From = decltype(source);
            using To = decltype(target);
            if constexpr (!std::is_same_v<From, To>) {
                over_alike("copy", stream, {from, to}, [](const Tensor* t) {
                    return Convert<From, To>{view<From>(t[0]), view<To>(t[1])};
                });
            }
        });
    });
}

void transpose(Stream stream, const Tensor& from, const Tensor& to) {
    if (from.empty()) return;
    Geometry geometry;
    geometry.block = {kTile, 8, 1};
    geometry.grid.x = static_cast<unsigned>(divided_up(from.columns, kTile));
    geometry.grid.y = static_cast<unsigned>(std::min<std::int64_t>(divided_up(from.rows, kTile), 1 << 15));
    by_size(from.type, [&](auto word) {
        using Word = decltype(word);
        launch("transpose", transpose_kernel<Word>, geometry, stream, view<Word>(from), view<Word>(to), from.rows,
               from.columns);
    });
}

}  // namespace headway::backend::cuda
