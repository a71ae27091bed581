#include <gtest/gtest.h>

#include <cmath>

#include "tests/backend/device/conformance.h"
#include "tests/backend/device/reference.h"

namespace headway::tests {
namespace {

class ModelOperations : public OperationConformance {
  protected:
    Operand sums_of(const Values& values) { return accumulated(values); }
};

constexpr double kNormEpsilon = 1e-5;

Values plus(Values a, const Values& b) {
    for (std::size_t i = 0; i < a.at.size(); ++i) a.at[i] += b.at[i];
    return a;
}

std::string shape_text(std::int64_t rows, std::int64_t columns) {
    return std::to_string(rows) + "x" + std::to_string(columns);
}

TEST_P(ModelOperations, LayerNormAndItsGradientAgreeWithTheJacobian) {
    for (const auto& [rows, columns] : {std::pair{1, 2}, {5, 7}, {3, 256}, {19, 131}}) {
        const std::string text = shape_text(rows, columns);
        Values x = random_.normal(1.5, rows, columns);
        for (std::int64_t c = 0; c < columns; ++c) x(0, c) = rounded_to_bfloat16(x(0, c) + 4.0);
        const Values gamma = random_.between(0.5, 1.5, 1, columns), beta = random_.between(-1, 1, 1, columns);
        const Values dy = random_.between(-1, 1, rows, columns), start = random_.between(-1, 1, rows, columns);
        const Values start_sums = random_.between(-1, 1, 1, columns);
        const auto expected = reference::layer_norm(x, gamma, beta, kNormEpsilon);
        Operand on_x = working(x), on_gamma = working(gamma), on_beta = working(beta);
        Operand y = working(Values(rows, columns)), mean = sums_of(Values(1, rows)), rstd = sums_of(Values(1, rows));
        operations().layer_norm(on_x, on_gamma, on_beta, kNormEpsilon, y, mean, rstd);
        expect_close(y, expected.y, "layer norm " + text);
        expect_close(mean, expected.mean, "mean " + text);
        expect_close(rstd, expected.rstd, "rstd " + text);

        const auto gradient = reference::layer_norm_gradient(dy, x, gamma, kNormEpsilon);
        Operand on_dy = working(dy), dx = working(start), dgamma = sums_of(start_sums), dbeta = sums_of(start_sums);
        operations().layer_norm_gradient(on_dy, on_x, on_gamma, mean, rstd, dx, dgamma, dbeta);
        expect_close(dx, plus(start, gradient.dx), "dx " + text);
        expect_close(dgamma, plus(start_sums, gradient.dgamma), "dgamma " + text);
        expect_close(dbeta, plus(start_sums, gradient.dbeta), "dbeta " + text);
    }
}

TEST_P(ModelOperations, RmsNormAndItsGradientAgreeWithTheJacobian) {
    for (const auto& [rows, columns] : {std::pair{1, 1}, {5, 7}, {3, 256}, {19, 131}}) {
        const std::string text = shape_text(rows, columns);
        const Values x = random_.normal(1.5, rows, columns), gamma = random_.between(0.5, 1.5, 1, columns);
        const Values dy = random_.between(-1, 1, rows, columns), start = random_.between(-1, 1, rows, columns);
        const Values start_sums = random_.between(-1, 1, 1, columns);
        const auto expected = reference::rms_norm(x, gamma, kNormEpsilon);
        Operand on_x = working(x), on_gamma = working(gamma);
        Operand y = working(Values(rows, columns)), rstd = sums_of(Values(1, rows));
        operations().rms_norm(on_x, on_gamma, kNormEpsilon, y, rstd);
        expect_close(y, expected.y, "RMS norm " + text);
        expect_close(rstd, expected.rstd, "rstd " + text);

        const auto gradient = reference::rms_norm_gradient(dy, x, gamma, kNormEpsilon);
        Operand on_dy = working(dy), dx = working(start), dgamma = sums_of(start_sums);
        operations().rms_norm_gradient(on_dy, on_x, on_gamma, rstd, dx, dgamma);
        expect_close(dx, plus(start, gradient.dx), "dx " + text);
        expect_close(dgamma, plus(start_sums, gradient.dgamma), "dgamma " + text);
    }
}

TEST_P(ModelOperations, RotaryTurnsPairsAndBack) {
    for (const std::int64_t head_dim : {2, 6, 64})
        for (const std::int64_t sequence : {1, 5, 50}) {
            const Values x = random_.between(-1, 1, 10, 3 * head_dim);
            Operand on_x = working(x);
            const std::string text = std::to_string(head_dim) + " a head, " + std::to_string(sequence) + " positions";
            operations().rotary(on_x, sequence, head_dim, 10000.0, false);
            expect_close(on_x, reference::rotary(x, sequence, head_dim, 10000.0, false), text);
            operations().rotary(on_x, sequence, head_dim, 10000.0, true);
            expect_close(on_x, x, "back again, " + text);
        }
}

TEST_P(ModelOperations, AttentionAndItsGradientAgreeWithTheFullMatrix) {
    const std::vector<reference::Heads> shapes = {{1, 1, 1, 1, 1},   {2, 3, 2, 2, 5},   {1, 64, 2, 1, 16},
                                                  {2, 65, 4, 2, 8},  {1, 130, 6, 2, 7}, {3, 17, 3, 1, 64},
                                                  {1, 200, 1, 1, 32}};
    for (const reference::Heads& at : shapes) {
        const std::string text = std::to_string(at.batch) + " sequences of " + std::to_string(at.sequence) + ", " +
                                 std::to_string(at.heads) + "/" + std::to_string(at.kv_heads) + " heads of " +
                                 std::to_string(at.head_dim);
        const backend::AttentionShape shape{at.batch, at.sequence, at.heads, at.kv_heads, at.head_dim};
        const std::int64_t rows = at.batch * at.sequence, wide = at.heads * at.head_dim,
                           narrow = at.kv_heads * at.head_dim;
        const Values q = random_.normal(1.0, rows, wide), k = random_.normal(1.0, rows, narrow),
                     v = random_.between(-1, 1, rows, narrow), dout = random_.between(-1, 1, rows, wide);
        const auto expected = reference::attention(at, q, k, v);
        Operand on_q = working(q), on_k = working(k), on_v = working(v), on_dout = working(dout);
        Operand out = working(Values(rows, wide)), log_sums = sums_of(Values(at.batch * at.heads, at.sequence));
        operations().attention(shape, on_q, on_k, on_v, out, log_sums);
        expect_close(out, expected.out, "attention of " + text);
        expect_close(log_sums, expected.log_sums, "log sums of " + text);

        const auto gradient = reference::attention_gradient(at, dout, q, k, v);
        Operand dq = working(Values(rows, wide, 5.0)), dk = working(Values(rows, narrow, 5.0)),
                dv = working(Values(rows, narrow, 5.0));
        operations().attention_gradient(shape, on_dout, on_q, on_k, on_v, out, log_sums, dq, dk, dv);
        if (at.sequence > 1) {  // alone with itself a token's scores have no gradient
            expect_close(dq, gradient.dq, "dq of " + text);
            expect_close(dk, gradient.dk, "dk of " + text);
        }
        expect_close(dv, gradient.dv, "dv of " + text);
    }
}

TEST_P(ModelOperations, AttentionKeepsLargeScoresFinite) {
    const reference::Heads at{1, 40, 2, 1, 8};
    const Values q = random_.normal(30.0, 40, 16), k = random_.normal(30.0, 40, 8), v = random_.between(-1, 1, 40, 8);
    Operand on_q = working(q), on_k = working(k), on_v = working(v), out = working(Values(40, 16)),
            log_sums = sums_of(Values(2, 40));
    operations().attention({1, 40, 2, 1, 8}, on_q, on_k, on_v, out, log_sums);
    const auto expected = reference::attention(at, q, k, v);
    expect_close(log_sums, expected.log_sums, "log sums");
    // Probabilities near 0 and 1: an error of a score is one of the logarithm of a share.
    EXPECT_LE(relative_error(out.read(), expected.out), 100 * tolerance());
}

TEST_P(ModelOperations, EmbeddingTakesItsRowsAndZeroElsewhere) {
    const std::int64_t first_row = 100, rows = 11, hidden = 19;
    const Values table = random_.between(-1, 1, rows, hidden);
    Values ids = random_.whole(95, 115, 1, 40);
    ids(0, 0) = 99;
    ids(0, 1) = 100;
    ids(0, 2) = 110;
    ids(0, 3) = 111;
    const Values dout = random_.between(-1, 1, 40, hidden), start = random_.between(-1, 1, rows, hidden);
    Values expected(40, hidden), expected_gradient = start;
    for (std::int64_t t = 0; t < 40; ++t) {
        const auto row = static_cast<std::int64_t>(ids(0, t)) - first_row;
        if (row < 0 || row >= rows) continue;
        for (std::int64_t c = 0; c < hidden; ++c) {
            expected(t, c) = table(row, c);
            expected_gradient(row, c) += dout(t, c);
        }
    }
    Operand on_ids = tokens(ids), on_table = working(table), out = working(Values(40, hidden, 9.0));
    operations().embedding(on_ids, on_table, first_row, out);
    expect_close(out, expected, "embedding");
    Operand on_dout = working(dout), dtable = accumulated(start);
    operations().embedding_gradient(on_ids, on_dout, first_row, dtable);
    expect_close(dtable, expected_gradient, "gradient of the embedding");
}

TEST_P(ModelOperations, PositionsStartWhereTheFirstTokenIs) {
    for (const std::int64_t first_token : {0, 3, 24}) {
        const std::int64_t sequence = 10, rows = 23, hidden = 21;
        const Values table = random_.between(-1, 1, 12, hidden), x = random_.between(-1, 1, rows, hidden);
        Values expected = x, expected_gradient = table;
        for (std::int64_t r = 0; r < rows; ++r)
            for (std::int64_t c = 0; c < hidden; ++c) {
                expected(r, c) += table((first_token + r) % sequence, c);
                expected_gradient((first_token + r) % sequence, c) += x(r, c);
            }
        Operand on_table = working(table), on_x = working(x), dtable = accumulated(table), dx = working(x);
        operations().add_positions(on_table, sequence, first_token, on_x);
        expect_close(on_x, expected, "positions");
        operations().positions_gradient(dx, sequence, first_token, dtable);
        expect_close(dtable, expected_gradient, "gradient of the positions");
    }
}

/// Cross entropy over `parts` equal column ranges, as tensor ranks share them.
TEST_P(ModelOperations, CrossEntropyOverSharedVocabulariesIsThatOfTheWhole) {
    const std::int64_t rows = 13;
    for (const std::int64_t parts : {1, 3})
        for (const std::int64_t columns : {3, 66, 999}) {
            const std::string text = std::to_string(parts) + " parts of " + std::to_string(columns);
            const std::int64_t share = columns / parts;
            Values logits = random_.normal(4.0, rows, columns), targets = random_.whole(0, columns - 1, 1, rows);
            targets(0, 0) = 0;
            targets(0, 1) = static_cast<double>(columns - 1);
            Values softmax = logits, losses(1, rows), maxima(1, rows), sums(1, rows), target_logits(1, rows);
            const double scale = 1.0 / 128.0;
            for (std::int64_t r = 0; r < rows; ++r) {
                double sum = 0.0, maximum = logits(r, 0);
                for (std::int64_t c = 0; c < columns; ++c) maximum = std::max(maximum, logits(r, c));
                for (std::int64_t c = 0; c < columns; ++c) sum += std::exp(logits(r, c) - maximum);
                for (std::int64_t c = 0; c < columns; ++c)
                    softmax(r, c) = scale * (std::exp(logits(r, c) - maximum) / sum -
                                             (c == static_cast<std::int64_t>(targets(0, r)) ? 1.0 : 0.0));
                losses(0, r) = std::log(sum) + maximum - logits(r, static_cast<std::int64_t>(targets(0, r)));
            }
            const Operand on_targets = tokens(targets);
            std::vector<Operand> pieces;
            Values largest(1, rows, -1e30), total(1, rows), target_total(1, rows);
            for (std::int64_t p = 0; p < parts; ++p) {
                Values piece(rows, share);
                for (std::int64_t r = 0; r < rows; ++r)
                    for (std::int64_t c = 0; c < share; ++c) piece(r, c) = logits(r, p * share + c);
                pieces.push_back(working(piece));
                Operand piece_maxima = accumulated(Values(1, rows));
                operations().row_maxima(pieces.back(), piece_maxima);
                const Values found = piece_maxima.read();
                for (std::int64_t r = 0; r < rows; ++r) largest(0, r) = std::max(largest(0, r), found(0, r));
            }
            Operand on_maxima = accumulated(largest);
            for (std::int64_t p = 0; p < parts; ++p) {
                Operand piece_sums = accumulated(Values(1, rows)), piece_targets = accumulated(Values(1, rows));
                operations().exponential_sums(pieces[static_cast<std::size_t>(p)], on_maxima, on_targets, p * share,
                                              piece_sums, piece_targets);
                total = plus(total, piece_sums.read());
                target_total = plus(target_total, piece_targets.read());
            }
            Operand on_sums = accumulated(total), on_target_logits = accumulated(target_total);
            for (std::int64_t p = 0; p < parts; ++p) {
                Operand& piece = pieces[static_cast<std::size_t>(p)];
                Operand on_losses = accumulated(Values(1, rows));
                operations().cross_entropy(piece, on_maxima, on_sums, on_targets, on_target_logits, p * share, scale,
                                           on_losses);
                Values expected(rows, share);
                for (std::int64_t r = 0; r < rows; ++r)
                    for (std::int64_t c = 0; c < share; ++c) expected(r, c) = softmax(r, p * share + c);
                expect_close(piece, expected, "gradient of the logits, " + text);
                expect_close(on_losses, losses, "losses, " + text);
            }
        }
}

TEST_P(ModelOperations, AdamWFollowsThePaperOverSeveralSteps) {
    const auto type = device().accumulation_type();
    backend::AdamW settings{0.01, 0.9, 0.999, 1e-8, 0.1, 0.5, 1};
    for (const std::int64_t count : {1, 7, 1003}) {
        Values p = random_.between(-1, 1, 1, count), m(1, count), v(1, count);
        Operand on_p = contiguous(type, p), on_m = contiguous(type, m), on_v = contiguous(type, v);
        for (settings.step = 1; settings.step <= 3; ++settings.step) {
            const Values gradient = random_.normal(0.1, 1, count);
            const double step = static_cast<double>(settings.step);
            for (std::size_t i = 0; i < p.at.size(); ++i) {
                const double g = gradient.at[i] * settings.gradient_scale;
                m.at[i] = settings.beta1 * m.at[i] + (1.0 - settings.beta1) * g;
                v.at[i] = settings.beta2 * v.at[i] + (1.0 - settings.beta2) * g * g;
                const double m_hat = m.at[i] / (1.0 - std::pow(settings.beta1, step));
                const double v_hat = v.at[i] / (1.0 - std::pow(settings.beta2, step));
                p.at[i] -= settings.learning_rate *
                           (m_hat / (std::sqrt(v_hat) + settings.epsilon) + settings.weight_decay * p.at[i]);
            }
            Operand on_gradient = contiguous(type, gradient);
            operations().adamw(settings, on_gradient, on_p, on_m, on_v);
            const std::string text = std::to_string(count) + " values after step " + std::to_string(settings.step);
            expect_close(on_p, p, text);
            expect_close(on_m, m, "first moments of " + text);
            expect_close(on_v, v, "second moments of " + text);
        }
    }
}

TEST_P(ModelOperations, SumOfSquaresIsAddedInFloat64) {
    for (const auto& [rows, columns] : {std::pair{1, 1}, {3, 77}, {50, 333}}) {
        const Values x = random_.normal(1.0, rows, columns);
        double expected = 0.5;
        for (const double value : x.at) expected += value * value;
        for (const bool of_sums : {false, true}) {
            Operand on_x = of_sums ? accumulated(x) : working(x);
            Operand result = contiguous(backend::DataType::kFloat64, Values(1, 1, 0.5));
            operations().sum_of_squares(on_x, result);
            expect_close(result, Values(1, 1, expected), shape_text(rows, columns));
        }
    }
}

HEADWAY_CONFORMANCE(ModelOperations);

}  // namespace
}  // namespace headway::tests
