#include "policies/learning/network.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "policies/learning/ppo.h"

namespace headway::policies {
namespace {

constexpr NetworkShape kSmallShape{5, 4, 7, 6, 5, 4, 6};

/// Decisions with 1 to 5 candidates.
NetworkInput random_input(const NetworkShape& shape, int decisions, scenarios::RandomStream& stream) {
    NetworkInput input;
    for (int d = 0; d < decisions; ++d) {
        const std::size_t count = 1 + static_cast<std::size_t>(stream.below(5));
        for (int i = 0; i < shape.global_features; ++i) input.global.push_back(stream.normal());
        for (std::size_t row = 0; row < count; ++row) {
            for (int i = 0; i < shape.candidate_features; ++i) input.candidates.push_back(stream.normal());
            input.gain.push_back(0.1 * stream.normal());
            input.cost.push_back(stream.uniform(0.0, 2.0));
        }
        input.first.push_back(input.first.back() + count);
    }
    return input;
}

std::vector<double> random_parameters(const NetworkShape& shape, scenarios::RandomStream& stream) {
    std::vector<double> parameters = Network::initial_parameters(shape, stream);
    for (double& parameter : parameters) parameter += 0.2 * stream.normal();  // biases, small heads and beta too
    return parameters;
}

TEST(Network, GradientsOfLogitsAndValuesAgreeWithFiniteDifferences) {
    scenarios::RandomStream stream(3, "test.gradient");
    const NetworkInput input = random_input(kSmallShape, 6, stream);
    std::vector<double> parameters = random_parameters(kSmallShape, stream);
    std::vector<double> by_logits(input.rows()), by_values(input.decisions());
    for (double& weight : by_logits) weight = stream.normal();
    for (double& weight : by_values) weight = stream.normal();

    Network network(kSmallShape);
    NetworkOutput output;
    const auto loss = [&] {
        network.set_parameters(parameters);
        network.forward(input, output);
        double sum = 0.0;
        for (std::size_t i = 0; i < by_logits.size(); ++i) sum += by_logits[i] * output.logits[i];
        for (std::size_t i = 0; i < by_values.size(); ++i) sum += by_values[i] * output.values[i];
        return sum;
    };
    loss();
    std::vector<double> gradient(parameters.size(), 0.0);
    network.backward(by_logits, by_values, gradient);
    std::size_t moved = 0;
    for (std::size_t i = 0; i < parameters.size(); ++i) {
        constexpr double kStep = 1e-5;
        const double kept = parameters[i];
        parameters[i] = kept + kStep;
        const double above = loss();
        parameters[i] = kept - kStep;
        const double below = loss();
        parameters[i] = kept;
        const double measured = (above - below) / (2.0 * kStep);
        EXPECT_NEAR(gradient[i], measured, 1e-6 * (1.0 + std::abs(measured))) << "parameter " << i;
        moved += std::abs(gradient[i]) > 1e-9 ? 1 : 0;
    }
    EXPECT_EQ(moved, parameters.size()) << "a parameter that nothing depends on";
}

TEST(Network, GradientsOfThePpoLossAgreeWithFiniteDifferences) {
    scenarios::RandomStream stream(4, "test.ppo_gradient");
    for (int trial = 0; trial < 50; ++trial) {
        const std::size_t count = 2 + static_cast<std::size_t>(stream.below(5));
        std::vector<double> logits(count);
        for (double& logit : logits) logit = stream.normal();
        Step step;
        step.allowed.assign(count, 1);
        if (count > 2) step.allowed[1] = 0;
        step.action = 0;
        std::vector<double> log_probabilities(count);
        log_softmax(logits, step.allowed, log_probabilities);
        step.log_probability = log_probabilities[0] + 0.3 * stream.normal();
        PpoOptions options;
        options.entropy = 0.05;
        const double advantage = stream.normal();
        const auto loss = [&](double value) {
            std::vector<double> ignored(count, 0.0);
            double also_ignored = 0.0;
            const PpoTerms terms = ppo_terms(logits, value, step, advantage, 0.7, options, ignored, also_ignored);
            return terms.policy_loss - options.entropy * terms.entropy + options.value_loss * terms.value_loss;
        };
        std::vector<double> by_logits(count, 0.0);
        double by_value = 0.0;
        ppo_terms(logits, 0.2, step, advantage, 0.7, options, by_logits, by_value);
        constexpr double kStep = 1e-6;
        EXPECT_NEAR(by_value, (loss(0.2 + kStep) - loss(0.2 - kStep)) / (2 * kStep), 1e-6);
        for (std::size_t i = 0; i < count; ++i) {
            const double kept = logits[i];
            logits[i] = kept + kStep;
            const double above = loss(0.2);
            logits[i] = kept - kStep;
            const double below = loss(0.2);
            logits[i] = kept;
            EXPECT_NEAR(by_logits[i], (above - below) / (2 * kStep), 1e-6);
        }
    }
}

TEST(Network, AlikeCandidatesScoreAlikeWhereverTheyStand) {
    scenarios::RandomStream stream(5, "test.permutation");
    NetworkInput input;
    input.global = {0.3, -1.0, 0.5, 2.0, 0.0};
    const std::vector<std::vector<double>> rows = {{1, 0, 2, -1}, {0, 0.5, 0, 1}, {-2, 1, 1, 0}};
    const std::vector<double> gain = {0.0, 0.2, -0.1};
    const std::vector<double> cost = {0.0, 0.7, 0.1};
    Network network(kSmallShape);
    network.set_parameters(random_parameters(kSmallShape, stream));
    const auto logits_of = [&](const std::vector<std::size_t>& order) {
        input.candidates.clear();
        input.gain.clear();
        input.cost.clear();
        for (const std::size_t row : order) {
            input.candidates.insert(input.candidates.end(), rows[row].begin(), rows[row].end());
            input.gain.push_back(gain[row]);
            input.cost.push_back(cost[row]);
        }
        input.first = {0, order.size()};
        NetworkOutput output;
        network.forward(input, output);
        return output.logits;
    };
    const std::vector<double> straight = logits_of({0, 1, 2});
    const std::vector<double> turned = logits_of({2, 0, 1});
    EXPECT_DOUBLE_EQ(straight[0], turned[1]);
    EXPECT_DOUBLE_EQ(straight[1], turned[2]);
    EXPECT_DOUBLE_EQ(straight[2], turned[0]);
    EXPECT_NE(straight[0], straight[1]);
}

TEST(Network, StartsAsTheRuleThatSwitchesIfItPaysWithinTheHorizon) {
    scenarios::RandomStream stream(6, "test.initial");
    Network network(kSmallShape);
    network.set_parameters(Network::initial_parameters(kSmallShape, stream));
    const NetworkInput input = random_input(kSmallShape, 40, stream);
    NetworkOutput output;
    network.forward(input, output);
    for (std::size_t d = 0; d < input.decisions(); ++d) {
        EXPECT_NEAR(output.horizons[d], Network::kHorizon, 0.15 * Network::kHorizon);
        for (std::size_t row = input.first[d]; row < input.first[d + 1]; ++row) {
            EXPECT_NEAR(output.logits[row], Network::kHorizon * input.gain[row] - input.cost[row],
                        0.1 + 0.15 * Network::kHorizon * std::abs(input.gain[row]));
        }
    }
}

TEST(Network, BeginsWithOrthogonalLayers) {
    scenarios::RandomStream stream(7, "test.orthogonal");
    const std::vector<double> parameters = Network::initial_parameters(kSmallShape, stream);
    // The first layer, [7 x 5] column by column: its columns are orthonormal.
    for (int a = 0; a < 5; ++a) {
        for (int b = 0; b < 5; ++b) {
            double dot = 0.0;
            for (int i = 0; i < 7; ++i) {
                dot +=
                    parameters[static_cast<std::size_t>(a * 7 + i)] * parameters[static_cast<std::size_t>(b * 7 + i)];
            }
            EXPECT_NEAR(dot, a == b ? 1.0 : 0.0, 1e-12);
        }
    }
}

TEST(Network, RefusesInputOfAnotherShape) {
    Network network(kSmallShape);
    EXPECT_THROW(network.set_parameters(std::vector<double>(3)), std::invalid_argument);
    scenarios::RandomStream stream(8, "test.shape");
    NetworkInput input = random_input(kSmallShape, 2, stream);
    input.gain.pop_back();
    NetworkOutput output;
    EXPECT_THROW(network.forward(input, output), std::invalid_argument);
}

TEST(LogSoftmax, GivesNothingToWhatIsForbidden) {
    const std::vector<double> logits = {1.0, 500.0, 2.0, -500.0};
    const std::vector<std::uint8_t> allowed = {1, 0, 1, 1};
    std::vector<double> result(4);
    log_softmax(logits, allowed, result);
    EXPECT_EQ(result[1], -std::numeric_limits<double>::infinity());
    EXPECT_NEAR(std::exp(result[0]) + std::exp(result[2]), 1.0, 1e-12);
    EXPECT_NEAR(result[2] - result[0], 1.0, 1e-12);
    EXPECT_THROW(log_softmax(logits, std::vector<std::uint8_t>(4, 0), result), std::invalid_argument);
}

}  // namespace
}  // namespace headway::policies
