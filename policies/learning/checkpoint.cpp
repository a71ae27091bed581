#include "policies/learning/checkpoint.h"

#include <stdexcept>

#include "policies/learning/framed_file.h"
#include "policies/learning/policy_body.h"
#include "scenarios/language/config_error.h"

namespace headway::policies {

namespace {

constexpr FileFrame kCheckpointFrame{"HEADWAYC", "training checkpoint", kCheckpointVersion};

/// One list of the options, which writes and reads them.
template <class Options, class Visit>
void visit_options(Options& options, const Visit& visit) {
    visit(options.seed);
    visit(options.updates);
    visit(options.ppo.learning_rate);
    visit(options.ppo.discount);
    visit(options.ppo.lambda);
    visit(options.ppo.clip);
    visit(options.ppo.entropy);
    visit(options.ppo.value_loss);
    visit(options.ppo.gradient_norm);
    visit(options.ppo.epochs);
    visit(options.ppo.minibatches);
    visit(options.ppo.target_kl);
    visit(options.ppo.group_baseline);
    visit(options.imitation_rate);
    visit(options.imitation_minibatch);
}

}  // namespace

std::string checkpoint_bytes(const TrainerState& state) {
    ByteWriter out;
    visit_options(state.options, [&](const auto& option) { out.number(option); });
    out.text(state.options.curriculum);
    write_policy_body(out, state.policy);
    out.numbers(state.adam.first);
    out.numbers(state.adam.second);
    out.number(state.adam.steps);
    out.numbers(state.histogram.data());
    out.numbers(state.novelty.data());
    return framed_bytes(kCheckpointFrame, out.bytes());
}

TrainerState state_from_checkpoint(std::string_view bytes, const std::string& name) {
    const std::string_view content = unframed_bytes(kCheckpointFrame, bytes, name);
    try {
        ByteReader in(content);
        TrainerState state;
        visit_options(state.options, [&]<class T>(T& option) { option = in.number<T>(); });
        state.options.curriculum = in.text();
        state.policy = read_policy_body(in);
        state.options.shape = state.policy.shape;
        state.adam.first = in.numbers();
        state.adam.second = in.numbers();
        state.adam.steps = in.number<std::int64_t>();
        state.histogram = FeatureHistogram(state.policy.global_normaliser.mean.size());
        for (std::vector<double>* data : {&state.histogram.data(), &state.novelty.data()}) {
            std::vector<double> read = in.numbers();
            if (read.size() != data->size()) throw std::runtime_error("histogram of another size");
            *data = std::move(read);
        }
        const std::size_t moments = state.adam.first.size();
        if (moments != state.adam.second.size() || (moments != 0 && moments != state.policy.parameters.size())) {
            throw std::runtime_error("moments of another number of parameters");
        }
        if (!in.at_end()) throw std::runtime_error("bytes after the end");
        return state;
    } catch (const std::runtime_error& error) {
        throw scenarios::ConfigError(name + ": the training checkpoint is corrupt (" + error.what() + ")");
    }
}

}  // namespace headway::policies
