#include "scenarios/costs/virtual_stage.h"

#include <algorithm>

#include "scenarios/costs/parameters.h"

namespace headway::scenarios {

namespace {

/// What stays queued on the GPU when the host has issued the last of its layers.
constexpr double kHostTail = 0.15;
constexpr double kStatedWeightBytes = 2.0;  ///< that the optimizer step writes in a stack's figure
constexpr double kClearGradients = 4.0;     ///< bytes a parameter written to clear its gradient

/// A host that issues work and a GPU that runs it in order: both move on, the GPU never before the host.
class HostAndGpu {
  public:
    void host(double seconds) { host_ += seconds; }
    void gpu(double seconds) { gpu_ = std::max(gpu_ + seconds, host_); }
    void layers(int count, double host_each, double gpu_each) {
        const double issued = host_ + count * host_each;
        gpu_ = std::max(gpu_ + count * gpu_each, std::max(host_ + count * gpu_each, issued + kHostTail * gpu_each));
        if (count == 0) gpu_ = std::max(gpu_, host_);
        host_ = issued;
    }
    double end() const { return std::max(host_, gpu_); }

  private:
    double host_ = 0.0, gpu_ = 0.0;
};

/// GPU work, and what waiting for the host adds to it.
WorkSeconds with_host(WorkSeconds gpu, double end) {
    gpu.fixed += std::max(0.0, end - gpu.total());
    return gpu;
}

}  // namespace

VirtualStageCosts virtual_stage_costs(const RankContext& rank, int virtual_stage, int layers, const LayerCosts& layer,
                                      const EdgeCosts& embedding, const EdgeCosts& head) {
    const bool first = virtual_stage == 0;
    const bool last = virtual_stage == rank.layout.virtual_stages() - 1;
    const double host_loss = rank.job.stack.host_loss.s();

    HostAndGpu forward;
    WorkSeconds forward_work = layer.forward * layers;
    if (first) {
        forward_work += embedding.forward;
        forward.gpu(embedding.forward.total());
    }
    forward.layers(layers, layer.host_forward_s, layer.forward.total());
    if (last) {
        forward_work += head.forward;
        forward.host(host_loss);
        forward.gpu(head.forward.total());
    }

    HostAndGpu backward;
    WorkSeconds input = (layer.recompute + layer.backward_input) * layers;
    WorkSeconds weight = layer.backward_weight * layers;
    if (last) {
        input += head.backward_input;
        weight += head.backward_weight;
        backward.host(host_loss);
        backward.gpu(head.backward().total());
    }
    backward.layers(layers, layer.host_backward_s, layer.backward().total());
    if (first) {
        input += embedding.backward_input;
        weight += embedding.backward_weight;
        backward.gpu(embedding.backward().total());
    }

    // Split, the two halves share what the host adds by their GPU time.
    const WorkSeconds whole = with_host(input + weight, backward.end());
    const double added = whole.fixed - (input + weight).fixed;
    const double input_share = input.total() / std::max(1e-12, input.total() + weight.total());
    input.fixed += added * input_share;
    VirtualStageCosts costs;
    costs.forward = with_host(forward_work, forward.end()).rounded();
    costs.backward = whole.rounded();
    costs.backward_input = input.rounded();
    costs.backward_weight = costs.backward;
    costs.backward_weight.compute -= costs.backward_input.compute;
    costs.backward_weight.memory -= costs.backward_input.memory;
    costs.backward_weight.fixed -= costs.backward_input.fixed;
    costs.backward_weight.communication -= costs.backward_input.communication;

    const auto parameters = static_cast<double>(rank_parameters(rank.job, rank.layout, virtual_stage, layers));
    const double holders = static_cast<double>(rank.layout.data) * rank.layout.context;
    const double owned = rank.layout.distributed_optimizer ? parameters / holders : parameters;
    const GpuType& gpu = rank.node.gpu;
    const double traffic = rank.job.stack.optimizer_traffic +
                           (static_cast<double>(bytes_of_element(rank.job.precision)) - kStatedWeightBytes);
    costs.optimizer.memory = Duration::seconds((owned * traffic + parameters * kClearGradients) /
                                               (gpu.memory_bandwidth.value * gpu.memory_efficiency));
    return costs;
}

}  // namespace headway::scenarios
