#include "tests/backend/training/training_case.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <limits>
#include <mutex>
#include <numeric>

#include "backend/host/host_device.h"
#include "scenarios/costs/parameters.h"
#include "scenarios/language/strategy.h"
#include "tests/backend/device/bfloat16_device.h"
#include "tests/backend/training/thread_ranks.h"

namespace headway::tests {

using backend::DataType;
using backend::StateSlice;
using scenarios::BlockKind;

namespace {

constexpr std::chrono::seconds kLongestWait{20};  // a step takes milliseconds

std::vector<double> values_of(backend::Device& device, const backend::Tensor& tensor) {
    std::vector<double> values(static_cast<std::size_t>(tensor.count()));
    if (tensor.type == DataType::kFloat64) {
        device.to_host(tensor, values.data());
    } else {
        std::vector<float> narrow(values.size());
        device.to_host(tensor, narrow.data());
        std::copy(narrow.begin(), narrow.end(), values.begin());
    }
    return values;
}

void put_values(backend::Device& device, const std::vector<double>& values, const backend::Tensor& tensor) {
    if (tensor.type == DataType::kFloat64) return device.from_host(values.data(), tensor);
    const std::vector<float> narrow(values.begin(), values.end());
    device.from_host(narrow.data(), tensor);
}

/// Writes a rank's slice of a state; padding is 0.
void fill(backend::Device& device, const ModelState& from, const StateSlice& slice) {
    const BlockState& block = from.at({static_cast<int>(slice.block.kind), slice.block.layer});
    const auto part = [&](const std::vector<double>& values) {
        std::vector<double> result;
        for (std::int64_t i = slice.elements.begin; i < slice.elements.end; ++i)
            result.push_back(i < static_cast<std::int64_t>(values.size()) ? values[static_cast<std::size_t>(i)] : 0.0);
        return result;
    };
    put_values(device, part(block.master), slice.master);
    put_values(device, part(block.first_moment), slice.first_moment);
    put_values(device, part(block.second_moment), slice.second_moment);
}

/// Puts the ranks' slices together.
class StateCollector {
  public:
    explicit StateCollector(const TrainingCase& training) : training_(training) {
        for (const scenarios::Block& block : scenarios::blocks_of(training.job.model)) {
            const auto elements =
                static_cast<std::size_t>(scenarios::block_elements(training.job, training.plan.layout, block.kind));
            const double nobody = std::numeric_limits<double>::quiet_NaN();
            BlockState& state = blocks_[{static_cast<int>(block.kind), block.layer}];
            for (auto* const values : {&state.master, &state.first_moment, &state.second_moment})
                values->assign(elements, nobody);
        }
    }

    void add(backend::Device& device, const StateSlice& slice) {
        BlockState& state = blocks_.at({static_cast<int>(slice.block.kind), slice.block.layer});
        put(state.master, slice, values_of(device, slice.master));
        put(state.first_moment, slice, values_of(device, slice.first_moment));
        put(state.second_moment, slice, values_of(device, slice.second_moment));
    }

    ModelState take() {
        const auto unpadded = static_cast<std::size_t>(scenarios::embedding_parameters(training_.job.model));
        for (auto& [key, state] : blocks_) {
            const auto kind = static_cast<BlockKind>(key.first);
            for (auto* const values : {&state.master, &state.first_moment, &state.second_moment}) {
                for (const double value : *values)
                    if (std::isnan(value)) {
                        ADD_FAILURE() << "block " << key.first << " of layer " << key.second << " is not complete";
                        break;
                    }
                if (kind != BlockKind::kEmbedding && kind != BlockKind::kHead) continue;
                for (std::size_t i = unpadded; i < values->size(); ++i)
                    if ((*values)[i] != 0.0) {
                        ADD_FAILURE() << "padding is trained";
                        break;
                    }
                values->resize(unpadded);
            }
        }
        return std::move(blocks_);
    }

  private:
    static void put(std::vector<double>& to, const StateSlice& slice, const std::vector<double>& from) {
        ASSERT_EQ(static_cast<std::int64_t>(from.size()), slice.elements.size());
        ASSERT_LE(slice.elements.end, static_cast<std::int64_t>(to.size()));
        for (std::size_t i = 0; i < from.size(); ++i) {
            double& value = to[static_cast<std::size_t>(slice.elements.begin) + i];
            if (!std::isnan(value) && value != from[i]) {
                ADD_FAILURE() << "copies of block " << static_cast<int>(slice.block.kind) << " of layer "
                              << slice.block.layer << " differ";
                return;
            }
            value = from[i];
        }
    }

    const TrainingCase& training_;
    ModelState blocks_;
};

void expect_equal_bits(const std::vector<double>& a, const std::vector<double>& b, const char* what) {
    ASSERT_EQ(a.size(), b.size());
    EXPECT_EQ(std::memcmp(a.data(), b.data(), a.size() * sizeof(double)), 0) << "ranks have a different " << what;
}

}  // namespace

scenarios::Job gpt2_in_small() {
    scenarios::Job job;
    scenarios::Model& model = job.model;
    model.name = "gpt2 in small";
    model.layers = 4;
    model.hidden = 16;
    model.heads = model.kv_heads = 4;
    model.head_dim = 4;
    model.ffn = 32;
    model.vocab = 40;
    model.sequence_length = 8;
    job.global_batch = 8;
    job.stack.pads_vocabulary = false;
    job.training.emplace();
    job.training->learning_rate = 1e-2;
    job.training->final_learning_rate = 1e-3;
    job.training->warmup_iterations = 3;
    job.training->decay_iterations = 30;
    job.training->weight_decay = 0.1;
    job.training->clip_gradient_norm = 0.7;
    return job;
}

scenarios::Job llama_in_small() {
    scenarios::Job job = gpt2_in_small();
    scenarios::Model& model = job.model;
    model.name = "llama in small";
    model.heads = 4;
    model.kv_heads = 2;
    model.ffn = 24;
    model.gated_mlp = true;
    model.positions = scenarios::Positions::kRotary;
    model.norm = scenarios::Norm::kRms;
    model.biases = false;
    model.tied_embedding = false;
    return job;
}

scenarios::Plan even_plan(const scenarios::Job& job, const scenarios::Layout& layout) {
    scenarios::Plan plan;
    plan.layout = layout;
    plan.gpu_of_rank.resize(static_cast<std::size_t>(layout.world_size()));
    std::iota(plan.gpu_of_rank.begin(), plan.gpu_of_rank.end(), 0);
    plan.layers_of_cell =
        scenarios::same_layers(scenarios::even_layers(job.model.layers, layout.virtual_stages()), layout.data);
    const int micro_batches = job.global_batch / job.micro_batch;
    for (int r = 0; r < layout.data; ++r)
        plan.micro_batches_of_replica.push_back(micro_batches / layout.data + (r < micro_batches % layout.data));
    return plan;
}

void PatternTokens::read(std::uint64_t seed, std::int64_t sample, std::span<std::int32_t> sequence) const {
    const std::uint64_t drawn = (static_cast<std::uint64_t>(sample) + seed * 1000003) * 0x9e3779b97f4a7c15u;
    const std::uint64_t start = drawn >> 40, pace = 1 + ((drawn >> 20) % 3);
    for (std::size_t i = 0; i < sequence.size(); ++i)
        sequence[i] = static_cast<std::int32_t>((start + i * pace) % static_cast<std::uint64_t>(vocabulary_));
}

TrainingOutcome train(const TrainingCase& training) {
    const int ranks = training.plan.layout.world_size();
    const int processes = training.processes > 0 ? training.processes : ranks;
    const PatternTokens tokens(training.job.model.vocab);
    std::mutex mutex;
    StateCollector collector(training);
    TrainingOutcome outcome;
    outcome.instructions.resize(static_cast<std::size_t>(ranks));
    run_thread_ranks(processes, kLongestWait, [&](int process, backend::CommunicatorMaker& communicators) {
        const std::unique_ptr<backend::Device> device =
            training.type == DataType::kBfloat16 ? make_bfloat16_device() : backend::make_host_device(training.type);
        backend::Trainer trainer(training.job, training.plan, process, *device, communicators, tokens);
        if (training.from != nullptr) {
            for (const StateSlice& slice : trainer.state()) fill(*device, *training.from, slice);
            trainer.state_changed();
        } else {
            trainer.initialise(training.seed);
        }
        std::vector<double> losses, norms;
        backend::StepResult result;
        for (int step = training.first_step; step < training.first_step + training.steps; ++step) {
            result = trainer.step(step, training.seed, trainer.rank() == 0 ? training.pace : nullptr);
            losses.push_back(result.loss);
            norms.push_back(result.gradient_norm);
        }
        const std::lock_guard lock(mutex);
        if (trainer.rank() < 0) {
            EXPECT_TRUE(trainer.state().empty());
            EXPECT_TRUE(result.instructions.empty());
            return;
        }
        if (outcome.losses.empty()) {
            outcome.losses = losses;
            outcome.gradient_norms = norms;
        }
        expect_equal_bits(losses, outcome.losses, "loss");
        expect_equal_bits(norms, outcome.gradient_norms, "gradient norm");
        for (const StateSlice& slice : trainer.state()) collector.add(*device, slice);
        outcome.instructions[static_cast<std::size_t>(trainer.rank())] = std::move(result.instructions);
    });
    outcome.state = collector.take();
    return outcome;
}

double largest_difference(const std::vector<double>& a, const std::vector<double>& b) {
    if (a.size() != b.size()) return std::numeric_limits<double>::infinity();
    double largest = 0.0;
    for (std::size_t i = 0; i < a.size(); ++i) {
        const double difference = std::abs(a[i] - b[i]) / std::max(std::abs(a[i]), std::abs(b[i]));
        if (!(difference <= largest)) largest = difference;  // a NaN stays
    }
    return largest;
}

double largest_difference(const ModelState& a, const ModelState& b) {
    double largest = 0.0;
    for (const auto& [key, state] : a) {
        const BlockState& other = b.at(key);
        for (const auto values : {&BlockState::master, &BlockState::first_moment, &BlockState::second_moment}) {
            const std::vector<double>&x = state.*values, &y = other.*values;
            if (x.size() != y.size()) return std::numeric_limits<double>::infinity();
            double top = 0.0, difference = 0.0;
            for (std::size_t i = 0; i < x.size(); ++i) {
                top = std::max({top, std::abs(x[i]), std::abs(y[i])});
                difference = std::max(difference, std::abs(x[i] - y[i]));
            }
            if (top > 0.0) largest = std::max(largest, difference / top);
        }
    }
    return largest;
}

}  // namespace headway::tests
