#include "policies/learning/network.h"

#include <Eigen/Core>
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <stdexcept>
#include <string>

#include "policies/learning/features.h"

namespace headway::policies {

using NetworkMatrix = Eigen::MatrixXd;  // owned, so that alignment and with it the order of sums never vary

struct NetworkLayer {
    NetworkMatrix weights;  ///< [outputs x inputs]
    NetworkMatrix bias;     ///< [outputs x 1], or empty
};

struct NetworkLayerSize {
    int outputs;
    int inputs;
    bool bias;
    double gain;  ///< of the orthogonal matrix at the start
};

namespace {

using ConstMap = Eigen::Map<const Eigen::MatrixXd>;

/// act(x) = x / sqrt(1 + x^2), in place.
void isru_inplace(NetworkMatrix& x) {
    x.array() /= (1.0 + x.array().square()).sqrt();
}

/// by_x = by_y act'(x), written by y = act(x): act' = (1 - y^2)^(3/2).
void isru_backward(NetworkMatrix& by_y, const NetworkMatrix& y) {
    const auto rest = 1.0 - y.array().square();
    by_y.array() *= rest * rest.sqrt();
}

/// The blocks of the flat parameter vector, in order; each weight matrix column by column, then its bias.
enum LayerIndex : std::size_t {
    kEncoder,
    kEmbedding,
    kHorizonHead,
    kScoreState,  ///< the part of the first score layer that sees the embedding; carries the bias
    kScoreCandidate,
    kScoreTop,
    kLogit,  ///< no bias: it would move all candidates alike
    kBeta,   ///< one number, the logarithm of beta
    kValueFirst,
    kValueSecond,
    kValueHead,
    kLayers
};

std::array<NetworkLayerSize, kLayers> layer_sizes(const NetworkShape& s) {
    return {{
        {s.encoder, s.global_features, true, 1.0},
        {s.embedding, s.encoder, true, 1.0},
        {1, s.embedding, true, 0.01},
        {s.score, s.embedding, true, 1.0},
        {s.score, s.candidate_features, false, 1.0},
        {s.score_top, s.score, true, 1.0},
        {1, s.score_top, false, 0.01},
        {1, 1, false, 0.0},
        {s.value, s.global_features, true, 1.0},
        {s.value, s.value, true, 1.0},
        {1, s.value, true, 0.1},
    }};
}

/// Rows (or columns, where there are more rows) of a random matrix made orthonormal by Gram-Schmidt, times `gain`.
NetworkMatrix orthogonal_matrix(int rows, int columns, double gain, scenarios::RandomStream& stream) {
    const bool tall = rows > columns;
    const int vectors = tall ? columns : rows;
    const int length = tall ? rows : columns;
    NetworkMatrix basis(length, vectors);
    for (int v = 0; v < vectors; ++v) {
        for (int i = 0; i < length; ++i) basis(i, v) = stream.normal();
        for (int pass = 0; pass < 2; ++pass) {  // twice is enough (Kahan)
            for (int other = 0; other < v; ++other) {
                double dot = 0.0;
                for (int i = 0; i < length; ++i) dot += basis(i, v) * basis(i, other);
                for (int i = 0; i < length; ++i) basis(i, v) -= dot * basis(i, other);
            }
        }
        double square = 0.0;
        for (int i = 0; i < length; ++i) square += basis(i, v) * basis(i, v);
        const double norm = std::sqrt(square);
        for (int i = 0; i < length; ++i) basis(i, v) /= norm;
    }
    NetworkMatrix result = tall ? basis : NetworkMatrix(basis.transpose());
    result *= gain;
    return result;
}

}  // namespace

NetworkShape default_shape() {
    NetworkShape shape;
    shape.global_features = static_cast<int>(global_features().size());
    shape.candidate_features = static_cast<int>(candidate_features().size());
    return shape;
}

void NetworkInput::clear() {
    first.assign(1, 0);
    global.clear();
    candidates.clear();
    gain.clear();
    cost.clear();
}

struct Network::Impl {
    NetworkShape shape;
    std::array<NetworkLayerSize, kLayers> sizes;
    std::array<NetworkLayer, kLayers> layers;

    // Activations of the last forward; columns are decisions or rows.
    std::vector<std::size_t> first;
    std::vector<double> gain;
    std::vector<double> cost;
    NetworkMatrix global, candidates;
    NetworkMatrix encoded, embedded, horizon_act, score_state, scored, scored_top, value_first, value_second;
    std::vector<double> horizon;
    double beta = 1.0;

    explicit Impl(const NetworkShape& s) : shape(s), sizes(layer_sizes(s)) {
        for (const NetworkLayerSize& size : sizes) {
            if (size.outputs < 1 || size.inputs < 1) throw std::invalid_argument("network: every layer needs a size");
        }
        for (std::size_t i = 0; i < kLayers; ++i) {
            layers[i].weights = NetworkMatrix::Zero(sizes[i].outputs, sizes[i].inputs);
            if (sizes[i].bias) layers[i].bias = NetworkMatrix::Zero(sizes[i].outputs, 1);
        }
    }

    void affine(LayerIndex index, const NetworkMatrix& input, NetworkMatrix& output) const {
        output.noalias() = layers[index].weights * input;
        if (sizes[index].bias) output.colwise() += layers[index].bias.col(0);
    }

    /// Adds the layer's gradient to its place in `gradient`; returns the derivative by its input where asked for.
    void layer_backward(LayerIndex index, const NetworkMatrix& input, const NetworkMatrix& by_output,
                        std::span<double> gradient, NetworkMatrix* by_input) const {
        std::size_t at = 0;
        for (std::size_t i = 0; i < index; ++i) at += block_size(sizes[i]);
        const NetworkMatrix by_weights = by_output * input.transpose();
        for (Eigen::Index i = 0; i < by_weights.size(); ++i) gradient[at++] += by_weights.data()[i];
        if (sizes[index].bias) {
            for (Eigen::Index row = 0; row < by_output.rows(); ++row) {
                double sum = 0.0;
                for (Eigen::Index column = 0; column < by_output.cols(); ++column) sum += by_output(row, column);
                gradient[at++] += sum;
            }
        }
        if (by_input) by_input->noalias() = layers[index].weights.transpose() * by_output;
    }

    static std::size_t block_size(const NetworkLayerSize& size) {
        return static_cast<std::size_t>(size.outputs) * static_cast<std::size_t>(size.inputs + (size.bias ? 1 : 0));
    }
};

Network::Network(const NetworkShape& shape) : impl_(std::make_unique<Impl>(shape)) {}
Network::~Network() = default;
Network::Network(Network&&) noexcept = default;
Network& Network::operator=(Network&&) noexcept = default;

std::size_t Network::parameter_count(const NetworkShape& shape) {
    std::size_t count = 0;
    for (const NetworkLayerSize& size : layer_sizes(shape)) count += Impl::block_size(size);
    return count;
}

std::vector<double> Network::initial_parameters(const NetworkShape& shape, scenarios::RandomStream& stream) {
    std::vector<double> parameters;
    parameters.reserve(parameter_count(shape));
    for (const NetworkLayerSize& size : layer_sizes(shape)) {
        const NetworkMatrix weights = orthogonal_matrix(size.outputs, size.inputs, size.gain, stream);
        parameters.insert(parameters.end(), weights.data(), weights.data() + weights.size());
        if (size.bias) parameters.insert(parameters.end(), static_cast<std::size_t>(size.outputs), 0.0);
    }
    return parameters;
}

void Network::set_parameters(std::span<const double> parameters) {
    if (parameters.size() != parameter_count(impl_->shape)) {
        throw std::invalid_argument("network: " + std::to_string(parameters.size()) + " parameters for a shape of " +
                                    std::to_string(parameter_count(impl_->shape)));
    }
    const double* next = parameters.data();
    for (std::size_t i = 0; i < kLayers; ++i) {
        NetworkLayer& layer = impl_->layers[i];
        std::copy(next, next + layer.weights.size(), layer.weights.data());
        next += layer.weights.size();
        if (!impl_->sizes[i].bias) continue;
        std::copy(next, next + layer.bias.size(), layer.bias.data());
        next += layer.bias.size();
    }
    impl_->beta = scenarios::portable_exp(std::clamp(impl_->layers[kBeta].weights(0, 0), -20.0, 20.0));
}

void Network::forward(const NetworkInput& input, NetworkOutput& output) {
    Impl& net = *impl_;
    const auto decisions = static_cast<Eigen::Index>(input.decisions());
    const auto rows = static_cast<Eigen::Index>(input.rows());
    if (input.global.size() != input.decisions() * static_cast<std::size_t>(net.shape.global_features) ||
        input.candidates.size() != input.rows() * static_cast<std::size_t>(net.shape.candidate_features) ||
        input.gain.size() != input.rows() || input.cost.size() != input.rows()) {
        throw std::invalid_argument("network: input of another shape");
    }
    net.first = input.first;
    net.gain = input.gain;
    net.cost = input.cost;
    net.global = ConstMap(input.global.data(), net.shape.global_features, decisions);
    net.candidates = ConstMap(input.candidates.data(), net.shape.candidate_features, rows);

    net.affine(kEncoder, net.global, net.encoded);
    isru_inplace(net.encoded);
    net.affine(kEmbedding, net.encoded, net.embedded);
    isru_inplace(net.embedded);
    net.affine(kHorizonHead, net.embedded, net.horizon_act);
    isru_inplace(net.horizon_act);

    net.affine(kScoreState, net.embedded, net.score_state);
    net.affine(kScoreCandidate, net.candidates, net.scored);
    for (Eigen::Index d = 0; d < decisions; ++d) {
        const auto begin = static_cast<Eigen::Index>(net.first[static_cast<std::size_t>(d)]);
        const auto end = static_cast<Eigen::Index>(net.first[static_cast<std::size_t>(d) + 1]);
        for (Eigen::Index row = begin; row < end; ++row) net.scored.col(row) += net.score_state.col(d);
    }
    isru_inplace(net.scored);
    net.affine(kScoreTop, net.scored, net.scored_top);
    isru_inplace(net.scored_top);
    NetworkMatrix correction;
    net.affine(kLogit, net.scored_top, correction);

    output.logits.resize(input.rows());
    net.horizon.resize(input.decisions());
    for (std::size_t d = 0; d < input.decisions(); ++d) {
        net.horizon[d] =
            kHorizon * scenarios::portable_exp(kHorizonReach * net.horizon_act(0, static_cast<Eigen::Index>(d)));
        for (std::size_t row = net.first[d]; row < net.first[d + 1]; ++row) {
            output.logits[row] = net.beta * (net.gain[row] * net.horizon[d] - net.cost[row]) +
                                 correction(0, static_cast<Eigen::Index>(row));
        }
    }
    output.horizons = net.horizon;

    net.affine(kValueFirst, net.global, net.value_first);
    isru_inplace(net.value_first);
    net.affine(kValueSecond, net.value_first, net.value_second);
    isru_inplace(net.value_second);
    NetworkMatrix values;
    net.affine(kValueHead, net.value_second, values);
    output.values.assign(values.data(), values.data() + values.size());
}

void Network::backward(std::span<const double> by_logits, std::span<const double> by_values,
                       std::span<double> gradient) {
    const Impl& net = *impl_;
    const auto decisions = static_cast<Eigen::Index>(net.horizon.size());
    const auto rows = static_cast<Eigen::Index>(net.gain.size());
    if (by_logits.size() != net.gain.size() || by_values.size() != net.horizon.size() ||
        gradient.size() != parameter_count(net.shape)) {
        throw std::invalid_argument("network: backward of another batch than the last forward");
    }
    // value
    NetworkMatrix by_value = ConstMap(by_values.data(), 1, decisions);
    NetworkMatrix by_second, by_first;
    net.layer_backward(kValueHead, net.value_second, by_value, gradient, &by_second);
    isru_backward(by_second, net.value_second);
    net.layer_backward(kValueSecond, net.value_first, by_second, gradient, &by_first);
    isru_backward(by_first, net.value_first);
    net.layer_backward(kValueFirst, net.global, by_first, gradient, nullptr);

    // the analytic term
    NetworkMatrix by_horizon_act(1, decisions);
    double by_log_beta = 0.0;
    for (Eigen::Index d = 0; d < decisions; ++d) {
        const auto index = static_cast<std::size_t>(d);
        double by_horizon = 0.0;
        for (std::size_t row = net.first[index]; row < net.first[index + 1]; ++row) {
            by_horizon += by_logits[row] * net.beta * net.gain[row];
            by_log_beta += by_logits[row] * net.beta * (net.gain[row] * net.horizon[index] - net.cost[row]);
        }
        by_horizon_act(0, d) = by_horizon * net.horizon[index] * kHorizonReach;
    }
    std::size_t beta_at = 0;
    for (std::size_t i = 0; i < kBeta; ++i) beta_at += Impl::block_size(net.sizes[i]);
    gradient[beta_at] += by_log_beta;

    // the score function
    const NetworkMatrix by_logit = ConstMap(by_logits.data(), 1, rows);
    NetworkMatrix by_top, by_scored;
    net.layer_backward(kLogit, net.scored_top, by_logit, gradient, &by_top);
    isru_backward(by_top, net.scored_top);
    net.layer_backward(kScoreTop, net.scored, by_top, gradient, &by_scored);
    isru_backward(by_scored, net.scored);
    net.layer_backward(kScoreCandidate, net.candidates, by_scored, gradient, nullptr);
    NetworkMatrix by_state = NetworkMatrix::Zero(net.shape.score, decisions);
    for (Eigen::Index d = 0; d < decisions; ++d) {
        const auto index = static_cast<std::size_t>(d);
        for (std::size_t row = net.first[index]; row < net.first[index + 1]; ++row) {
            by_state.col(d) += by_scored.col(static_cast<Eigen::Index>(row));
        }
    }
    NetworkMatrix by_embedded, by_embedded_of_horizon, by_encoded;
    net.layer_backward(kScoreState, net.embedded, by_state, gradient, &by_embedded);
    isru_backward(by_horizon_act, net.horizon_act);
    net.layer_backward(kHorizonHead, net.embedded, by_horizon_act, gradient, &by_embedded_of_horizon);
    by_embedded += by_embedded_of_horizon;
    isru_backward(by_embedded, net.embedded);
    net.layer_backward(kEmbedding, net.encoded, by_embedded, gradient, &by_encoded);
    isru_backward(by_encoded, net.encoded);
    net.layer_backward(kEncoder, net.global, by_encoded, gradient, nullptr);
}

void log_softmax(std::span<const double> logits, std::span<const std::uint8_t> allowed, std::span<double> result) {
    constexpr double kForbidden = -std::numeric_limits<double>::infinity();
    double highest = kForbidden;
    for (std::size_t i = 0; i < logits.size(); ++i) {
        if (allowed.empty() || allowed[i]) highest = std::max(highest, logits[i]);
    }
    if (highest == kForbidden) throw std::invalid_argument("log_softmax: no candidate is allowed");
    double sum = 0.0;
    for (std::size_t i = 0; i < logits.size(); ++i) {
        if (allowed.empty() || allowed[i]) sum += scenarios::portable_exp(std::max(logits[i] - highest, -700.0));
    }
    const double log_sum = highest + scenarios::portable_log(sum);
    for (std::size_t i = 0; i < logits.size(); ++i) {
        result[i] = allowed.empty() || allowed[i] ? logits[i] - log_sum : kForbidden;
    }
}

}  // namespace headway::policies
