#include "scenarios/timing/compiled_replica.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <stdexcept>

namespace headway::scenarios {

namespace {

/// Kinds of tasks inside one replica, in the order of the duration table.
constexpr TaskKind kTimedKinds[] = {TaskKind::kForward,         TaskKind::kBackward,      TaskKind::kBackwardInput,
                                    TaskKind::kBackwardWeight,  TaskKind::kActivation,    TaskKind::kGradient,
                                    TaskKind::kActivationDelay, TaskKind::kGradientDelay, TaskKind::kGatherFirst,
                                    TaskKind::kGather};

/// A vector register of kLanes times.
typedef std::int64_t FourTimes __attribute__((vector_size(32)));

inline std::int64_t later(std::int64_t a, std::int64_t b) {
    return a > b ? a : b;
}
inline FourTimes later(FourTimes a, FourTimes b) {
    return a > b ? a : b;
}

constexpr std::uint32_t kNever = std::numeric_limits<std::uint32_t>::max();

/// Turns tasks into operations of two inputs and gives out slots.
class SlotAllocator {
  public:
    explicit SlotAllocator(std::size_t values) : last_use_(values, 0), slot_(values, kNever) {}

    void use(std::uint32_t value, std::uint32_t at) { last_use_[value] = std::max(last_use_[value], at); }
    void pin(std::uint32_t value) { last_use_[value] = kNever; }
    std::uint32_t slot(std::uint32_t value) const { return slot_[value]; }
    /// The inputs of operation `at` are dead after it when this was their last use; its output may take their place.
    void release(std::uint32_t value, std::uint32_t at) {
        if (value != 0 && last_use_[value] == at && slot_[value] != kNever) {
            free_.push_back(slot_[value]);
            last_use_[value] = at - 1;  // an operation may name the same input twice
        }
    }
    void give(std::uint32_t value) {
        if (free_.empty()) {
            slot_[value] = next_++;
        } else {
            slot_[value] = free_.back();
            free_.pop_back();
        }
    }
    void set_start(std::uint32_t value) { slot_[value] = 0; }
    std::uint32_t slots() const { return next_; }

  private:
    std::vector<std::uint32_t> last_use_, slot_, free_;
    std::uint32_t next_ = 1;
};

}  // namespace

CompiledReplica::CompiledReplica(const Layout& layout, int micro_batches, bool delays)
    : layout_(layout), micro_batches_(micro_batches), cells_(static_cast<std::size_t>(layout.virtual_stages())) {
    lower(replica_graph(layout, micro_batches), delays);
    durations_.assign((1 + std::size(kTimedKinds) * cells_) * kLanes, 0);
    values_.assign(static_cast<std::size_t>(slots_) * kLanes, 0);
}

std::uint32_t CompiledReplica::duration_index(const Task& task) const {
    const auto* kind = std::find(std::begin(kTimedKinds), std::end(kTimedKinds), task.kind);
    if (kind == std::end(kTimedKinds)) return 0;
    const auto place = static_cast<std::size_t>(task.stage * layout_.virtual_pipeline + task.chunk);
    return static_cast<std::uint32_t>(1 + static_cast<std::size_t>(kind - std::begin(kTimedKinds)) * cells_ + place);
}

void CompiledReplica::lower(const ReplicaGraph& replica, bool delays) {
    // Value 0 is the start of the iteration; an operation's value has the operation's number plus one. A task without a
    // duration that waits for a single value is no operation: its value is that one.
    const TaskGraph& graph = replica.graph;
    std::vector<std::uint32_t> values(static_cast<std::size_t>(graph.size()));
    struct Wide {
        std::uint32_t a, b, duration;
        std::int32_t micro_batch;
    };
    std::vector<Wide> wide;
    wide.reserve(values.size() + values.size() / 4);
    std::vector<std::uint32_t> inputs;
    // Takes sorted inputs, none twice.
    const auto emit = [&](std::uint32_t duration, std::int32_t micro_batch) {
        if (inputs.size() > 1 && inputs.front() == 0) inputs.erase(inputs.begin());
        if (inputs.empty()) inputs.push_back(0);
        while (inputs.size() > 2) {  // the earliest ones first: the last is most likely the one to wait for
            wide.push_back({inputs[0], inputs[1], 0, -1});
            inputs.erase(inputs.begin(), inputs.begin() + 2);
            inputs.push_back(static_cast<std::uint32_t>(wide.size()));
        }
        wide.push_back({inputs.front(), inputs.back(), duration, micro_batch});
        return static_cast<std::uint32_t>(wide.size());
    };
    for (std::int32_t i = 0; i < graph.size(); ++i) {
        const Task& task = graph.task(i);
        inputs.clear();
        for (const std::int32_t p : graph.predecessors(i)) inputs.push_back(values[static_cast<std::size_t>(p)]);
        if (inputs.size() > 1) {
            std::sort(inputs.begin(), inputs.end());
            inputs.erase(std::unique(inputs.begin(), inputs.end()), inputs.end());
        }
        const bool delay = task.kind == TaskKind::kActivationDelay || task.kind == TaskKind::kGradientDelay;
        std::uint32_t& value = values[static_cast<std::size_t>(i)];
        if (task.kind != TaskKind::kJoin && !(delay && !delays))
            value = emit(duration_index(task), is_compute(task.kind) ? task.micro_batch : -1);
        else if (inputs.size() > 1)
            value = emit(0, -1);
        else
            value = inputs.empty() ? 0 : inputs.front();
    }

    SlotAllocator slots(wide.size() + 1);
    slots.set_start(0);
    const auto pin = [&](const std::vector<std::int32_t>& tasks) {
        for (const std::int32_t t : tasks)
            if (t >= 0) slots.pin(values[static_cast<std::size_t>(t)]);
    };
    for (std::uint32_t i = 0; i < wide.size(); ++i) {
        slots.use(wide[i].a, i + 1);
        slots.use(wide[i].b, i + 1);
    }
    pin(replica.last_of_stage);
    pin(replica.gradient_of_chunk);
    pin(replica.buckets_of_chunk);
    operations_.reserve(wide.size());
    micro_batch_of_.reserve(wide.size());
    for (std::uint32_t i = 0; i < wide.size(); ++i) {
        Operation operation{slots.slot(wide[i].a), slots.slot(wide[i].b), 0, wide[i].duration};
        slots.release(wide[i].a, i + 1);
        slots.release(wide[i].b, i + 1);
        slots.give(i + 1);
        operation.out = slots.slot(i + 1);
        operations_.push_back(operation);
        micro_batch_of_.push_back(wide[i].micro_batch);
    }
    slots_ = slots.slots();
    const auto slots_of = [&](const std::vector<std::int32_t>& tasks) {
        std::vector<std::uint32_t> out;
        for (const std::int32_t t : tasks) out.push_back(t < 0 ? 0 : slots.slot(values[static_cast<std::size_t>(t)]));
        return out;
    };
    stage_slot_ = slots_of(replica.last_of_stage);
    gradient_slot_ = slots_of(replica.gradient_of_chunk);
    buckets_slot_ = slots_of(replica.buckets_of_chunk);
}

void CompiledReplica::fill_durations(const StepTimes& times, int replica, int lane, int lanes) {
    const auto place = [&](std::size_t kind) {
        return (1 + kind * cells_) * static_cast<std::size_t>(lanes) + static_cast<std::size_t>(lane);
    };
    const std::size_t first = static_cast<std::size_t>(replica) * cells_;
    const auto copy = [&](std::size_t kind, const std::vector<std::int64_t>& from, std::size_t offset) {
        std::int64_t* to = durations_.data() + place(kind);
        if (from.empty()) {
            for (std::size_t i = 0; i < cells_; ++i) to[i * static_cast<std::size_t>(lanes)] = 0;
        } else {
            const std::int64_t* source = from.data() + offset;
            for (std::size_t i = 0; i < cells_; ++i) to[i * static_cast<std::size_t>(lanes)] = source[i];
        }
    };
    copy(0, times.forward, first);
    if (layout_.schedule == Schedule::kZeroBubble) {
        copy(2, times.backward_input, first);
        copy(3, times.backward_weight, first);
    } else {
        copy(1, times.backward, first);
    }
    copy(4, times.send_activation, first);
    copy(5, times.send_gradient, first);
    copy(6, times.delay_activation, first);
    copy(7, times.delay_gradient, first);
    if (layout_.overlap_param_gather) {
        for (std::size_t i = 0; i < cells_; ++i) {
            const std::int64_t all = times.gather_parameters.empty() ? 0 : times.gather_parameters[i];
            const std::int64_t part =
                times.gather_first_bucket.empty() ? 0 : std::min(times.gather_first_bucket[i], all);
            durations_[place(8) + i * static_cast<std::size_t>(lanes)] = part;
            durations_[place(9) + i * static_cast<std::size_t>(lanes)] = all - part;
        }
    }
}

template <class Lane, bool kFactors>
void CompiledReplica::run(const StepTimes& times, std::span<const std::size_t> first_micro_batch) {
    // The tables are arrays of integers so that one buffer serves both widths; a Lane is read and written as a whole.
    constexpr std::size_t kWidth = sizeof(Lane) / sizeof(std::int64_t);
    const auto load = [](const std::int64_t* from) {
        Lane lane;
        std::memcpy(&lane, from, sizeof lane);
        return lane;
    };
    std::int64_t* const values = values_.data();
    const std::int64_t* const durations = durations_.data();
    std::memset(values, 0, sizeof(Lane));
    const std::size_t count = operations_.size();
    for (std::size_t i = 0; i < count; ++i) {
        const Operation& operation = operations_[i];
        Lane duration = load(durations + operation.duration * kWidth);
        if constexpr (kFactors) {
            if (micro_batch_of_[i] >= 0) {
                std::int64_t scaled[kWidth];
                std::memcpy(scaled, &duration, sizeof duration);
                for (std::size_t lane = 0; lane < first_micro_batch.size(); ++lane)
                    scaled[lane] =
                        scaled_ns(scaled[lane], times.micro_batch_factor[first_micro_batch[lane] +
                                                                         static_cast<std::size_t>(micro_batch_of_[i])]);
                std::memcpy(&duration, scaled, sizeof duration);
            }
        }
        const Lane end = later(load(values + operation.a * kWidth), load(values + operation.b * kWidth)) + duration;
        std::memcpy(values + operation.out * kWidth, &end, sizeof end);
    }
}

void CompiledReplica::evaluate(const StepTimes& times, std::span<const int> replicas,
                               std::span<const std::size_t> first_micro_batch, std::span<Ends* const> ends) {
    const bool factors = !times.micro_batch_factor.empty();
    const int lanes = replicas.size() == 1 ? 1 : kLanes;
    std::fill_n(durations_.begin(), lanes, 0);  // entry 0; the other width keeps other entries there
    for (std::size_t i = 0; i < replicas.size(); ++i) fill_durations(times, replicas[i], static_cast<int>(i), lanes);
    if (lanes == 1) {
        factors ? run<std::int64_t, true>(times, first_micro_batch)
                : run<std::int64_t, false>(times, first_micro_batch);
    } else {
        factors ? run<FourTimes, true>(times, first_micro_batch) : run<FourTimes, false>(times, first_micro_batch);
    }
    for (std::size_t i = 0; i < replicas.size(); ++i) {
        const auto read = [&](const std::vector<std::uint32_t>& slots, std::vector<std::int64_t>& out) {
            out.resize(slots.size());
            for (std::size_t k = 0; k < slots.size(); ++k)
                out[k] = values_[slots[k] * static_cast<std::size_t>(lanes) + i];
        };
        read(stage_slot_, ends[i]->stage);
        read(gradient_slot_, ends[i]->gradient);
        if (layout_.overlap_grad_reduce) read(buckets_slot_, ends[i]->buckets);
    }
}

}  // namespace headway::scenarios
