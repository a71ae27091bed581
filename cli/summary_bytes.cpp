#include "cli/summary_bytes.h"

#include <cstring>
#include <stdexcept>
#include <type_traits>

namespace headway::cli {

namespace {

class ByteWriter {
  public:
    template <class Value>
    void operator()(const Value& value) {
        if constexpr (std::is_arithmetic_v<Value>) {
            bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
        } else {
            (*this)(static_cast<std::uint64_t>(value.size()));
            for (const auto& item : value) each(item);
        }
    }
    std::string bytes;

  private:
    template <class Item>
    void each(const Item& item);
};

class ByteReader {
  public:
    explicit ByteReader(const std::string& read_from) : bytes_(read_from) {}
    template <class Value>
    void operator()(Value& value) {
        if constexpr (std::is_arithmetic_v<Value>) {
            if (bytes_.size() - position_ < sizeof value) throw std::runtime_error("a worker's summary is cut off");
            std::memcpy(&value, bytes_.data() + position_, sizeof value);
            position_ += sizeof value;
        } else {
            std::uint64_t size = 0;
            (*this)(size);
            if (size > bytes_.size()) throw std::runtime_error("a worker's summary is damaged");
            value.resize(size);
            for (auto& item : value) each(item);
        }
    }
    bool at_end() const { return position_ == bytes_.size(); }

  private:
    template <class Item>
    void each(Item& item);
    const std::string& bytes_;
    std::size_t position_ = 0;
};

// One field list serves both directions; S is the struct or the struct to const.

template <class V, class S>
void pass_gpu(V& v, S& gpu) {
    v(gpu.figures.gpu), v(gpu.figures.mean_speed), v(gpu.figures.min_speed), v(gpu.figures.max_temperature_c);
    v(gpu.node), v(gpu.slot), v(gpu.rack), v(gpu.stage), v(gpu.replica);
}

template <class V, class S>
void pass_cost(V& v, S& cost) {
    v(cost.name), v(cost.kind), v(cost.start_ns), v(cost.duration_ns), v(cost.slowed_ns), v(cost.paused_ns);
    v(cost.repeated_ns), v(cost.iterations_lost), v(cost.share), v(cost.what);
}

template <class V, class S>
void pass_summary(V& v, S& s) {
    v(s.scenario), v(s.policy), v(s.seed), v(s.layout), v(s.gpus), v(s.complete), v(s.iterations);
    v(s.iterations_completed), v(s.iterations_lost), v(s.wall_ns), v(s.healthy_iteration_ns), v(s.iteration_mean_s);
    v(s.iteration_p50_s), v(s.iteration_p95_s), v(s.tokens_per_s), v(s.tflops_per_gpu), v(s.model_tflops_per_gpu);
    v(s.mfu), v(s.goodput);
    v(s.time_share.compute), v(s.time_share.bubble), v(s.time_share.tensor), v(s.time_share.pipeline);
    v(s.time_share.data), v(s.time_share.straggling), v(s.time_share.recovery);
    v(s.checkpoint_ns), v(s.loss_ns), v(s.switch_ns), v(s.repeated_ns), v(s.uncovered_ns);
    v(s.disturbances), v(s.slowest), v(s.decisions), v(s.switches);
    v(s.decisions_without_choice), v(s.handed_over), v(s.rolled_back), v(s.shadow), v(s.shadow_differs);
    v(s.shadow_regret_ns);
}

template <class V, class Item>
void pass_item(V& v, Item& item) {
    using Plain = std::remove_const_t<Item>;
    if constexpr (std::is_same_v<Plain, scenarios::DisturbanceCost>) {
        pass_cost(v, item);
    } else if constexpr (std::is_same_v<Plain, scenarios::SlowGpu>) {
        pass_gpu(v, item);
    } else {
        v(item);
    }
}

template <class Item>
void ByteWriter::each(const Item& item) {
    pass_item(*this, item);
}

template <class Item>
void ByteReader::each(Item& item) {
    pass_item(*this, item);
}

}  // namespace

std::string to_bytes(const scenarios::RunSummary& summary) {
    ByteWriter writer;
    pass_summary(writer, summary);
    return writer.bytes;
}

scenarios::RunSummary summary_from_bytes(const std::string& bytes) {
    ByteReader reader(bytes);
    scenarios::RunSummary summary;
    pass_summary(reader, summary);
    if (!reader.at_end()) throw std::runtime_error("a worker's summary is longer than it should be");
    return summary;
}

}  // namespace headway::cli
