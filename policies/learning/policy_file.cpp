#include "policies/learning/policy_file.h"

#include <cmath>
#include <fstream>
#include <iterator>
#include <system_error>

#include "policies/learning/features.h"
#include "policies/learning/framed_file.h"
#include "policies/learning/network.h"
#include "policies/learning/policy_body.h"
#include "scenarios/language/config_error.h"
#include "scenarios/record/whole_file.h"

namespace headway::policies {

namespace {

using scenarios::ConfigError;

constexpr FileFrame kPolicyFrame{"HEADWAYP", "policy file", kPolicyFileVersion};

void write_shape(ByteWriter& out, const NetworkShape& shape) {
    for (const int size : {shape.global_features, shape.candidate_features, shape.encoder, shape.embedding, shape.score,
                           shape.score_top, shape.value}) {
        out.number<std::int32_t>(size);
    }
}

NetworkShape read_shape(ByteReader& in) {
    NetworkShape shape;
    for (int* size : {&shape.global_features, &shape.candidate_features, &shape.encoder, &shape.embedding, &shape.score,
                      &shape.score_top, &shape.value}) {
        *size = in.number<std::int32_t>();
        if (*size < 1 || *size > 65536) throw std::runtime_error("a layer of " + std::to_string(*size));
    }
    return shape;
}

void write_normaliser(ByteWriter& out, const Normaliser& normaliser) {
    out.number(normaliser.count);
    out.numbers(normaliser.mean);
    out.numbers(normaliser.squares);
}

Normaliser read_normaliser(ByteReader& in, int features) {
    Normaliser normaliser;
    normaliser.count = in.number<double>();
    normaliser.mean = in.numbers();
    normaliser.squares = in.numbers();
    if (normaliser.mean.size() != static_cast<std::size_t>(features) ||
        normaliser.squares.size() != normaliser.mean.size()) {
        throw std::runtime_error("statistics of another number of features");
    }
    return normaliser;
}

}  // namespace

void write_policy_body(ByteWriter& out, const TrainedPolicy& policy) {
    out.number(policy.provenance.seed);
    out.number(policy.provenance.updates);
    out.number(policy.provenance.imitation_epochs);
    out.number(policy.provenance.decisions);
    out.text(policy.provenance.curriculum);
    out.text(policy.provenance.note);
    write_shape(out, policy.shape);
    out.numbers(policy.parameters);
    write_normaliser(out, policy.global_normaliser);
    write_normaliser(out, policy.candidate_normaliser);
    std::vector<double> ranges;
    for (const FeatureRange& range : policy.global_ranges) {
        ranges.push_back(range.low);
        ranges.push_back(range.high);
    }
    out.numbers(ranges);
    out.number(policy.novelty_limit);
}

TrainedPolicy read_policy_body(ByteReader& in) {
    TrainedPolicy policy;
    policy.provenance.seed = in.number<std::uint64_t>();
    policy.provenance.updates = in.number<std::int64_t>();
    policy.provenance.imitation_epochs = in.number<std::int64_t>();
    policy.provenance.decisions = in.number<std::int64_t>();
    policy.provenance.curriculum = in.text();
    policy.provenance.note = in.text();
    policy.shape = read_shape(in);
    policy.parameters = in.numbers();
    if (policy.parameters.size() != Network::parameter_count(policy.shape)) {
        throw std::runtime_error(std::to_string(policy.parameters.size()) + " parameters for a network of " +
                                 std::to_string(Network::parameter_count(policy.shape)));
    }
    policy.global_normaliser = read_normaliser(in, policy.shape.global_features);
    policy.candidate_normaliser = read_normaliser(in, policy.shape.candidate_features);
    const std::vector<double> ranges = in.numbers();
    if (!ranges.empty() && ranges.size() != 2 * policy.global_normaliser.mean.size()) {
        throw std::runtime_error("ranges of another number of features");
    }
    for (std::size_t i = 0; i < ranges.size(); i += 2) policy.global_ranges.push_back({ranges[i], ranges[i + 1]});
    policy.novelty_limit = in.number<double>();
    for (const double parameter : policy.parameters) {
        if (!std::isfinite(parameter)) throw std::runtime_error("a parameter that is no number");
    }
    return policy;
}

std::string policy_bytes(const TrainedPolicy& policy) {
    ByteWriter out;
    write_policy_body(out, policy);
    return framed_bytes(kPolicyFrame, out.bytes());
}

TrainedPolicy policy_from_bytes(std::string_view bytes, const std::string& name) {
    const std::string_view content = unframed_bytes(kPolicyFrame, bytes, name);
    try {
        ByteReader body(content);
        TrainedPolicy policy = read_policy_body(body);
        if (!body.at_end()) throw std::runtime_error("bytes after the end");
        if (policy.shape.global_features != static_cast<int>(global_features().size()) ||
            policy.shape.candidate_features != static_cast<int>(candidate_features().size())) {
            throw std::runtime_error(std::to_string(policy.shape.global_features) + " and " +
                                     std::to_string(policy.shape.candidate_features) + " features instead of " +
                                     std::to_string(global_features().size()) + " and " +
                                     std::to_string(candidate_features().size()));
        }
        return policy;
    } catch (const std::runtime_error& error) {
        throw ConfigError(name + ": the policy file is corrupt (" + error.what() + ")");
    }
}

void write_policy(const std::filesystem::path& path, const TrainedPolicy& policy) {
    scenarios::WholeFile file(path);
    file.write(policy_bytes(policy));
    file.commit();
}

TrainedPolicy read_policy(const std::filesystem::path& path) {
    std::ifstream file(path, std::ios::binary);
    std::error_code ignored;
    if (!file || std::filesystem::is_directory(path, ignored)) {
        throw ConfigError(path.string() + ": cannot read the policy file");
    }
    const std::string bytes{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
    return policy_from_bytes(bytes, path.string());
}

}  // namespace headway::policies
