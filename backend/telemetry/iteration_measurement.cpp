#include "backend/telemetry/iteration_measurement.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <tuple>

#include "scenarios/costs/parameters.h"
#include "scenarios/language/program.h"
#include "scenarios/timing/task_graph.h"

namespace headway::backend {

using policies::GroupMeasurement;
using policies::RankMeasurement;
using scenarios::Duration;
using scenarios::Op;

namespace {

bool works(Op op) {
    return scenarios::is_compute(op) || op == Op::kOptimizerStep;
}

/// A message, the same at both ends: gradient or not, virtual stage that sends it, micro-batch.
using MessageKey = std::tuple<bool, int, int>;

MessageKey message_key(const scenarios::Instruction& instruction, int stage, int stages) {
    const int own = instruction.chunk * stages + stage;
    switch (instruction.op) {
        case Op::kSendActivation:
            return {false, own, instruction.micro_batch};
        case Op::kReceiveActivation:
            return {false, own - 1, instruction.micro_batch};
        case Op::kSendGradient:
            return {true, own, instruction.micro_batch};
        default:
            return {true, own + 1, instruction.micro_batch};
    }
}

bool sends(Op op) {
    return op == Op::kSendActivation || op == Op::kSendGradient;
}

}  // namespace

IterationMeasurement::IterationMeasurement(const scenarios::Job& job, const scenarios::Cluster& cluster,
                                           const scenarios::Plan& plan)
    : job_(job),
      cluster_(cluster),
      plan_(plan),
      sums_(plan.gpu_of_rank.size()),
      memory_(plan.gpu_of_rank.size(), 0),
      sensors_(plan.gpu_of_rank.size()),
      tensor_(static_cast<std::size_t>(plan.workers())),
      pipeline_(static_cast<std::size_t>(plan.workers())),
      data_(static_cast<std::size_t>(plan.layout.pipeline)) {}

IterationMeasurement::Place IterationMeasurement::place(std::size_t rank) const {
    const scenarios::Layout& layout = plan_.layout;
    const int group = static_cast<int>(rank) / layout.ranks_per_worker();
    Place place;
    place.tensor = static_cast<int>(rank) % layout.tensor;
    place.replica = group % layout.data;
    place.stage = group / layout.data;
    place.worker = plan_.worker(place.replica, place.stage);
    return place;
}

bool IterationMeasurement::messages_block() const {
    return scenarios::message_mode(plan_.layout) == scenarios::MessageMode::kBlocking;
}

std::vector<RankShares> IterationMeasurement::add(const std::vector<RankStep>& ranks, Duration iteration) {
    std::vector<RankShares> shares(ranks.size());
    // Where messages do not block, an operation waits for its input, and that wait cannot be told from tensor
    // collectives inside it: without these it is a message's, with them it counts as theirs.
    const bool waits_are_tensor = plan_.layout.tensor > 1;
    for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
        for (const TimedInstruction& timed : ranks[rank].step.instructions) {
            if (works(timed.instruction.op)) shares[rank].compute += timed.end - timed.begin - timed.exposed;
            if (scenarios::is_compute(timed.instruction.op) && waits_are_tensor) shares[rank].tensor += timed.exposed;
        }
        memory_[rank] = ranks[rank].memory_bytes;
        sensors_[rank] = ranks[rank].sensors;
    }
    add_collectives(ranks, shares);
    add_messages(ranks, shares);
    add_tensor(shares);
    for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
        RankShares& share = shares[rank];
        share.idle = std::max(Duration(), iteration - share.compute - share.tensor - share.data);
        share.pipeline = std::min(share.pipeline, share.idle);
        RankShares& sum = sums_[rank];
        sum.compute += share.compute;
        sum.tensor += share.tensor;
        sum.data += share.data;
        sum.pipeline += share.pipeline;
        sum.idle += share.idle;
    }
    ++iterations_;
    return shares;
}

void IterationMeasurement::add_collectives(const std::vector<RankStep>& ranks, std::vector<RankShares>& shares) {
    struct Group {
        Duration last = Duration::nanoseconds(std::numeric_limits<std::int64_t>::max());  ///< what the last one waited
        double bytes = 0.0;
        std::vector<std::size_t> members;
    };
    std::map<std::tuple<Op, int, int, int>, Group> groups;  // operation, chunk, and who takes part
    for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
        const Place at = place(rank);
        for (const TimedInstruction& timed : ranks[rank].step.instructions) {
            const Op op = timed.instruction.op;
            std::tuple<Op, int, int, int> key{op, timed.instruction.chunk, -1, -1};
            if (op == Op::kReduceGradients || op == Op::kGatherParameters) {
                std::get<2>(key) = at.stage;
                std::get<3>(key) = at.tensor;
            } else if (op == Op::kReduceTiedEmbedding) {
                std::get<2>(key) = at.replica;
                std::get<3>(key) = at.tensor;
            } else if (op != Op::kOptimizerStep) {
                continue;
            }
            Group& group = groups[key];
            group.last = std::min(group.last, timed.exposed);
            group.bytes = std::max(group.bytes, static_cast<double>(timed.bytes));
            group.members.push_back(rank);
        }
    }
    for (const auto& [key, group] : groups) {
        for (const std::size_t rank : group.members) shares[rank].data += group.last;
        const bool reduces = std::get<0>(key) == Op::kReduceGradients && !plan_.layout.overlap_grad_reduce;
        if (!reduces || std::get<3>(key) != 0) continue;
        Rate& rate = data_[static_cast<std::size_t>(std::get<2>(key))];
        rate.bytes += group.bytes;
        rate.seconds += group.last.s();
    }
}

void IterationMeasurement::add_messages(const std::vector<RankStep>& ranks, std::vector<RankShares>& shares) {
    if (plan_.layout.pipeline < 2 || !messages_block()) return;
    /// A batch of messages of one rank: what it waited, and the least that any of its peers did.
    struct Batch {
        std::size_t rank = 0;
        Duration waited;
        Duration least;
    };
    struct Ends {
        std::size_t batch[2] = {SIZE_MAX, SIZE_MAX};  // sender's, receiver's
        double bytes = 0.0;
        int worker = 0;  // sender
        bool activation = false;
    };
    std::vector<Batch> batches;
    std::map<std::tuple<int, int, MessageKey>, Ends> messages;  // replica, tensor rank
    for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
        const Place at = place(rank);
        bool open = false;
        for (const TimedInstruction& timed : ranks[rank].step.instructions) {
            const scenarios::Instruction& instruction = timed.instruction;
            if (!scenarios::is_message(instruction.op)) {
                open = false;
                continue;
            }
            if (!open || !instruction.batched) batches.push_back({rank, Duration(), Duration()});
            open = true;
            batches.back().waited += timed.exposed;
            Ends& ends = messages[{at.replica, at.tensor, message_key(instruction, at.stage, plan_.layout.pipeline)}];
            ends.batch[sends(instruction.op) ? 0 : 1] = batches.size() - 1;
            if (!sends(instruction.op)) continue;
            ends.bytes = static_cast<double>(timed.bytes);
            ends.worker = at.worker;
            ends.activation = instruction.op == Op::kSendActivation;
        }
    }
    for (Batch& batch : batches) batch.least = batch.waited;
    for (const auto& [key, ends] : messages) {
        if (ends.batch[0] == SIZE_MAX || ends.batch[1] == SIZE_MAX) continue;
        const Duration least = std::min(batches[ends.batch[0]].waited, batches[ends.batch[1]].waited);
        for (const std::size_t batch : ends.batch) batches[batch].least = std::min(batches[batch].least, least);
        if (!ends.activation || std::get<1>(key) != 0) continue;
        Rate& rate = pipeline_[static_cast<std::size_t>(ends.worker)];
        rate.bytes += ends.bytes;
        rate.seconds += least.s();
    }
    for (const Batch& batch : batches) shares[batch.rank].pipeline += batch.least;
}

/// Bus bytes of a worker's tensor collectives in an iteration: two all-reduces a layer and direction (with sequence
/// parallelism a reduce-scatter and an all-gather each, which move as much), one at each edge of the model, and those
/// that full recomputation repeats (Shoeybi et al. 2019).
double IterationMeasurement::tensor_bytes(int replica, int stage) const {
    const scenarios::Layout& layout = plan_.layout;
    const double message = static_cast<double>(job_.micro_batch) * job_.model.sequence_length * job_.model.hidden *
                           static_cast<double>(scenarios::bytes_of_element(job_.precision));
    double collectives = 0.0;
    for (int chunk = 0; chunk < layout.virtual_pipeline; ++chunk) {
        const int k = chunk * layout.pipeline + stage;
        const double each = layout.recompute == scenarios::Recompute::kFull ? 6.0 : 4.0;
        collectives += each * plan_.layers(replica, k);
        if (k == 0) collectives += 1.0;
        if (k == layout.virtual_stages() - 1) collectives += 1.0;
    }
    return collectives * plan_.micro_batches_of_replica[static_cast<std::size_t>(replica)] * message * 2.0 *
           (layout.tensor - 1.0) / layout.tensor;
}

void IterationMeasurement::add_tensor(const std::vector<RankShares>& shares) {
    if (plan_.layout.tensor < 2 || !(plan_.layout.pipeline == 1 || messages_block())) return;
    std::vector<Duration> least(static_cast<std::size_t>(plan_.workers()),
                                Duration::nanoseconds(std::numeric_limits<std::int64_t>::max()));
    for (std::size_t rank = 0; rank < shares.size(); ++rank) {
        Duration& of_worker = least[static_cast<std::size_t>(place(rank).worker)];
        of_worker = std::min(of_worker, shares[rank].tensor);
    }
    for (int replica = 0; replica < plan_.layout.data; ++replica)
        for (int stage = 0; stage < plan_.layout.pipeline; ++stage) {
            const auto worker = static_cast<std::size_t>(plan_.worker(replica, stage));
            tensor_[worker].bytes += tensor_bytes(replica, stage);
            tensor_[worker].seconds += least[worker].s();
        }
}

std::vector<RankMeasurement> IterationMeasurement::ranks() const {
    std::vector<RankMeasurement> result;
    if (iterations_ == 0) return result;
    for (std::size_t rank = 0; rank < sums_.size(); ++rank) {
        RankMeasurement& m = result.emplace_back();
        const auto mean = [&](Duration sum) { return Duration::nanoseconds(sum.ns() / iterations_); };
        const scenarios::GpuType& type = cluster_.gpu_type(plan_.gpu_of_rank[rank]);
        m.gpu = plan_.gpu_of_rank[rank];
        m.compute = mean(sums_[rank].compute);
        m.exposed_communication = mean(sums_[rank].tensor + sums_[rank].data);
        m.idle = mean(sums_[rank].idle);
        m.temperature_c = sensors_[rank].temperature_c.value_or(cluster_.facility.inlet.value);
        m.sm_clock_mhz = sensors_[rank].sm_clock_mhz.value_or(type.boost_clock.value);
        m.power_w = sensors_[rank].power_w.value_or(type.idle_power.value);
        m.throttle_reasons = sensors_[rank].throttle_reasons.value_or(0);
        m.memory_used_bytes = memory_[rank];
    }
    return result;
}

std::vector<GroupMeasurement> IterationMeasurement::groups() const {
    std::vector<GroupMeasurement> result;
    const auto add = [&](GroupMeasurement::Kind kind, const std::vector<Rate>& rates) {
        for (std::size_t i = 0; i < rates.size(); ++i)
            if (rates[i].bytes > 0.0 && rates[i].seconds > 0.0)
                result.push_back({kind, static_cast<int>(i), rates[i].bytes / rates[i].seconds});
    };
    add(GroupMeasurement::Kind::kTensor, tensor_);
    add(GroupMeasurement::Kind::kPipeline, pipeline_);
    add(GroupMeasurement::Kind::kData, data_);
    return result;
}

std::vector<scenarios::TimelineEntry> timeline_of(const scenarios::Plan& plan, const std::vector<RankStep>& ranks) {
    const scenarios::Layout& layout = plan.layout;
    std::vector<scenarios::TimelineEntry> entries;
    for (int worker = 0; worker < plan.workers(); ++worker) {
        const auto rank = static_cast<std::size_t>(plan.rank(0, 0, worker / layout.pipeline, worker % layout.pipeline));
        const StepResult& step = ranks[rank].step;
        for (const TimedInstruction& timed : step.instructions) {
            const Op op = timed.instruction.op;
            if (op == Op::kReceiveActivation || op == Op::kReceiveGradient) continue;
            entries.push_back({worker, static_cast<std::uint8_t>(op), timed.instruction.chunk,
                               timed.instruction.micro_batch, (timed.begin - step.begin).ns(),
                               (timed.end - step.begin).ns()});
        }
    }
    return entries;
}

}  // namespace headway::backend
