#include "tests/backend/cuda/libraries/fake_cublas.h"

#include <cublasLt.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "tests/backend/cuda/libraries/fake_cuda.h"

namespace headway::tests::fake_cublas {

struct Description {
    cublasOperation_t first = CUBLAS_OP_N, second = CUBLAS_OP_N;
};
struct Layout {
    cudaDataType type;
    std::int64_t rows, columns, leading;
};
struct Preference {
    std::uint64_t workspace_bytes = 0;
    std::uint32_t reductions = CUBLASLT_REDUCTION_SCHEME_MASK;
    std::uint32_t first = 256, second = 256, third = 256, result = 256;
};

template <typename To, typename From>
To* of(From* opaque) {
    return reinterpret_cast<To*>(opaque);
}

std::int64_t bytes_of(cudaDataType type) {
    return type == CUDA_R_16BF ? 2 : 4;
}
float load(const Layout& layout, const void* data, std::int64_t row, std::int64_t column) {
    const char* at = static_cast<const char*>(data) + (column * layout.leading + row) * bytes_of(layout.type);
    float value = 0.0f;
    std::memcpy(layout.type == CUDA_R_16BF ? reinterpret_cast<char*>(&value) + 2 : reinterpret_cast<char*>(&value), at,
                static_cast<std::size_t>(bytes_of(layout.type)));
    return value;
}
void store(const Layout& layout, void* data, std::int64_t row, std::int64_t column, float value) {
    char* at = static_cast<char*>(data) + (column * layout.leading + row) * bytes_of(layout.type);
    if (layout.type == CUDA_R_32F) {
        std::memcpy(at, &value, sizeof value);
        return;
    }
    std::uint32_t bits = 0;
    std::memcpy(&bits, &value, sizeof bits);
    const auto rounded = static_cast<std::uint16_t>((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
    std::memcpy(at, &rounded, sizeof rounded);
}

/// m x n from m x k and k x n, each operand as stored before its transposition.
bool fit(const Description& description, const Layout& a, const Layout& b, const Layout& c) {
    const bool turn_a = description.first == CUBLAS_OP_T, turn_b = description.second == CUBLAS_OP_T;
    const std::int64_t m = turn_a ? a.columns : a.rows, k = turn_a ? a.rows : a.columns;
    const std::int64_t inner = turn_b ? b.columns : b.rows, n = turn_b ? b.rows : b.columns;
    const bool leading = a.leading >= a.rows && b.leading >= b.rows && c.leading >= c.rows;
    const bool types = a.type == b.type && (c.type == a.type || c.type == CUDA_R_32F);
    return m == c.rows && n == c.columns && k == inner && k > 0 && leading && types;
}

bool aligned(const void* data, std::uint32_t bytes) {
    return reinterpret_cast<std::uintptr_t>(data) % bytes == 0;
}

}  // namespace headway::tests::fake_cublas

namespace headway::tests {

FakeCublasCounts& fake_cublas_counts() {
    static FakeCublasCounts counts;
    return counts;
}

}  // namespace headway::tests

using namespace headway::tests::fake_cublas;
using headway::tests::fake_cublas_counts;

extern "C" {

const char* cublasLtGetStatusName(cublasStatus_t) {
    return "CUBLAS_STATUS_FAKE";
}
const char* cublasLtGetStatusString(cublasStatus_t) {
    return "fake";
}
cublasStatus_t cublasLtCreate(cublasLtHandle_t* handle) {
    *handle = of<cublasLtContext>(new int(0));
    return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtDestroy(cublasLtHandle_t handle) {
    delete of<int>(handle);
    return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t* description, cublasComputeType_t compute,
                                        cudaDataType_t scale) {
    if (compute != CUBLAS_COMPUTE_32F || scale != CUDA_R_32F) return CUBLAS_STATUS_INVALID_VALUE;
    *description = of<cublasLtMatmulDescOpaque_t>(new Description);
    return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t description) {
    delete of<Description>(description);
    return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t description, cublasLtMatmulDescAttributes_t which,
                                              const void* value, std::size_t bytes) {
    if (bytes != sizeof(cublasOperation_t)) return CUBLAS_STATUS_INVALID_VALUE;
    cublasOperation_t operation = CUBLAS_OP_N;
    std::memcpy(&operation, value, sizeof operation);
    if (which == CUBLASLT_MATMUL_DESC_TRANSA) {
        of<Description>(description)->first = operation;
    } else if (which == CUBLASLT_MATMUL_DESC_TRANSB) {
        of<Description>(description)->second = operation;
    } else {
        return CUBLAS_STATUS_INVALID_VALUE;
    }
    return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t* layout, cudaDataType type, std::uint64_t rows,
                                          std::uint64_t columns, std::int64_t leading) {
    *layout = of<cublasLtMatrixLayoutOpaque_t>(
        new Layout{type, static_cast<std::int64_t>(rows), static_cast<std::int64_t>(columns), leading});
    return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t layout) {
    delete of<Layout>(layout);
    return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t* preference) {
    *preference = of<cublasLtMatmulPreferenceOpaque_t>(new Preference);
    return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t preference) {
    delete of<Preference>(preference);
    return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t opaque,
                                                    cublasLtMatmulPreferenceAttributes_t which, const void* value,
                                                    std::size_t bytes) {
    Preference& preference = *of<Preference>(opaque);
    const auto take = [&](auto& field) {
        if (bytes != sizeof field) return CUBLAS_STATUS_INVALID_VALUE;
        std::memcpy(&field, value, bytes);
        return CUBLAS_STATUS_SUCCESS;
    };
    switch (which) {
        case CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES:
            return take(preference.workspace_bytes);
        case CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK:
            return take(preference.reductions);
        case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES:
            return take(preference.first);
        case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES:
            return take(preference.second);
        case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES:
            return take(preference.third);
        case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES:
            return take(preference.result);
        default:
            return CUBLAS_STATUS_INVALID_VALUE;
    }
}
cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t, cublasLtMatmulDesc_t description,
                                              cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                                              cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t,
                                              cublasLtMatmulPreference_t opaque, int wanted,
                                              cublasLtMatmulHeuristicResult_t results[], int* count) {
    ++fake_cublas_counts().heuristics;
    const Preference& preference = *of<Preference>(opaque);
    if (!fit(*of<Description>(description), *of<Layout>(a), *of<Layout>(b), *of<Layout>(c)) || wanted < 1)
        return CUBLAS_STATUS_INVALID_VALUE;
    *count = 0;
    const std::uint32_t smallest = std::min({preference.first, preference.second, preference.third, preference.result});
    if (smallest < 4 || preference.reductions != CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE)
        return CUBLAS_STATUS_NOT_SUPPORTED;
    // The algorithm remembers what it may rely on.
    std::memcpy(results[0].algo.data, &preference.first, sizeof preference.first);
    std::memcpy(&results[0].algo.data[1], &preference.second, sizeof preference.second);
    results[0].state = CUBLAS_STATUS_SUCCESS;
    *count = 1;
    return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmul(cublasLtHandle_t, cublasLtMatmulDesc_t description, const void* alpha, const void* a,
                              cublasLtMatrixLayout_t a_layout, const void* b, cublasLtMatrixLayout_t b_layout,
                              const void* beta, const void* c, cublasLtMatrixLayout_t c_layout, void* d,
                              cublasLtMatrixLayout_t d_layout, const cublasLtMatmulAlgo_t* algorithm, void* workspace,
                              std::size_t workspace_bytes, cudaStream_t stream) {
    ++fake_cublas_counts().products;
    const Description& how = *of<Description>(description);
    const Layout &of_a = *of<Layout>(a_layout), &of_b = *of<Layout>(b_layout), &of_c = *of<Layout>(c_layout);
    std::uint32_t first = 0, second = 0;
    std::memcpy(&first, algorithm->data, sizeof first);
    std::memcpy(&second, &algorithm->data[1], sizeof second);
    if (!fit(how, of_a, of_b, of_c) || c != d || c_layout != d_layout || workspace == nullptr || workspace_bytes == 0 ||
        !aligned(a, first) || !aligned(b, second))
        return CUBLAS_STATUS_INVALID_VALUE;
    const float factor = *static_cast<const float*>(alpha), kept = *static_cast<const float*>(beta);
    const auto multiply = [=, how = how, of_a = of_a, of_b = of_b, of_c = of_c] {
        const bool turn_a = how.first == CUBLAS_OP_T, turn_b = how.second == CUBLAS_OP_T;
        const std::int64_t inner = turn_a ? of_a.rows : of_a.columns;
        for (std::int64_t i = 0; i < of_c.rows; ++i)
            for (std::int64_t j = 0; j < of_c.columns; ++j) {
                float sum = 0.0f;
                for (std::int64_t k = 0; k < inner; ++k)
                    sum += (turn_a ? load(of_a, a, k, i) : load(of_a, a, i, k)) *
                           (turn_b ? load(of_b, b, j, k) : load(of_b, b, k, j));
                store(of_c, d, i, j, factor * sum + (kept == 0.0f ? 0.0f : kept * load(of_c, c, i, j)));
            }
    };
    if (stream == nullptr) {
        multiply();
    } else {
        headway::tests::fake_stream_call(stream, multiply);
    }
    return CUBLAS_STATUS_SUCCESS;
}
}
