#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "policies/learning/trained_policy.h"
#include "scenarios/language/random.h"

namespace headway::policies {

/// A batch of decisions, normalised. Candidates of decision d are rows first[d] .. first[d+1]-1.
struct NetworkInput {
    std::vector<std::size_t> first{0};  ///< [decisions + 1]
    std::vector<double> global;         ///< [decisions x global features]
    std::vector<double> candidates;     ///< [rows x candidate features]
    std::vector<double> gain;           ///< [rows] Features::gain
    std::vector<double> cost;           ///< [rows] Features::cost

    std::size_t decisions() const { return first.size() - 1; }
    std::size_t rows() const { return first.back(); }
    void clear();
};

struct NetworkOutput {
    std::vector<double> logits;    ///< [rows]
    std::vector<double> values;    ///< [decisions]
    std::vector<double> horizons;  ///< [decisions], decision intervals
};

/// One score function for every candidate of every decision, and a value function of the state:
///
///     embedding = act(W2 act(W1 global))
///     horizon   = kHorizon exp(kHorizonReach act(w embedding + b))
///     logit     = beta (gain horizon - cost) + w act(W4 act(W3 [embedding, candidate]))
///     value     = w act(W6 act(W5 global))
///
/// The first term is what a candidate earns until the present conditions are expected to end, less what its pause
/// costs; the network learns how long conditions last and what else speaks for or against a candidate. With small
/// weights it is the rule "switch if it pays within kHorizon intervals", which is where training begins.
///
/// act(x) = x / sqrt(1 + x^2) (ISRU, Carlile et al. 2017): smooth, bounded, and made of operations that round alike on
/// every machine. Not thread-safe: forward keeps activations for backward.
class Network {
  public:
    static constexpr double kHorizon = 12.0;
    static constexpr double kHorizonReach = 3.0;

    explicit Network(const NetworkShape& shape);
    ~Network();
    Network(Network&&) noexcept;
    Network& operator=(Network&&) noexcept;

    static std::size_t parameter_count(const NetworkShape& shape);
    /// Orthogonal layers (Saxe et al. 2014), small last ones, biases 0, beta 1.
    static std::vector<double> initial_parameters(const NetworkShape& shape, scenarios::RandomStream& stream);

    /// Throws std::invalid_argument for another number than `parameter_count`.
    void set_parameters(std::span<const double> parameters);
    void forward(const NetworkInput& input, NetworkOutput& output);
    /// Gradient of a loss, given its derivatives by logits and values of the last `forward`, added to `gradient`
    /// [parameters].
    void backward(std::span<const double> by_logits, std::span<const double> by_values, std::span<double> gradient);

  private:
    struct Impl;
    std::unique_ptr<Impl> impl_;
};

/// Logarithms of the probabilities with which a decision's candidates are drawn: softmax over the allowed ones (empty
/// `allowed`: all), minus infinity elsewhere. Throws std::invalid_argument where nothing is allowed.
void log_softmax(std::span<const double> logits, std::span<const std::uint8_t> allowed, std::span<double> result);

}  // namespace headway::policies
