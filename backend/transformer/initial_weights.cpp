#include <algorithm>
#include <cmath>
#include <string>

#include "backend/transformer/block_order.h"
#include "backend/transformer/chunk.h"
#include "scenarios/language/random.h"

namespace headway::backend {

namespace {

using scenarios::BlockKind;
using scenarios::Interval;

/// Elements that share a random stream: any of them is reached by drawing at most so many.
constexpr std::int64_t kElementsOfStream = 4096;
constexpr double kInitialDeviation = 0.02;

std::string stream_name(const scenarios::Block& block) {
    switch (block.kind) {
        case BlockKind::kEmbedding:
            return "initial embedding";
        case BlockKind::kPositions:
            return "initial positions";
        case BlockKind::kHead:
            return "initial head";
        default:
            return "initial layer " + std::to_string(block.layer);
    }
}

/// What a tensor's elements are at first: `mean` + `deviation` times a normal number.
struct InitialLaw {
    double mean = 0.0;
    double deviation = 0.0;
};

InitialLaw law_of(const scenarios::Model& model, const BlockTensor& tensor) {
    const std::string name = tensor.name;
    if (!tensor.matrix) return {name.ends_with("norm weight") ? 1.0 : 0.0, 0.0};
    const bool into_residual = name == "projection weight" || name == "mlp output weight";
    return {0.0, into_residual ? kInitialDeviation / std::sqrt(2.0 * model.layers) : kInitialDeviation};
}

}  // namespace

std::vector<float> initial_weights(const scenarios::Job& job, const scenarios::Block& block, Interval elements,
                                   std::uint64_t seed) {
    std::vector<float> result(static_cast<std::size_t>(std::max<std::int64_t>(elements.size(), 0)));
    const BlockTensors tensors = block_tensors(job.model, block.kind);
    const bool of_vocabulary = block.kind == BlockKind::kEmbedding || block.kind == BlockKind::kHead;
    const Interval drawn{elements.begin,
                         of_vocabulary
                             ? std::min<std::int64_t>(elements.end, std::int64_t{job.model.vocab} * job.model.hidden)
                             : elements.end};
    const auto write = [&](const Interval& part, const auto& value) {
        for (std::int64_t i = part.begin; i < part.end; ++i)
            result[static_cast<std::size_t>(i - elements.begin)] = static_cast<float>(value(i));
    };
    // Normal numbers first, each by its position alone, then the law of the tensor in which the position lies.
    const std::string name = stream_name(block);
    if (is_split(block.kind) || block.kind == BlockKind::kPositions) {
        for (std::int64_t index = drawn.begin / kElementsOfStream; index * kElementsOfStream < drawn.end; ++index) {
            scenarios::RandomStream stream(seed, name, static_cast<std::uint64_t>(index));
            const std::int64_t start = index * kElementsOfStream;
            for (std::int64_t i = start; i < drawn.begin; ++i) stream.normal();
            write({std::max(start, drawn.begin), std::min(start + kElementsOfStream, drawn.end)},
                  [&](std::int64_t) { return stream.normal(); });
        }
    }
    for (std::int64_t start = drawn.begin / tensors.period * tensors.period; start < drawn.end;
         start += tensors.period) {
        for (const BlockTensor& tensor : tensors.tensors) {
            const Interval part{std::max(start + tensor.first, drawn.begin),
                                std::min(start + tensor.first + tensor.elements, drawn.end)};
            const InitialLaw law = law_of(job.model, tensor);
            write(part, [&](std::int64_t i) {
                return law.mean + law.deviation * result[static_cast<std::size_t>(i - elements.begin)];
            });
        }
    }
    return result;
}

}  // namespace headway::backend
