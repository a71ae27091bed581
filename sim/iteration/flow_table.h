#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "sim/network/topology.h"

namespace headway::sim {

/// A message or one hop of a ring on its way.
struct Flow {
    std::int32_t task = -1;
    Route route;
    double rate = 0.0;  ///< bytes a second when alone
    double bytes = 0.0;
    std::int64_t wire_start = 0;  ///< ns; before it, the flow only holds its place
    std::int64_t end = 0;         ///< ns, when alone
    std::uint32_t version =
        0;  ///< events of an older version no longer count; never falls, also when the place is used again
    bool contends = false;  ///< handed to the network
    bool on_wire = false;   ///< and started there
    bool active = false;
};

/// The flows of an iteration that are under way, by number and by link, with the sum of nominal rates on every link.
class FlowTable {
  public:
    explicit FlowTable(int links) : on_link_(static_cast<std::size_t>(links)), load_(static_cast<std::size_t>(links)) {}

    void clear() {
        flows_.clear();
        free_.clear();
        for (auto& list : on_link_) list.clear();
        std::fill(load_.begin(), load_.end(), 0.0);
    }

    /// Numbers in use are below this; not all of them are active.
    std::int32_t size() const { return static_cast<std::int32_t>(flows_.size()); }
    Flow& operator[](std::int32_t id) { return flows_[static_cast<std::size_t>(id)]; }
    const std::vector<std::int32_t>& on_link(std::size_t link) const { return on_link_[link]; }

    std::int32_t add(Flow flow) {
        std::int32_t id = size();
        if (free_.empty()) {
            flows_.emplace_back();
        } else {
            id = free_.back();
            free_.pop_back();
        }
        flow.version = (*this)[id].version;
        flow.active = true;
        (*this)[id] = flow;
        for (int l = 0; l < flow.route.count; ++l) {
            on_link_[link_of(flow, l)].push_back(id);
            load_[link_of(flow, l)] += flow.rate;
        }
        return id;
    }

    void remove(std::int32_t id) {
        Flow& flow = (*this)[id];
        for (int l = 0; l < flow.route.count; ++l) {
            auto& list = on_link_[link_of(flow, l)];
            list.erase(std::find(list.begin(), list.end(), id));
            load_[link_of(flow, l)] = list.empty() ? 0.0 : load_[link_of(flow, l)] - flow.rate;
        }
        ++flow.version;
        flow.active = false;
        free_.push_back(id);
    }

    void set_rate(std::int32_t id, double rate) {
        Flow& flow = (*this)[id];
        for (int l = 0; l < flow.route.count; ++l) load_[link_of(flow, l)] += rate - flow.rate;
        flow.rate = rate;
    }

    /// True where the nominal rates on the link add up to more than it carries.
    bool overloaded(std::size_t link, const std::vector<double>& capacity) const {
        return load_[link] > capacity[link] * kOverload;
    }

    static std::size_t link_of(const Flow& flow, int position) {
        return static_cast<std::size_t>(flow.route.links[static_cast<std::size_t>(position)]);
    }

  private:
    static constexpr double kOverload = 1.0 + 1e-9;

    std::vector<Flow> flows_;
    std::vector<std::int32_t> free_;
    std::vector<std::vector<std::int32_t>> on_link_;
    std::vector<double> load_;
};

}  // namespace headway::sim
