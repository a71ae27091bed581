#include "scenarios/costs/measured_scales.h"

#include <algorithm>
#include <cstddef>
#include <optional>

namespace headway::scenarios {

namespace {

using ScalePart = double GpuScale::*;
constexpr ScalePart kScaleParts[] = {&GpuScale::forward, &GpuScale::backward, &GpuScale::send_activation,
                                     &GpuScale::send_gradient};

/// The mean of the two in the middle where the count is even.
double median_of(std::vector<double> values) {
    std::sort(values.begin(), values.end());
    const std::size_t middle = values.size() / 2;
    return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2.0;
}

/// What the cost model says of one worker of the measured plan, in nanoseconds.
struct ModelledWorker {
    double forward = 0.0, backward = 0.0, send_activation = 0.0, send_gradient = 0.0;
};

class ScaleBuilder {
  public:
    ScaleBuilder(const Job& job, const Cluster& cluster)
        : measured_(*job.measured), plan_(measured_.plan), cluster_(cluster), types_(gpu_types_of_groups(cluster)) {
        Job modelled = job;
        modelled.measured.reset();
        costs_ = iteration_costs(modelled, cluster, plan_);
    }

    MeasuredScales build() {
        const auto gpus = static_cast<std::size_t>(cluster_.gpus());
        for (const MeasuredWorker& worker : measured_.workers) {
            const ModelledWorker model = modelled(worker.replica, worker.stage);
            const auto over = [](Duration time, double of_model) {
                return of_model > 0.0 ? static_cast<double>(time.ns()) / of_model : 0.0;
            };
            of_worker_.push_back({over(worker.forward, model.forward), over(worker.backward, model.backward),
                                  over(worker.send_activation, model.send_activation),
                                  over(worker.send_gradient, model.send_gradient)});
        }
        fill_messages();
        const GpuScale of_all = median(-1);
        MeasuredScales scales;
        scales.actual.assign(gpus, of_all);
        scales.healthy.assign(gpus, of_all);
        for (int stage = 0; stage < plan_.layout.pipeline; ++stage) {
            const GpuScale of_stage = median(stage);
            for (int replica = 0; replica < plan_.layout.data; ++replica)
                for (int member = 0; member < plan_.layout.ranks_per_worker(); ++member) {
                    const auto gpu = static_cast<std::size_t>(plan_.gpu_of_worker(replica, stage, member));
                    scales.healthy[gpu] = of_stage;
                    scales.actual[gpu] = of_worker_[worker_index(replica, stage)];
                }
        }
        return scales;
    }

  private:
    std::size_t worker_index(int replica, int stage) const {
        return static_cast<std::size_t>(plan_.worker(replica, stage));
    }

    ModelledWorker modelled(int replica, int stage) const {
        const Layout& layout = plan_.layout;
        ModelledWorker model;
        const auto message = [&](int member, int to) {
            const int a = cluster_.node_of(plan_.gpu_of_worker(replica, stage, member));
            const int b = cluster_.node_of(plan_.gpu_of_worker(replica, to, member));
            return static_cast<double>((a == b ? costs_.activation.inside_node : costs_.activation.across_nodes).ns());
        };
        for (int member = 0; member < layout.ranks_per_worker(); ++member) {
            const int node = cluster_.node_of(plan_.gpu_of_worker(replica, stage, member));
            const int type = types_[static_cast<std::size_t>(cluster_.group_of_node(node))];
            const VirtualStageCosts& cell = costs_.of(type, layout, replica, stage);
            model.forward = std::max(model.forward, static_cast<double>(cell.forward.total().ns()));
            model.backward = std::max(model.backward, static_cast<double>(cell.backward.total().ns()));
            if (stage + 1 < layout.pipeline)
                model.send_activation = std::max(model.send_activation, message(member, stage + 1));
            if (stage > 0) model.send_gradient = std::max(model.send_gradient, message(member, stage - 1));
        }
        return model;
    }

    /// Workers without a time of their own for a kind of message: the last stage sends no activations, the first no
    /// gradients, and other plans may have their GPUs send some.
    void fill_messages() {
        for (const ScalePart part : {&GpuScale::send_activation, &GpuScale::send_gradient}) {
            std::vector<double> known;
            for (const GpuScale& scale : of_worker_)
                if (scale.*part > 0.0) known.push_back(scale.*part);
            if (known.empty()) continue;
            const double usual = median_of(known);
            for (GpuScale& scale : of_worker_)
                if (scale.*part == 0.0) scale.*part = usual;
        }
    }

    /// Part by part over the replicas of a stage; -1: over all workers.
    GpuScale median(int stage) const {
        GpuScale result;
        for (const ScalePart part : kScaleParts) {
            std::vector<double> values;
            for (int replica = 0; replica < plan_.layout.data; ++replica)
                for (int s = 0; s < plan_.layout.pipeline; ++s)
                    if (stage < 0 || s == stage) values.push_back(of_worker_[worker_index(replica, s)].*part);
            result.*part = median_of(std::move(values));
        }
        return result;
    }

    const MeasuredTimes& measured_;
    const Plan& plan_;
    const Cluster& cluster_;
    std::vector<int> types_;  // [node groups]
    IterationCosts costs_;
    std::vector<GpuScale> of_worker_;  // [workers]
};

}  // namespace

MeasuredScales measured_scales(const Job& job, const Cluster& cluster) {
    if (!job.measured) return {};
    return ScaleBuilder(job, cluster).build();
}

}  // namespace headway::scenarios
