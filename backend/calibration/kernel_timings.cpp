#include "backend/calibration/rounds.h"
#include "backend/calibration/timings.h"

namespace headway::backend {

namespace {

Tensor filled(Device& device, std::vector<Buffer>& owned, std::int64_t rows, std::int64_t columns, DataType type,
              double value) {
    owned.push_back(device.allocate(type, rows * columns));
    const Tensor tensor = owned.back().tensor(type, rows, columns);
    device.operations().fill(tensor, value);
    return tensor;
}

/// Forward: x [rows x depth] times the transpose of weights [columns x depth].
GemmTiming time_forward(Device& device, const scenarios::GemmShape& shape) {
    std::vector<Buffer> owned;
    const auto rows = static_cast<std::int64_t>(shape.rows), columns = static_cast<std::int64_t>(shape.columns),
               depth = static_cast<std::int64_t>(shape.depth);
    const Tensor x = filled(device, owned, rows, depth, device.working_type(), 0.01);
    const Tensor weights = filled(device, owned, columns, depth, device.working_type(), 0.02);
    const Tensor y = filled(device, owned, rows, columns, device.working_type(), 0.0);
    return {shape, typical_time(device, [&] {
                device.operations().gemm(Transpose::kNo, Transpose::kYes, 1.0, x, weights, 0.0, y);
            })};
}

/// Weight gradient: rows x columns from the transpose of dy [depth x rows] and x [depth x columns], accumulated.
GemmTiming time_weight_gradient(Device& device, const scenarios::GemmShape& shape) {
    std::vector<Buffer> owned;
    const auto rows = static_cast<std::int64_t>(shape.rows), columns = static_cast<std::int64_t>(shape.columns),
               depth = static_cast<std::int64_t>(shape.depth);
    const Tensor dy = filled(device, owned, depth, rows, device.working_type(), 0.01);
    const Tensor x = filled(device, owned, depth, columns, device.working_type(), 0.02);
    const Tensor dw = filled(device, owned, rows, columns, device.accumulation_type(), 0.0);
    return {shape, typical_time(device, [&] {
                device.operations().gemm(Transpose::kYes, Transpose::kNo, 1.0, dy, x, 1.0, dw);
            })};
}

AttentionTiming time_attention(Device& device, const AttentionShape& shape) {
    std::vector<Buffer> owned;
    const std::int64_t tokens = shape.batch * shape.sequence;
    const std::int64_t width = shape.heads * shape.head_dim, kv_width = shape.kv_heads * shape.head_dim;
    const auto of = [&](std::int64_t columns, double value) {
        return filled(device, owned, tokens, columns, device.working_type(), value);
    };
    const Tensor q = of(width, 0.1), k = of(kv_width, 0.2), v = of(kv_width, 0.3), out = of(width, 0.0);
    const Tensor dout = of(width, 0.1), dq = of(width, 0.0), dk = of(kv_width, 0.0), dv = of(kv_width, 0.0);
    const Tensor sums =
        filled(device, owned, shape.batch * shape.heads, shape.sequence, device.accumulation_type(), 0.0);
    AttentionTiming timing{shape, {}, {}};
    timing.forward = typical_time(device, [&] { device.operations().attention(shape, q, k, v, out, sums); });
    timing.backward = typical_time(
        device, [&] { device.operations().attention_gradient(shape, dout, q, k, v, out, sums, dq, dk, dv); });
    return timing;
}

CopyTiming time_copy(Device& device, std::int64_t elements) {
    std::vector<Buffer> owned;
    const Tensor from = filled(device, owned, 1, elements, DataType::kFloat32, 1.0);
    const Tensor to = filled(device, owned, 1, elements, DataType::kFloat32, 0.0);
    return {scenarios::Bytes(2 * from.bytes()), typical_time(device, [&] { device.operations().copy(from, to); })};
}

}  // namespace

KernelTimings time_kernels(Device& device, bool large) {
    KernelTimings timings;
    // Outputs and inputs of the linear layers of models of these widths, and parts of them under tensor parallelism.
    const std::vector<double> widths =
        large ? std::vector<double>{1024, 2048, 4096} : std::vector<double>{128, 256, 768};
    const std::vector<double> tokens = large ? std::vector<double>{2048, 8192} : std::vector<double>{128, 512};
    for (const double width : widths) {
        for (const double rows : tokens) {
            for (const auto& [outputs, inputs] : std::vector<std::pair<double, double>>{{3 * width, width},
                                                                                        {width, width},
                                                                                        {4 * width, width},
                                                                                        {width, 4 * width},
                                                                                        {width, width / 2},
                                                                                        {width / 2, width}}) {
                timings.gemms.push_back(time_forward(device, {rows, outputs, inputs}));
                timings.gemms.push_back(time_weight_gradient(device, {outputs, inputs, rows}));
            }
        }
    }
    for (const std::int64_t sequence :
         large ? std::vector<std::int64_t>{1024, 4096} : std::vector<std::int64_t>{64, 128, 256}) {
        for (const std::int64_t head_dim : {64, 128}) {
            const std::int64_t heads = large ? 16 : 4;
            timings.attentions.push_back(time_attention(device, {2, sequence, heads, heads, head_dim}));
        }
    }
    timings.copies.push_back(time_copy(device, large ? 256'000'000 : 16'000'000));
    return timings;
}

}  // namespace headway::backend
