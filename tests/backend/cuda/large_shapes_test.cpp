#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "tests/backend/device/conformance.h"
#include "tests/backend/device/reference.h"

/// Shapes on which the kernels of the CUDA device take their other paths: rows longer than a warp takes, more rows than
/// one strip of a column sum, vocabularies of several passes. For every device of the program.
namespace headway::tests {
namespace {

using backend::DataType;

class LargeShapes : public OperationConformance {};

TEST_P(LargeShapes, NormsOfLongRowsAndManyOfThemAgree) {
    for (const auto& [rows, columns] : {std::pair<std::int64_t, std::int64_t>{5, 1536}, {300, 40}}) {
        const std::string text = std::to_string(rows) + " rows of " + std::to_string(columns);
        const double epsilon = 1e-5;
        const Values x = random_.normal(2.0, rows, columns), dy = random_.normal(1.0, rows, columns),
                     gamma = random_.between(0.5, 1.5, 1, columns), beta = random_.between(-1, 1, 1, columns);
        Operand on_x = working(x), on_gamma = working(gamma), on_beta = working(beta), on_dy = working(dy);
        Operand y = working(Values(rows, columns, 9.0)), mean = accumulated(Values(1, rows)),
                rstd = accumulated(Values(1, rows));
        operations().layer_norm(on_x, on_gamma, on_beta, epsilon, y, mean, rstd);
        const auto expected = reference::layer_norm(x, gamma, beta, epsilon);
        expect_close(y, expected.y, "layer norm of " + text);
        expect_close(rstd, expected.rstd, "rstd of " + text);

        Operand dx = working(Values(rows, columns)), dgamma = accumulated(Values(1, columns)),
                dbeta = accumulated(Values(1, columns));
        operations().layer_norm_gradient(on_dy, on_x, on_gamma, mean, rstd, dx, dgamma, dbeta);
        const auto gradient = reference::layer_norm_gradient(dy, x, gamma, epsilon);
        expect_close(dx, gradient.dx, "dx of " + text);
        expect_close(dgamma, gradient.dgamma, "dgamma of " + text);
        expect_close(dbeta, gradient.dbeta, "dbeta of " + text);

        operations().rms_norm(on_x, on_gamma, epsilon, y, rstd);
        expect_close(y, reference::rms_norm(x, gamma, epsilon).y, "RMS norm of " + text);
        Operand rms_dx = working(Values(rows, columns)), rms_dgamma = accumulated(Values(1, columns));
        operations().rms_norm_gradient(on_dy, on_x, on_gamma, rstd, rms_dx, rms_dgamma);
        const auto rms_gradient = reference::rms_norm_gradient(dy, x, gamma, epsilon);
        expect_close(rms_dx, rms_gradient.dx, "dx of the RMS norm of " + text);
        expect_close(rms_dgamma, rms_gradient.dgamma, "dgamma of the RMS norm of " + text);
    }
}

TEST_P(LargeShapes, EmbeddingGradientAddsEqualTokensThatAreFarApart) {
    const std::int64_t count = 700, hidden = 24, vocabulary = 9;
    const Values ids = random_.whole(0, 11, 1, count), dout = random_.between(-1, 1, count, hidden);
    Values expected(vocabulary, hidden, 0.5);
    for (std::int64_t t = 0; t < count; ++t)
        if (ids(0, t) < vocabulary)
            for (std::int64_t c = 0; c < hidden; ++c) expected(static_cast<std::int64_t>(ids(0, t)), c) += dout(t, c);
    Operand on_ids = tokens(ids), on_dout = working(dout), dtable = accumulated(Values(vocabulary, hidden, 0.5));
    operations().embedding_gradient(on_ids, on_dout, 0, dtable);
    expect_close(dtable, expected, "gradient of the embedding");
}

TEST_P(LargeShapes, CrossEntropyOfAWideVocabularyAgrees) {
    const std::int64_t rows = 3, columns = 5000;
    const Values logits = random_.normal(3.0, rows, columns);
    Values targets(1, rows);
    for (std::int64_t r = 0; r < rows; ++r) targets(0, r) = static_cast<double>(1234 * r + 17);
    Operand on_logits = working(logits), on_targets = tokens(targets), maxima = accumulated(Values(1, rows)),
            sums = accumulated(Values(1, rows)), target_logits = accumulated(Values(1, rows)),
            losses = accumulated(Values(1, rows));
    operations().row_maxima(on_logits, maxima);
    operations().exponential_sums(on_logits, maxima, on_targets, 0, sums, target_logits);
    operations().cross_entropy(on_logits, maxima, sums, on_targets, target_logits, 0, 1.0, losses);
    Values expected_losses(1, rows), expected(rows, columns);
    for (std::int64_t r = 0; r < rows; ++r) {
        double largest = logits(r, 0), sum = 0.0;
        for (std::int64_t c = 0; c < columns; ++c) largest = std::max(largest, logits(r, c));
        for (std::int64_t c = 0; c < columns; ++c) sum += std::exp(logits(r, c) - largest);
        const auto target = static_cast<std::int64_t>(targets(0, r));
        expected_losses(0, r) = std::log(sum) - (logits(r, target) - largest);
        for (std::int64_t c = 0; c < columns; ++c)
            expected(r, c) = std::exp(logits(r, c) - largest) / sum - (c == target ? 1.0 : 0.0);
    }
    expect_close(losses, expected_losses, "losses");
    expect_close(on_logits, expected, "gradients of the logits");
}

TEST_P(LargeShapes, SumOfManySquaresAgrees) {
    const Values x = random_.normal(1.0, 130, 520);
    double expected = 2.0;
    for (const double value : x.at) expected += value * value;
    Operand on_x = working(x), result = contiguous(DataType::kFloat64, Values(1, 1, 2.0));
    operations().sum_of_squares(on_x, result);
    expect_close(result, Values(1, 1, expected), "sum of squares");
}

HEADWAY_CONFORMANCE(LargeShapes);

}  // namespace
}  // namespace headway::tests
