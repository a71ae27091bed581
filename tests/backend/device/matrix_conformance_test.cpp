#include <gtest/gtest.h>

#include <cmath>

#include "tests/backend/device/conformance.h"
#include "tests/backend/device/reference.h"

namespace headway::tests {
namespace {

using backend::DataType;
using backend::Transpose;

class MatrixOperations : public OperationConformance {};

std::string text_of(std::int64_t rows, std::int64_t columns, std::int64_t inner = 0) {
    return std::to_string(rows) + "x" + std::to_string(columns) + (inner > 0 ? "x" + std::to_string(inner) : "");
}

Values sum_of_both(const Values& a, const Values& b) {
    Values result = a;
    for (std::size_t i = 0; i < result.at.size(); ++i) result.at[i] += b.at[i];
    return result;
}

TEST_P(MatrixOperations, GemmMultipliesInEveryTransposition) {
    const std::vector<std::vector<std::int64_t>> shapes = {{1, 1, 1},    {3, 5, 7},     {17, 1, 33},
                                                           {1, 65, 129}, {64, 96, 128}, {61, 130, 37}};
    for (const auto& shape : shapes)
        for (const Transpose ta : {Transpose::kNo, Transpose::kYes})
            for (const Transpose tb : {Transpose::kNo, Transpose::kYes}) {
                const Values a = random_.between(-1, 1, shape[0], shape[2]);
                const Values b = random_.between(-1, 1, shape[2], shape[1]);
                const Values start = random_.between(-1, 1, shape[0], shape[1]);
                const Values product = reference::product(a, b);
                Operand on_a = working(ta == Transpose::kYes ? reference::transposed(a) : a);
                Operand on_b = working(tb == Transpose::kYes ? reference::transposed(b) : b);
                for (const bool into_accumulation : {false, true}) {
                    Operand c = into_accumulation ? accumulated(start) : working(start);
                    operations().gemm(ta, tb, 1.0, on_a, on_b, 1.0, c);
                    expect_close(c, sum_of_both(product, start), "added " + text_of(shape[0], shape[1], shape[2]));
                    operations().gemm(ta, tb, 0.5, on_a, on_b, 0.0, c);
                    Values half = product;
                    for (double& value : half.at) value *= 0.5;
                    expect_close(c, half, "overwritten " + text_of(shape[0], shape[1], shape[2]));
                }
            }
}

TEST_P(MatrixOperations, GemmDoesNotReadTheResultWhereBetaIsZero) {
    const Values a = random_.between(-1, 1, 9, 11), b = random_.between(-1, 1, 11, 5);
    Operand on_a = working(a), on_b = working(b), c = working(Values(9, 5, std::nan("")));
    operations().gemm(Transpose::kNo, Transpose::kNo, 1.0, on_a, on_b, 0.0, c);
    expect_close(c, reference::product(a, b), "over not-a-numbers");
}

TEST_P(MatrixOperations, BiasIsAddedToEachRowAndItsGradientSumsThem) {
    for (const auto& [rows, columns] : {std::pair{1, 1}, {5, 3}, {33, 129}, {70, 768}}) {
        const Values x = random_.between(-1, 1, rows, columns), bias = random_.between(-1, 1, 1, columns);
        Operand on_x = working(x), on_bias = working(bias);
        operations().add_bias(on_x, on_bias);
        Values expected = x, sums = bias;
        for (std::int64_t r = 0; r < rows; ++r)
            for (std::int64_t c = 0; c < columns; ++c) {
                expected(r, c) += bias(0, c);
                sums(0, c) += x(r, c);
            }
        expect_close(on_x, expected, "bias " + text_of(rows, columns));
        Operand dy = working(x), dbias = accumulated(bias);
        operations().bias_gradient(dy, dbias);
        expect_close(dbias, sums, "bias gradient " + text_of(rows, columns));
    }
}

TEST_P(MatrixOperations, GeluAndItsGradientFollowTheFormulaFarOutToo) {
    for (const auto& [rows, columns] : {std::pair{1, 1}, {3, 7}, {9, 1000}}) {
        Values x = random_.normal(2.0, rows, columns);
        const Values dy = random_.between(-1, 1, rows, columns);
        x(0, 0) = -30.0;
        x(rows - 1, columns - 1) = 30.0;
        Values y = x, dx = x;
        for (std::size_t i = 0; i < x.at.size(); ++i) {
            y.at[i] = reference::gelu(x.at[i]);
            dx.at[i] = dy.at[i] * reference::gelu_slope(x.at[i]);
        }
        Operand on_x = working(x), on_y = working(Values(rows, columns)), on_dy = working(dy);
        operations().gelu(on_x, on_y);
        expect_close(on_y, y, "gelu " + text_of(rows, columns));
        operations().gelu_gradient(on_x, on_dy, on_y);
        expect_close(on_y, dx, "gelu gradient " + text_of(rows, columns));
    }
}

TEST_P(MatrixOperations, SwigluAndItsGradientFollowTheFormula) {
    for (const auto& [rows, columns] : {std::pair{1, 1}, {5, 3}, {9, 130}}) {
        const Values gate = random_.normal(2.0, rows, columns), up = random_.normal(1.0, rows, columns);
        const Values dy = random_.between(-1, 1, rows, columns);
        Values y = gate, dgate = gate, dup = gate;
        for (std::size_t i = 0; i < y.at.size(); ++i) {
            y.at[i] = reference::silu(gate.at[i]) * up.at[i];
            dgate.at[i] = dy.at[i] * up.at[i] * reference::silu_slope(gate.at[i]);
            dup.at[i] = dy.at[i] * reference::silu(gate.at[i]);
        }
        Operand on_gate = working(gate), on_up = working(up), on_dy = working(dy), on_y = working(y),
                on_dgate = working(Values(rows, columns)), on_dup = working(Values(rows, columns));
        operations().fill(on_y, 0.0);
        operations().swiglu(on_gate, on_up, on_y);
        expect_close(on_y, y, "swiglu " + text_of(rows, columns));
        operations().swiglu_gradient(on_gate, on_up, on_dy, on_dgate, on_dup);
        expect_close(on_dgate, dgate, "gradient of the gate " + text_of(rows, columns));
        expect_close(on_dup, dup, "gradient of up " + text_of(rows, columns));
    }
}

TEST_P(MatrixOperations, AddScaleFillAndCopyWorkInAndBetweenBothTypes) {
    const Values x = random_.between(-1, 1, 7, 37), y = random_.between(-1, 1, 7, 37);
    Values scaled = x;
    for (double& value : scaled.at) value *= -0.25;
    for (const bool x_accumulated : {false, true})
        for (const bool y_accumulated : {false, true}) {
            Operand on_x = x_accumulated ? accumulated(x) : working(x);
            Operand on_y = y_accumulated ? accumulated(y) : working(y);
            operations().add(on_x, on_y);
            expect_close(on_y, sum_of_both(x, y), "add");
            operations().copy(on_x, on_y);
            expect_close(on_y, x, "copy");
            operations().scale(on_y, -0.25);
            expect_close(on_y, scaled, "scale");
            operations().fill(on_y, 1.5);
            expect_close(on_y, Values(7, 37, 1.5), "fill");
        }
    Operand whole = tokens(random_.whole(-5, 5, 3, 5));
    operations().fill(whole, 0.0);
    expect_close(whole, Values(3, 5), "fill of whole numbers");
}

TEST_P(MatrixOperations, TransposeTurnsRowsIntoColumns) {
    for (const auto& [rows, columns] : {std::pair{1, 9}, {33, 65}, {16, 16}, {100, 7}}) {
        const Values x = random_.between(-1, 1, rows, columns);
        Operand from = working(x), to = working(Values(columns, rows));
        operations().transpose(from, to);
        expect_close(to, reference::transposed(x), "transpose " + text_of(rows, columns));
        Operand from_sums = accumulated(x), to_sums = accumulated(Values(columns, rows));
        operations().transpose(from_sums, to_sums);
        expect_close(to_sums, reference::transposed(x), "transpose " + text_of(rows, columns));
    }
}

TEST_P(MatrixOperations, EmptyTensorsAreNothingToDo) {
    Operand x = working(Values(0, 5)), y = working(Values(0, 5)), bias = working(Values(1, 5, 2.0));
    Operand sums = accumulated(Values(1, 5, 3.0));
    operations().add_bias(x, bias);
    operations().bias_gradient(x, sums);
    operations().gelu(x, y);
    operations().copy(x, y);
    expect_close(sums, Values(1, 5, 3.0), "sums of no rows");
}

HEADWAY_CONFORMANCE(MatrixOperations);

}  // namespace
}  // namespace headway::tests
