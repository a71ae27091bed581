#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "backend/cuda/kernels/kernels.h"
#include "tests/backend/cuda/emulation/emulated_device.h"
#include "tests/backend/device/operand.h"
#include "tests/backend/device/reference.h"
#include "tests/backend/device/values.h"

namespace headway::tests {
namespace {

using backend::DataType;

constexpr double kTolerance = 1e-2;

/// The kernels over tensor cores themselves, with the shapes that have tiles of every kind: whole, past the diagonal,
/// past the end of the sequence, heads narrower than the tile, several heads on one key.
TEST(TileAttention, AgreesWithTheFullMatrixInBfloat16) {
    const std::vector<reference::Heads> shapes = {{1, 128, 1, 1, 64}, {1, 150, 4, 2, 128}, {2, 70, 2, 1, 96},
                                                  {1, 65, 2, 2, 40},  {3, 1, 1, 1, 8},     {1, 200, 3, 1, 24}};
    RandomValues random(7);
    const auto device = make_emulated_cuda_device(DataType::kBfloat16);
    for (const reference::Heads& at : shapes) {
        SCOPED_TRACE(std::to_string(at.sequence) + " tokens, heads of " + std::to_string(at.head_dim));
        const backend::AttentionShape shape{at.batch, at.sequence, at.heads, at.kv_heads, at.head_dim};
        const std::int64_t rows = at.batch * at.sequence, wide = at.heads * at.head_dim,
                           narrow = at.kv_heads * at.head_dim;
        const Values q = random.normal(1.0, rows, wide), k = random.normal(1.0, rows, narrow),
                     v = random.between(-1, 1, rows, narrow), dout = random.between(-1, 1, rows, wide);
        const auto operand = [&](const Values& values, DataType type = DataType::kBfloat16) {
            return Operand(*device, type, values, type == DataType::kBfloat16 ? 8 : 0);
        };
        Operand on_q = operand(q), on_k = operand(k), on_v = operand(v), on_dout = operand(dout);
        Operand out = operand(Values(rows, wide)), dq = operand(Values(rows, wide, 5.0)),
                dk = operand(Values(rows, narrow, 5.0)), dv = operand(Values(rows, narrow, 5.0));
        Operand log_sums = operand(Values(at.batch * at.heads, at.sequence), DataType::kFloat32);
        const backend::Buffer products = device->allocate(DataType::kFloat32, at.batch * at.heads * at.sequence);
        const backend::cuda::AttentionTensors tensors{on_q, on_k, on_v, out, log_sums};
        const backend::cuda::AttentionGradients gradients{on_dout, dq, dk, dv, static_cast<float*>(products.data())};
        ASSERT_TRUE(backend::cuda::tiles_fit(shape, tensors, gradients));

        backend::cuda::tile_attention(nullptr, shape, tensors);
        const auto expected = reference::attention(at, q, k, v);
        EXPECT_LE(relative_error(out.read(), expected.out), kTolerance);
        EXPECT_LE(relative_error(log_sums.read(), expected.log_sums), kTolerance);

        backend::cuda::tile_attention_gradient(nullptr, shape, tensors, gradients);
        const auto gradient = reference::attention_gradient(at, dout, q, k, v);
        EXPECT_LE(relative_error(dv.read(), gradient.dv), kTolerance);
        if (at.sequence == 1) continue;  // alone with itself a token's scores have no gradient
        EXPECT_LE(relative_error(dq.read(), gradient.dq), kTolerance);
        EXPECT_LE(relative_error(dk.read(), gradient.dk), kTolerance);
    }
}

TEST(TileAttention, TakesOnlyWhatFitsItsTiles) {
    const auto device = make_emulated_cuda_device(DataType::kBfloat16);
    const backend::Buffer buffer = device->allocate(DataType::kBfloat16, 4096);
    const auto tensor = [&](std::int64_t head_dim, std::int64_t stride, std::int64_t shift, DataType type) {
        backend::Tensor whole = buffer.tensor(type, 4, head_dim);
        whole.stride = stride;
        return whole.column_range(shift, head_dim);
    };
    const auto fits = [&](std::int64_t head_dim, std::int64_t stride, std::int64_t shift, DataType type) {
        const backend::Tensor q = tensor(head_dim, stride, shift, type);
        return backend::cuda::tiles_fit({1, 4, 1, 1, head_dim}, {q, q, q, q, q});
    };
    EXPECT_TRUE(fits(64, 192, 64, DataType::kBfloat16));
    EXPECT_TRUE(fits(128, 128, 0, DataType::kBfloat16));
    EXPECT_FALSE(fits(136, 136, 0, DataType::kBfloat16)) << "wider than the widest tile";
    EXPECT_FALSE(fits(20, 24, 0, DataType::kBfloat16)) << "no whole packs";
    EXPECT_FALSE(fits(64, 68, 0, DataType::kBfloat16)) << "rows that are not aligned";
    EXPECT_FALSE(fits(64, 192, 3, DataType::kBfloat16)) << "a start that is not aligned";
    EXPECT_FALSE(fits(64, 64, 0, DataType::kFloat32)) << "no tensor core takes float32 as it is";
}

}  // namespace
}  // namespace headway::tests
