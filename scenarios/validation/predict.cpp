#include "scenarios/validation/predict.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <iterator>
#include <numeric>
#include <stdexcept>

#include "scenarios/costs/collective.h"
#include "scenarios/costs/iteration_costs.h"
#include "scenarios/timing/evaluator.h"
#include "scenarios/timing/step_times.h"
#include "scenarios/validation/placed_job.h"

namespace headway::scenarios {

namespace {

/// A million bytes: what the published accuracy of collective models starts at.
constexpr std::int64_t kLargeMessage = 1'000'000;

class TablePredictor {
  public:
    TablePredictor(const MeasuredTable& table, const PredictionSettings& settings)
        : settings_(settings), names_(settings.catalogue) {
        prediction_.figures.file = table.file;
        prediction_.title = table.title;
    }

    void add(const IterationRow& row) {
        prediction_.quantity = "iteration s";
        predict(row.id, shape_of(row.job.model), row.iteration_s, [&] {
            const PlacedJob placed = place(row.job, NodeFill::kFullNodes);
            Evaluator evaluator(placed.plan, placed.job.model.tied_embedding);
            return evaluator.iteration_time(healthy_times(placed)).s();
        });
    }

    void add(const CollectiveRow& row) {
        prediction_.quantity = "time us";
        const std::string group = row.collective + ", " + std::to_string(row.nodes) +
                                  (row.nodes == 1 ? " node x " : " nodes x ") + std::to_string(row.gpus_per_node) +
                                  " GPUs";
        const bool predicted = predict(row.id, group, row.time_us, [&] {
            GroupShape shape;
            shape.nodes = row.nodes;
            shape.ranks_per_node = row.gpus_per_node;
            const Node node = names_.node(row.cluster, prediction_.figures.notes);
            return collective_time(collective_named(row.collective), Bytes(row.message_bytes), shape, node).us();
        });
        if (predicted && row.message_bytes >= kLargeMessage) large_.push_back(predicted_.back());
    }

    void add(const SlowLinkRow& row) {
        prediction_.quantity = "slowdown";
        predict(row.id, shape_of(row.job.model), row.slowdown, [&] {
            const PlacedJob placed = place(row.job, NodeFill::kOneWorkerANode);
            const IterationCosts costs = iteration_costs(placed.job, placed.cluster, placed.plan);
            Evaluator evaluator(placed.plan, placed.job.model.tied_embedding);
            Conditions conditions;
            StepTimes healthy = step_times(costs, placed.plan, placed.cluster, conditions);
            conditions.hop_delay.assign(static_cast<std::size_t>(placed.plan.layout.pipeline - 1), Duration());
            for (const int hop : row.slow_hops) {
                conditions.hop_delay[static_cast<std::size_t>(hop)] = Duration::milliseconds(row.added_delay_ms);
            }
            StepTimes slow = step_times(costs, placed.plan, placed.cluster, conditions);
            keep_pipeline_only(healthy);
            keep_pipeline_only(slow);
            return evaluator.iteration_time(slow) / evaluator.iteration_time(healthy);
        });
    }

    void add(const RecordedJobRow& row) {
        prediction_.quantity = "step s";
        predict(row.id, row.id, row.step_s, [&] { return recorded_step(row); });
    }

    void add(const LayerTimeRow& row) {
        prediction_.quantity = "layer ms";
        const auto one_layer = [&](auto part) {
            if (!row.job) throw std::invalid_argument("the table states no model, layout and cluster for its cases");
            const PlacedJob placed = place(*row.job, NodeFill::kFullNodes);
            return (part(middle_stage(placed, 2)).total() - part(middle_stage(placed, 1)).total()).ms();
        };
        predict(row.id + ": forward", "forward", row.forward_ms,
                [&] { return one_layer([](const VirtualStageCosts& costs) { return costs.forward; }); });
        predict(row.id + ": backward", "backward", row.backward_ms,
                [&] { return one_layer([](const VirtualStageCosts& costs) { return costs.backward; }); });
    }

    TablePrediction finish() {
        ValidationTable& table = prediction_.figures;
        const ErrorFigures all = error_figures(predicted_);
        table.mape = all.mape;
        table.worst = all.worst;
        table.bias = all.bias;
        table.kendall_tau = all.kendall_tau;
        std::vector<std::string> order;
        for (const PredictedFigure& row : predicted_) {
            if (std::find(order.begin(), order.end(), row.group) == order.end()) order.push_back(row.group);
        }
        for (const std::string& name : order) {
            std::vector<PredictedFigure> members;
            std::copy_if(predicted_.begin(), predicted_.end(), std::back_inserter(members),
                         [&](const PredictedFigure& row) { return row.group == name; });
            table.groups.push_back(group_of(name, members));
        }
        if (!large_.empty()) table.large_messages = group_of("messages of 1 MB or more", large_);
        return std::move(prediction_);
    }

  private:
    static ValidationGroup group_of(const std::string& name, const std::vector<PredictedFigure>& rows) {
        const ErrorFigures figures = error_figures(rows);
        return {name, figures.rows, figures.mape, figures.worst, figures.bias, figures.kendall_tau};
    }

    static std::string shape_of(const Model& model) {
        return "layers " + std::to_string(model.layers) + ", hidden " + std::to_string(model.hidden) + ", heads " +
               std::to_string(model.heads) + ", sequence " + std::to_string(model.sequence_length);
    }

    static Collective collective_named(const std::string& name) {
        for (const Collective collective :
             {Collective::kAllReduce, Collective::kReduceScatter, Collective::kAllGather, Collective::kBroadcast,
              Collective::kReduce, Collective::kAllToAll, Collective::kSendReceive}) {
            if (name == name_of(collective)) return collective;
        }
        if (name == "all_to_all") return Collective::kAllToAll;
        throw std::invalid_argument("no cost model for the collective '" + name + "'");
    }

    PlacedJob place(const MeasuredJob& job, NodeFill fill) {
        return place_job(job, fill, names_, settings_.stack, prediction_.figures.notes);
    }

    static StepTimes healthy_times(const PlacedJob& placed) {
        const IterationCosts costs = iteration_costs(placed.job, placed.cluster, placed.plan);
        return step_times(costs, placed.plan, placed.cluster, Conditions());
    }

    /// The measured span of a slow-link run ends with the last backward.
    static void keep_pipeline_only(StepTimes& times) {
        for (auto* durations : {&times.optimizer, &times.reduce_gradients, &times.reduce_last_bucket,
                                &times.reduce_tied_embedding, &times.gather_parameters, &times.gather_first_bucket})
            std::fill(durations->begin(), durations->end(), 0);
    }

    /// The middle one of three stages that holds `layers` layers: neither
    /// embedding nor logits.
    static VirtualStageCosts middle_stage(const PlacedJob& placed, int layers) {
        PlacedJob three = placed;
        three.job.model.layers = layers + 2;
        three.plan.layout.pipeline = 3;
        three.plan.layout.virtual_pipeline = 1;
        three.plan.layers_of_cell = same_layers({1, layers, 1}, three.plan.layout.data);
        const int ranks = three.plan.layout.world_size();
        three.plan.gpu_of_rank.resize(static_cast<std::size_t>(ranks));
        std::iota(three.plan.gpu_of_rank.begin(), three.plan.gpu_of_rank.end(), 0);
        NodeGroup& group = three.cluster.node_groups.front();
        group.count = (ranks + group.node.gpus - 1) / group.node.gpus;
        return iteration_costs(three.job, three.cluster, three.plan).virtual_stages.at(0).at(1);
    }

    double recorded_step(const RecordedJobRow& row) {
        const Layout& layout = row.layout;
        if (layout.world_size() != row.gpus) {
            throw std::invalid_argument("the degrees make " + std::to_string(layout.world_size()) + " GPUs, not " +
                                        std::to_string(row.gpus));
        }
        if (layout.schedule != Schedule::kOneForwardOneBackward && layout.schedule != Schedule::kGPipe) {
            throw std::invalid_argument(
                "medians of whole backward passes of one chunk a stage describe 1f1b and gpipe only");
        }
        Plan plan;
        plan.layout = layout;
        plan.gpu_of_rank.resize(static_cast<std::size_t>(row.gpus));
        std::iota(plan.gpu_of_rank.begin(), plan.gpu_of_rank.end(), 0);
        plan.layers_of_cell.assign(static_cast<std::size_t>(layout.data * layout.pipeline), 1);
        plan.micro_batches_of_replica.assign(static_cast<std::size_t>(layout.data), 0);
        const auto workers = static_cast<std::size_t>(plan.workers());
        const auto stages = static_cast<std::size_t>(layout.pipeline);
        StepTimes times;
        times.forward.resize(workers);
        times.backward.resize(workers);
        times.send_activation.resize(workers);
        times.send_gradient.resize(workers);
        times.optimizer.resize(workers);
        times.reduce_gradients.resize(stages);
        times.reduce_tied_embedding.resize(stages);
        times.gather_parameters.resize(stages);
        for (const RecordedWorker& worker : row.workers) {
            int& micro_batches = plan.micro_batches_of_replica[static_cast<std::size_t>(worker.replica)];
            if (micro_batches != 0 && micro_batches != worker.micro_batches) {
                throw std::invalid_argument("the stages of replica " + std::to_string(worker.replica) +
                                            " have different numbers of micro-batches");
            }
            micro_batches = worker.micro_batches;
            const auto cell = static_cast<std::size_t>(plan.worker(worker.replica, worker.stage));
            const auto stage = static_cast<std::size_t>(worker.stage);
            const auto ns = [](double ms) { return Duration::milliseconds(ms).ns(); };
            times.forward[cell] = ns(worker.forward_ms);
            times.backward[cell] = ns(worker.backward_ms);
            times.send_activation[cell] = ns(worker.send_activation_ms);
            times.send_gradient[cell] = ns(worker.send_gradient_ms);
            times.optimizer[cell] = ns(worker.reduce_norms_ms + worker.optimizer_ms + worker.garbage_collection_ms);
            const auto longest = [&](std::vector<std::int64_t>& durations, double ms) {
                durations[stage] = std::max(durations[stage], ns(ms));
            };
            longest(times.reduce_gradients, worker.reduce_gradients_ms);
            longest(times.reduce_tied_embedding, worker.reduce_embedding_ms);
            longest(times.gather_parameters, worker.gather_parameters_ms);
        }
        const bool tied = std::any_of(times.reduce_tied_embedding.begin(), times.reduce_tied_embedding.end(),
                                      [](std::int64_t duration) { return duration > 0; });
        Evaluator evaluator(plan, tied);
        return evaluator.iteration_time(times).s();
    }

    /// Returns whether the row has a prediction.
    bool predict(const std::string& id, const std::string& group, double measured,
                 const std::function<double()>& prediction) {
        ValidationRow row;
        row.id = id;
        row.measured = measured;
        try {
            row.predicted = prediction();
            row.error = (*row.predicted - measured) / measured;
            predicted_.push_back({group, measured, *row.predicted});
        } catch (const std::invalid_argument& reason) {
            row.reason = reason.what();
        }
        prediction_.figures.rows.push_back(row);
        return row.predicted.has_value();
    }

    const PredictionSettings& settings_;
    HardwareNames names_;
    TablePrediction prediction_;
    std::vector<PredictedFigure> predicted_;
    std::vector<PredictedFigure> large_;
};

}  // namespace

TablePrediction predict_table(const MeasuredTable& table, const PredictionSettings& settings) {
    TablePredictor predictor(table, settings);
    std::visit(
        [&](const auto& rows) {
            for (const auto& row : rows) predictor.add(row);
        },
        table.rows);
    return predictor.finish();
}

ValidationReport validation_report(const std::vector<TablePrediction>& tables) {
    ValidationReport report;
    double sum = 0.0;
    int count = 0;
    for (const TablePrediction& table : tables) {
        report.tables.push_back(table.figures);
        for (const ValidationRow& row : table.figures.rows) {
            if (!row.error) continue;
            sum += std::abs(*row.error);
            ++count;
        }
    }
    if (count > 0) report.mape = sum / count;
    return report;
}

}  // namespace headway::scenarios
