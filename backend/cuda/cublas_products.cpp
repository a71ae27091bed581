#include "backend/cuda/cublas_products.h"

#include <cublasLt.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <utility>

#include "backend/backend_error.h"
#include "backend/cuda/kernels/kernels.h"

namespace headway::backend {

namespace cublas {

constexpr std::int64_t kWorkspaceBytes = 32 << 20;  // what NVIDIA recommends for Hopper

inline void check_cublas(cublasStatus_t status, const char* call) {
    if (status == CUBLAS_STATUS_SUCCESS) return;
    throw BackendError(std::string("cuda: ") + call, std::string(cublasLtGetStatusName(status)) + " (" +
                                                         std::to_string(static_cast<int>(status)) + "), " +
                                                         cublasLtGetStatusString(status));
}

template <typename Handle, cublasStatus_t (*kDestroy)(Handle)>
class Owned {
  public:
    Owned() = default;
    Owned(Owned&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
    Owned& operator=(Owned&& other) noexcept {
        std::swap(handle_, other.handle_);
        return *this;
    }
    ~Owned() {
        if (handle_ != nullptr) kDestroy(handle_);
    }
    Handle get() const { return handle_; }
    Handle* out() { return &handle_; }

  private:
    Handle handle_ = nullptr;
};

using Library = Owned<cublasLtHandle_t, cublasLtDestroy>;
using Description = Owned<cublasLtMatmulDesc_t, cublasLtMatmulDescDestroy>;
using Layout = Owned<cublasLtMatrixLayout_t, cublasLtMatrixLayoutDestroy>;
using Preference = Owned<cublasLtMatmulPreference_t, cublasLtMatmulPreferenceDestroy>;

/// What the choice of an algorithm depends on.
struct ProductKey {
    DataType type, result;
    bool transpose_first, transpose_second, accumulates;
    std::int64_t m, n, k, first_leading, second_leading, result_leading;
    std::uint32_t first_alignment, second_alignment, result_alignment;
    auto fields() const {
        return std::tie(type, result, transpose_first, transpose_second, accumulates, m, n, k, first_leading,
                        second_leading, result_leading, first_alignment, second_alignment, result_alignment);
    }
    bool operator<(const ProductKey& other) const { return fields() < other.fields(); }
};

struct Choice {
    Description description;
    Layout first, second, result;
    cublasLtMatmulAlgo_t algorithm{};
    bool found = false;
};

inline std::uint32_t alignment_of(const Tensor& tensor) {
    const auto address = reinterpret_cast<std::uintptr_t>(tensor.data);
    const std::uintptr_t lowest = address & (~address + 1);  // its lowest bit; 0 for null
    return static_cast<std::uint32_t>(lowest == 0 ? 256 : std::min<std::uintptr_t>(lowest, 256));
}

inline cudaDataType_t data_type(DataType type) {
    return type == DataType::kBfloat16 ? CUDA_R_16BF : CUDA_R_32F;
}

inline Layout layout_of(DataType type, std::int64_t rows, std::int64_t columns, std::int64_t leading) {
    Layout layout;
    check_cublas(cublasLtMatrixLayoutCreate(layout.out(), data_type(type), static_cast<std::uint64_t>(rows),
                                            static_cast<std::uint64_t>(columns), leading),
                 "cublasLtMatrixLayoutCreate");
    return layout;
}

class Multiplier {
  public:
    Multiplier(Device& device, cuda::Stream stream)
        : stream_(stream), workspace_(device.allocate(scenarios::Bytes(kWorkspaceBytes))) {
        check_cublas(cublasLtCreate(library_.out()), "cublasLtCreate");
    }

    void product(Transpose ta, Transpose tb, double alpha, const Tensor& a, const Tensor& b, double beta,
                 const Tensor& c) {
        const Choice& choice = choice_for(ta, tb, a, b, beta != 0.0, c);
        if (!choice.found) return cuda::plain_product(stream_, ta, tb, alpha, a, b, beta, c);
        const float factor = static_cast<float>(alpha), kept = static_cast<float>(beta);
        check_cublas(
            cublasLtMatmul(library_.get(), choice.description.get(), &factor, b.data, choice.first.get(), a.data,
                           choice.second.get(), &kept, c.data, choice.result.get(), c.data, choice.result.get(),
                           &choice.algorithm, workspace_.data(), static_cast<std::size_t>(kWorkspaceBytes), stream_),
            "cublasLtMatmul");
    }

  private:
    const Choice& choice_for(Transpose ta, Transpose tb, const Tensor& a, const Tensor& b, bool accumulates,
                             const Tensor& c) {
        const ColumnMajorProduct product = column_major(ta, tb, a, b, c);
        const ProductKey key{a.type,
                             c.type,
                             product.transpose_first,
                             product.transpose_second,
                             accumulates,
                             product.m,
                             product.n,
                             product.k,
                             product.first_leading,
                             product.second_leading,
                             product.result_leading,
                             alignment_of(b),
                             alignment_of(a),
                             alignment_of(c)};
        const auto known = choices_.find(key);
        if (known != choices_.end()) return known->second;
        return choices_.emplace(key, choose(key, product)).first->second;
    }

    Choice choose(const ProductKey& key, const ColumnMajorProduct& product) {
        Choice choice;
        check_cublas(cublasLtMatmulDescCreate(choice.description.out(), CUBLAS_COMPUTE_32F, CUDA_R_32F),
                     "cublasLtMatmulDescCreate");
        const auto transpose = [&](cublasLtMatmulDescAttributes_t operand, bool transposed) {
            const cublasOperation_t operation = transposed ? CUBLAS_OP_T : CUBLAS_OP_N;
            check_cublas(
                cublasLtMatmulDescSetAttribute(choice.description.get(), operand, &operation, sizeof operation),
                "cublasLtMatmulDescSetAttribute");
        };
        transpose(CUBLASLT_MATMUL_DESC_TRANSA, key.transpose_first);
        transpose(CUBLASLT_MATMUL_DESC_TRANSB, key.transpose_second);
        choice.first = layout_of(key.type, product.first_rows, product.first_columns, product.first_leading);
        choice.second = layout_of(key.type, product.second_rows, product.second_columns, product.second_leading);
        choice.result = layout_of(key.result, product.m, product.n, product.result_leading);

        Preference preference;
        check_cublas(cublasLtMatmulPreferenceCreate(preference.out()), "cublasLtMatmulPreferenceCreate");
        const auto prefer = [&](cublasLtMatmulPreferenceAttributes_t attribute, auto value) {
            check_cublas(cublasLtMatmulPreferenceSetAttribute(preference.get(), attribute, &value, sizeof value),
                         "cublasLtMatmulPreferenceSetAttribute");
        };
        prefer(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, static_cast<std::uint64_t>(kWorkspaceBytes));
        // Where the sum is split, its parts stay float32.
        prefer(CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK,
               static_cast<std::uint32_t>(CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE));
        prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, key.first_alignment);
        prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, key.second_alignment);
        prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, key.result_alignment);
        prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, key.result_alignment);

        cublasLtMatmulHeuristicResult_t best{};
        int count = 0;
        const cublasStatus_t status = cublasLtMatmulAlgoGetHeuristic(
            library_.get(), choice.description.get(), choice.first.get(), choice.second.get(), choice.result.get(),
            choice.result.get(), preference.get(), 1, &best, &count);
        if (status != CUBLAS_STATUS_NOT_SUPPORTED && status != CUBLAS_STATUS_INVALID_VALUE)
            check_cublas(status, "cublasLtMatmulAlgoGetHeuristic");
        choice.found = status == CUBLAS_STATUS_SUCCESS && count > 0 && best.state == CUBLAS_STATUS_SUCCESS;
        choice.algorithm = best.algo;
        return choice;
    }

    cuda::Stream stream_;
    Buffer workspace_;
    Library library_;
    std::map<ProductKey, Choice> choices_;
};

}  // namespace cublas

class CublasProducts::Impl : public cublas::Multiplier {
    using Multiplier::Multiplier;
};

CublasProducts::CublasProducts(Device& device, cuda::Stream stream) : impl_(std::make_unique<Impl>(device, stream)) {}
CublasProducts::~CublasProducts() = default;

void CublasProducts::product(Transpose ta, Transpose tb, double alpha, const Tensor& a, const Tensor& b, double beta,
                             const Tensor& c) {
    impl_->product(ta, tb, alpha, a, b, beta, c);
}

}  // namespace headway::backend
