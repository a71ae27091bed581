#include "backend/training/training_groups.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <utility>

#include "scenarios/timing/task_graph.h"

namespace headway::backend {

namespace {

using scenarios::Plan;

int process_of(const Plan& plan, int tensor, int replica, int stage) {
    return plan.gpu_of_rank[static_cast<std::size_t>(plan.rank(tensor, 0, replica, stage))];
}

std::string of_tensor_rank(const Plan& plan, int tensor) {
    return plan.layout.tensor > 1 ? ", tensor rank " + std::to_string(tensor) : std::string();
}

}  // namespace

TrainingGroups::TrainingGroups(const scenarios::Job& job, const Plan& plan, const PlanPlace& place,
                               CommunicatorMaker& communicators)
    : place_(place), replicas_of_layer_(static_cast<std::size_t>(job.model.layers), kNone) {
    world_ = static_cast<std::size_t>(add("all ranks", plan.gpu_of_rank));
    if (plan.layout.tensor > 1) add_tensor(plan);
    if (plan.layout.pipeline > 1) add_messages(plan);
    if (plan.layout.data > 1) add_replicas(job, plan);
    if (plan.layout.pipeline > 1 && job.model.tied_embedding) add_tied(plan);
    made_ = communicators.make(specs_);
}

int TrainingGroups::add(const std::string& name, std::vector<int> members) {
    specs_.push_back({name, std::move(members)});
    return static_cast<int>(specs_.size()) - 1;
}

void TrainingGroups::add_tensor(const Plan& plan) {
    for (int stage = 0; stage < plan.layout.pipeline; ++stage) {
        for (int replica = 0; replica < plan.layout.data; ++replica) {
            std::vector<int> members;
            for (int t = 0; t < plan.layout.tensor; ++t) members.push_back(process_of(plan, t, replica, stage));
            const int index = add("tensor of replica " + std::to_string(replica) + ", stage " + std::to_string(stage),
                                  std::move(members));
            if (!place_.idle() && replica == place_.replica && stage == place_.stage) tensor_ = index;
        }
    }
}

void TrainingGroups::add_messages(const Plan& plan) {
    const scenarios::Layout& layout = plan.layout;
    // Beside compute, each direction of a link goes at its own pace. Between two stages of an interleaved pipeline both
    // neighbours are one, and messages to "next" and to "previous" have an order of their own.
    const bool ring_of_two = layout.pipeline == 2 && layout.virtual_pipeline > 1;
    const bool beside = scenarios::message_mode(layout) == scenarios::MessageMode::kOverlapped;
    const int flows = beside || ring_of_two ? 2 : 1, rings = beside && ring_of_two ? 2 : 1;
    for (int replica = 0; replica < layout.data; ++replica) {
        for (int t = 0; t < layout.tensor; ++t) {
            std::vector<int> members;
            for (int stage = 0; stage < layout.pipeline; ++stage)
                members.push_back(process_of(plan, t, replica, stage));
            const std::string whose = " of replica " + std::to_string(replica) + of_tensor_rank(plan, t);
            for (int flow = 0; flow < flows; ++flow) {
                for (int around = 0; around < rings; ++around) {
                    const std::string what = flows == 1 ? "pipeline" : flow == 0 ? "activations" : "gradients";
                    const int index = add(what + (around == 1 ? " around the ring" : "") + whose, members);
                    if (place_.idle() || replica != place_.replica || t != place_.tensor) continue;
                    for (int f = flow; f < (flows == 1 ? 2 : flow + 1); ++f)
                        for (int a = around; a < (rings == 1 ? 2 : around + 1); ++a) messages_[f][a] = index;
                }
            }
        }
    }
}

void TrainingGroups::add_replicas(const scenarios::Job& job, const Plan& plan) {
    const scenarios::Layout& layout = plan.layout;
    const std::vector<int> stage_of = scenarios::stages_of_layers(job, plan);
    for (int t = 0; t < layout.tensor; ++t) {
        std::map<std::vector<int>, int> known;  // stage in each replica -> group
        const auto group = [&](const std::vector<int>& stages) {
            const auto [at, fresh] = known.emplace(stages, kNone);
            if (fresh) {
                const bool alike = std::all_of(stages.begin(), stages.end(), [&](int s) { return s == stages[0]; });
                std::string name = alike ? "data of stage " : "data of layers on stages";
                std::vector<int> members;
                if (alike) name += std::to_string(stages[0]);
                for (int replica = 0; replica < layout.data; ++replica) {
                    const int stage = stages[static_cast<std::size_t>(replica)];
                    members.push_back(process_of(plan, t, replica, stage));
                    if (!alike) name += " " + std::to_string(stage);
                }
                at->second = add(name + of_tensor_rank(plan, t), std::move(members));
            }
            return at->second;
        };
        const bool own = !place_.idle() && t == place_.tensor;
        for (const int stage : {0, layout.pipeline - 1}) {  // they hold blocks that are no layer's
            const int index = group(std::vector<int>(static_cast<std::size_t>(layout.data), stage));
            if (own && stage == place_.stage) replicas_of_stage_ = index;
        }
        for (int layer = 0; layer < job.model.layers; ++layer) {
            std::vector<int> stages;
            for (int replica = 0; replica < layout.data; ++replica)
                stages.push_back(stage_of[static_cast<std::size_t>(replica * job.model.layers + layer)]);
            const int index = group(stages);
            if (own && stages[static_cast<std::size_t>(place_.replica)] == place_.stage)
                replicas_of_layer_[static_cast<std::size_t>(layer)] = index;
        }
    }
}

void TrainingGroups::add_tied(const Plan& plan) {
    const int last = plan.layout.pipeline - 1;
    for (int replica = 0; replica < plan.layout.data; ++replica) {
        for (int t = 0; t < plan.layout.tensor; ++t) {
            const int index = add("embedding of replica " + std::to_string(replica) + of_tensor_rank(plan, t),
                                  {process_of(plan, t, replica, 0), process_of(plan, t, replica, last)});
            if (!place_.idle() && replica == place_.replica && t == place_.tensor &&
                (place_.stage == 0 || place_.stage == last))
                tied_ = index;
        }
    }
}

Communicator* TrainingGroups::replicas(const scenarios::Block& block) const {
    return own(block.layer >= 0 ? replicas_of_layer_[static_cast<std::size_t>(block.layer)] : replicas_of_stage_);
}

Communicator& TrainingGroups::messages(Flow flow, bool around) const {
    return *own(messages_[static_cast<int>(flow)][around ? 1 : 0]);
}

void TrainingGroups::abort(const std::string& reason) noexcept {
    for (const std::unique_ptr<Communicator>& communicator : made_) {
        if (!communicator) continue;
        try {
            communicator->abort(reason);
        } catch (const std::exception&) {
            // Nothing is left to be said: whoever still waits runs into the timeout.
        }
    }
}

}  // namespace headway::backend
