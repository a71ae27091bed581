#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace headway::sim {

/// What happens next in an iteration. Events of one moment go in the order in which they were made.
class EventQueue {
  public:
    enum class Kind : std::uint8_t { kTaskEnds, kFlowEnds, kFlowStarts, kChange };
    struct Event {
        std::int64_t at = 0;  ///< ns from the start of the iteration
        std::uint64_t order = 0;
        std::int32_t id = 0;        ///< task, flow or change
        std::uint32_t version = 0;  ///< of the task or flow; an event of an older version no longer counts
        Kind kind = Kind::kTaskEnds;
    };

    void clear() {
        heap_.clear();
        made_ = 0;
    }
    bool empty() const { return heap_.empty(); }
    std::int64_t next_at() const { return heap_.front().at; }
    void push(std::int64_t at, std::int32_t id, std::uint32_t version, Kind kind) {
        heap_.push_back({at, made_++, id, version, kind});
        std::push_heap(heap_.begin(), heap_.end(), later);
    }
    Event pop() {
        std::pop_heap(heap_.begin(), heap_.end(), later);
        const Event event = heap_.back();
        heap_.pop_back();
        return event;
    }

  private:
    static bool later(const Event& a, const Event& b) { return a.at != b.at ? a.at > b.at : a.order > b.order; }

    std::vector<Event> heap_;
    std::uint64_t made_ = 0;
};

}  // namespace headway::sim
