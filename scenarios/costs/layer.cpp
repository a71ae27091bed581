#include "scenarios/costs/layer.h"

#include <algorithm>
#include <array>

#include "scenarios/costs/kernel.h"
#include "scenarios/costs/parameters.h"

namespace headway::scenarios {

namespace {

constexpr int kFusedSoftmaxMultiple = 4;
constexpr int kFusedSoftmaxKeys = 2048;
constexpr double kNormForward = 4.0, kNormBackward = 10.0;
constexpr double kResidualBytes = 6.0, kDropoutMask = 1.0, kDropoutBackward = 4.0, kAttentionDropout = 4.0;
constexpr double kGeluForward = 4.0, kGeluBackward = 6.0, kGatedForward = 1.5, kGatedBackward = 1.7;
constexpr double kHeadLayout = 4.0, kBiasGradient = 2.0;
constexpr double kSoftmaxForward = 4.0, kSoftmaxBackward = 6.0;
constexpr double kUnfusedSoftmaxForward = 22.0, kUnfusedSoftmaxBackward = 12.0;
constexpr int kForwardKernels = 10, kBackwardKernels = 16, kEdgeKernels = 10, kEmbeddingKernels = 5;
/// A cast reads 2 bytes and writes 1; inputs once, gradients twice (as they are and transposed), weights once.
constexpr double kCastBytes = 3.0, kForwardCasts = 0.4;
/// Selective recomputation issues this share of a layer's kernels again.
constexpr double kSelectiveHost = 0.2;
/// A collective beside a GEMM takes memory bandwidth and SMs from it, so that this share of the GEMM can hide it.
constexpr double kHidingShare = 0.8;
/// Of the attention, the first and last part find no transfer to hide.
constexpr double kRingHidingShare = 0.5;
/// Three all-reduces of a float a token: maximum, sum of exponentials, score of the label.
constexpr int kLossReductions = 3;
constexpr double kLossForward = 0.6;

/// Bytes of an element over those of fp16 and bf16, for which traffic is stated here; masks are a byte in any.
double width_of(const Job& job) {
    return static_cast<double>(bytes_of_element(job.precision)) / 2.0;
}

struct Linear {
    double outputs;
    double inputs;
};

class LayerBuilder {
  public:
    explicit LayerBuilder(const RankContext& rank)
        : rank_(rank),
          model_(rank.job.model),
          stack_(rank.job.stack),
          gpu_(rank.node.gpu),
          width_(width_of(rank.job)),
          element_bytes_(static_cast<double>(bytes_of_element(rank.job.precision))),
          tensor_(rank.layout.tensor) {
        const double head = head_dim_of(model_);
        queries_ = model_.heads * head / tensor_;
        keys_values_ = 2.0 * model_.kv_heads * head / tensor_;
        ffn_ = static_cast<double>(model_.ffn) / tensor_;
        rows_ = static_cast<double>(rank.job.micro_batch) * model_.heads / tensor_;
        scores_ = rows_ * model_.sequence_length * (static_cast<double>(model_.sequence_length) / rank.layout.context);
    }

    LayerCosts build() {
        LayerCosts costs;
        add_linears(costs);
        WorkSeconds attention_forward, attention_backward;
        attention(attention_forward, attention_backward);
        costs.forward += attention_forward;
        costs.backward_input += attention_backward;
        add_streaming(costs);
        add_tensor_communication(costs);
        add_context_communication(costs, attention_forward.total(), attention_backward.total());
        add_host(costs);
        if (rank_.layout.recompute == Recompute::kFull) costs.recompute = costs.forward;
        if (rank_.layout.recompute == Recompute::kSelective) costs.recompute = attention_forward;
        return costs;
    }

  private:
    WorkSeconds stream(double bytes, int kernels = 0) const {
        return streaming_work(bytes, kernels, gpu_, stack_.kernel_gap);
    }
    WorkSeconds elementwise(double bytes, int kernels) const { return stream(bytes * stack_.memory_traffic, kernels); }
    bool fp8() const { return rank_.job.precision == Precision::kFp8; }

    void add_linears(LayerCosts& costs) const {
        const std::array<Linear, 4> linears = {
            {{queries_ + keys_values_, static_cast<double>(model_.hidden)},
             {static_cast<double>(model_.hidden), queries_},
             {ffn_ * (model_.gated_mlp ? 2.0 : 1.0), static_cast<double>(model_.hidden)},
             {static_cast<double>(model_.hidden), ffn_}}};
        const GemmPace pace = fp8() ? fp8_pace(gpu_) : working_pace(gpu_, rank_.job.precision);
        const double tokens = rank_.tokens();
        double casts = 0.0;
        for (const auto& [outputs, inputs] : linears) {
            costs.forward += gemm_work({tokens, outputs, inputs}, gpu_, pace, stack_.kernel_gap);
            costs.backward_input += gemm_work({tokens, inputs, outputs}, gpu_, pace, stack_.kernel_gap);
            costs.backward_weight += gemm_work({outputs, inputs, tokens}, gpu_, pace, stack_.kernel_gap);
            costs.backward_weight += stream(outputs * inputs * stack_.accumulation_bytes);
            if (fp8())
                casts += (tokens * (inputs + 2.0 * outputs) + outputs * inputs) * kCastBytes * stack_.cast_traffic;
        }
        costs.forward += stream(casts * kForwardCasts);
        costs.backward_input += stream(casts * (1.0 - kForwardCasts));
    }

    bool softmax_is_fused() const {
        const auto rows = static_cast<std::int64_t>(rows_);
        return rows % kFusedSoftmaxMultiple == 0 && model_.sequence_length <= kFusedSoftmaxKeys;
    }

    void attention(WorkSeconds& forward, WorkSeconds& backward) const {
        const double head = head_dim_of(model_);
        if (stack_.flash_attention) {
            forward = fused_attention_forward(scores_, head, gpu_, rank_.job.precision, stack_.kernel_gap);
            backward = fused_attention_backward(scores_, head, gpu_, rank_.job.precision, stack_.kernel_gap);
            const int steps = rank_.layout.context > 1 ? 2 * rank_.layout.context : 0;
            forward += stream(0.0, steps);
            backward += stream(0.0, steps);
            return;
        }
        const double keys = model_.sequence_length;
        const double local = keys / rank_.layout.context;
        const GemmPace pace = working_pace(gpu_, rank_.job.precision);
        const WorkSeconds to_scores = gemm_work({local, keys, head, rows_}, gpu_, pace, stack_.kernel_gap);
        const WorkSeconds to_values = gemm_work({local, head, keys, rows_}, gpu_, pace, stack_.kernel_gap);
        const double dropout = stack_.dropout ? kDropoutMask + kAttentionDropout * width_ : 0.0;
        const int kernels = stack_.dropout ? 2 : 1;
        const bool fused = softmax_is_fused();
        forward = to_scores + to_values +
                  stream(scores_ * ((fused ? kSoftmaxForward : kUnfusedSoftmaxForward) * width_ + dropout), kernels);
        backward = to_scores * 2.0 + to_values * 2.0 +
                   stream(scores_ * ((fused ? kSoftmaxBackward : kUnfusedSoftmaxBackward) * width_ + dropout), kernels);
    }

    void add_streaming(LayerCosts& costs) const {
        const double tokens = rank_.tokens();
        const double outside = rank_.tokens_outside_blocks() * model_.hidden;
        const double dropout = stack_.dropout ? 1.0 : 0.0;
        const double layout =
            tokens * (queries_ * 2.0 + queries_ + keys_values_) * kHeadLayout * width_ * stack_.copies;
        const double gelu = tokens * ffn_ * width_;
        const double biases = model_.biases ? tokens * (queries_ + keys_values_ + ffn_) * kBiasGradient * width_ : 0.0;
        costs.forward +=
            elementwise(outside * 2.0 * ((kNormForward + kResidualBytes) * width_ + kDropoutMask * dropout) + layout +
                            gelu * kGeluForward * (model_.gated_mlp ? kGatedForward : 1.0),
                        kForwardKernels);
        costs.backward_input += elementwise(
            outside * 2.0 *
                    ((kNormBackward + kResidualBytes) * width_ + (kDropoutMask + kDropoutBackward * width_) * dropout) +
                layout + gelu * kGeluBackward * (model_.gated_mlp ? kGatedBackward : 1.0),
            kBackwardKernels);
        costs.backward_weight += elementwise(biases, 0);
    }

    void add_tensor_communication(LayerCosts& costs) const {
        if (tensor_ == 1) return;
        Node node = rank_.node;
        node.fabric.bandwidth = node.fabric.bandwidth * stack_.tensor_bandwidth;
        node.fabric.copy = node.fabric.copy * stack_.tensor_bandwidth;
        const double message = rank_.tokens() * model_.hidden * element_bytes_;
        const auto time = [&](Collective collective, double bytes) {
            return collective_time(collective, Bytes(static_cast<std::int64_t>(bytes)), rank_.tensor, node).s();
        };
        double forward, of_input_gradient;
        if (rank_.layout.sequence_parallel) {
            const double scatter = time(Collective::kReduceScatter, message);
            const double gather = time(Collective::kAllGather, fp8() ? message / 2.0 : message);
            forward = 2.0 * (scatter + gather);
            of_input_gradient = 2.0 * scatter;
        } else {
            forward = 2.0 * time(Collective::kAllReduce, message);
            of_input_gradient = forward;
        }
        const double hidden =
            std::min(of_input_gradient, kHidingShare * costs.backward_weight.total()) * stack_.input_gradient_overlap;
        const double exposed = rank_.layout.overlap_tensor_comm ? 1.0 - stack_.tensor_overlap : 1.0;
        const double skew = 2.0 * stack_.collective_skew.s();
        costs.forward.communication += (forward + skew) * exposed;
        costs.backward_input.communication += (forward - hidden + skew) * exposed;
    }

    void add_context_communication(LayerCosts& costs, double attention_forward, double attention_backward) const {
        const int steps = rank_.layout.context - 1;
        if (steps == 0) return;
        const Bytes message(static_cast<std::int64_t>(rank_.tokens() * keys_values_ * element_bytes_));
        const double ring = steps * collective_time(Collective::kSendReceive, message, rank_.context, rank_.node).s();
        const double hiding = kRingHidingShare * stack_.tensor_overlap;
        costs.forward.communication += std::max(0.0, ring - hiding * attention_forward);
        // Backward passes keys and values on, and their gradients.
        costs.backward_input.communication += std::max(0.0, 2.0 * ring - hiding * attention_backward);
    }

    void add_host(LayerCosts& costs) const {
        const double collectives = tensor_ > 1 ? 2.0 * stack_.host_collective.s() : 0.0;
        const double softmax = stack_.flash_attention || softmax_is_fused() ? 0.0 : stack_.host_unfused_softmax.s();
        costs.host_forward_s = stack_.host_forward.s() + softmax + collectives;
        costs.host_backward_s = stack_.host_backward.s() + softmax / 2.0 + collectives;
        if (rank_.layout.recompute == Recompute::kFull) costs.host_backward_s += costs.host_forward_s;
        if (rank_.layout.recompute == Recompute::kSelective)
            costs.host_backward_s += kSelectiveHost * costs.host_forward_s;
    }

    const RankContext& rank_;
    const Model& model_;
    const SoftwareStack& stack_;
    const GpuType& gpu_;
    double width_;
    double element_bytes_;
    double tensor_;
    double queries_ = 0.0, keys_values_ = 0.0, ffn_ = 0.0;  ///< widths of a rank
    double rows_ = 0.0;                                     ///< batch x heads of a rank
    double scores_ = 0.0;                                   ///< of a rank: rows x queries x keys
};

/// One tensor collective at the edge of a block: gather with sequence parallelism, else reduce.
double edge_collective_seconds(const RankContext& rank) {
    if (rank.layout.tensor == 1) return 0.0;
    const Bytes message(static_cast<std::int64_t>(rank.tokens() * rank.job.model.hidden *
                                                  static_cast<double>(bytes_of_element(rank.job.precision))));
    return collective_time(rank.layout.sequence_parallel ? Collective::kAllGather : Collective::kAllReduce, message,
                           rank.tensor, rank.node)
        .s();
}

}  // namespace

LayerCosts layer_costs(const RankContext& rank) {
    return LayerBuilder(rank).build();
}

EdgeCosts embedding_costs(const RankContext& rank) {
    const GpuType& gpu = rank.node.gpu;
    const double elements = rank.tokens() * rank.job.model.hidden;
    const Duration gap = rank.job.stack.kernel_gap;
    const double width = width_of(rank.job);
    const double dropout = rank.job.stack.dropout ? kDropoutMask + kDropoutBackward * width : 0.0;
    EdgeCosts costs;
    costs.forward = streaming_work(elements * (4.0 * width + dropout), kEmbeddingKernels, gpu, gap);
    costs.backward_weight = streaming_work(elements * (8.0 * width + dropout), kEmbeddingKernels, gpu, gap);
    costs.forward.communication = edge_collective_seconds(rank);
    if (rank.layout.sequence_parallel) costs.backward_input.communication = edge_collective_seconds(rank);
    return costs;
}

EdgeCosts head_costs(const RankContext& rank) {
    const GpuType& gpu = rank.node.gpu;
    const SoftwareStack& stack = rank.job.stack;
    const std::int64_t padded = padded_vocabulary(rank.job, rank.layout);
    const double width = width_of(rank.job);
    const std::int64_t aligned = 16 / bytes_of_element(rank.job.precision);
    const double alignment = padded % aligned == 0 ? 1.0 : gpu.unaligned_efficiency;
    const double vocabulary = static_cast<double>(padded) / rank.layout.tensor;
    const double hidden = rank.job.model.hidden;
    const double tokens = rank.tokens();
    const double outside = rank.tokens_outside_blocks() * hidden;
    const GemmPace pace = working_pace(gpu, rank.job.precision, alignment);
    const double loss = tokens * vocabulary * stack.loss_traffic * width / alignment;

    EdgeCosts costs;
    costs.forward =
        gemm_work({tokens, vocabulary, hidden}, gpu, pace, stack.kernel_gap) +
        streaming_work(loss * kLossForward + outside * kNormForward * width, kEdgeKernels, gpu, stack.kernel_gap);
    costs.backward_input = gemm_work({tokens, hidden, vocabulary}, gpu, pace, stack.kernel_gap) +
                           streaming_work(loss * (1.0 - kLossForward) + outside * kNormBackward * width, kEdgeKernels,
                                          gpu, stack.kernel_gap);
    costs.backward_weight = gemm_work({vocabulary, hidden, tokens}, gpu, pace, stack.kernel_gap);
    if (rank.layout.tensor == 1) return costs;

    const double collective = edge_collective_seconds(rank);
    const Bytes per_token(static_cast<std::int64_t>(tokens * 4.0));
    costs.forward.communication =
        kLossReductions * collective_time(Collective::kAllReduce, per_token, rank.tensor, rank.node).s();
    if (rank.layout.sequence_parallel) costs.forward.communication += collective;
    const double exposed =
        rank.layout.overlap_tensor_comm && !rank.layout.sequence_parallel ? 1.0 - stack.tensor_overlap : 1.0;
    costs.backward_input.communication = collective * exposed;
    return costs;
}

}  // namespace headway::scenarios
