#include "sim/network/flow_network.h"

#include <xbt/log.h>
#include <simgrid/kernel/resource/Model.hpp>
#include <simgrid/kernel/resource/NetworkModelIntf.hpp>
#include <simgrid/s4u.hpp>

#include <cmath>
#include <stdexcept>
#include <string>
#include <unordered_set>

namespace headway::sim {
namespace {

namespace s4u = simgrid::s4u;

// With the clock in [2^17, 2^18) s its quantum is 2.9e-11 s, far below a nanosecond; 36 hours of contended time fit.
constexpr double kClockStart = 131072.0;
constexpr double kSpanAlignment = 1048576.0;  // spans start on multiples of 2^-20 s
constexpr double kRawLatency = 1e-9;          // equal on every route, and cancelled by the latency factor

}  // namespace

/// Tells the engine when to stop next on the client's account.
class FlowClientModel final : public simgrid::kernel::resource::Model {
  public:
    FlowClientModel() : Model("headway client") {}

    double next_occurring_event(double now) override {
        if (target_ > now) return target_ - now;
        if (client_ == nullptr || flows_ == 0) return -1.0;
        const std::int64_t next = client_->next_event_ns();
        if (next < 0) return -1.0;
        return std::max(0.0, date_of(next) - now);
    }
    void update_actions_state(double /*now*/, double /*delta*/) override {}

    double date_of(std::int64_t ns) const { return span_date_ + static_cast<double>(ns - span_ns_) * 1e-9; }
    std::int64_t ns_of(double date) const { return span_ns_ + std::llround((date - span_date_) * 1e9); }

    FlowNetwork::Client* client_ = nullptr;
    int flows_ = 0;
    double target_ = -1.0;  // a date the engine only has to reach
    double span_date_ = 0.0;
    std::int64_t span_ns_ = 0;
};

class FlowNetwork::Impl {
  public:
    Impl(const std::vector<double>& capacity, const std::vector<LinkPath>& sources,
         const std::vector<LinkPath>& sinks) {
        if (in_process_ != nullptr)
            throw std::logic_error("one simulated network at a time: SimGrid has one engine a process");
        in_process_ = this;
        // Settings and callbacks belong to the process: SimGrid can neither change nor disconnect them later.
        static bool first = true;
        xbt_log_control_set("xbt_cfg.thres:warning");
        char name[] = "headway";
        char* arguments[] = {name, nullptr};
        int count = 1;
        engine_ = std::make_unique<s4u::Engine>(&count, arguments);
        if (first) {
            s4u::Engine::set_config("network/model:CM02");
            s4u::Engine::set_config("network/crosstraffic:0");
            s4u::Engine::set_config("network/TCP-gamma:0");
            s4u::Activity::on_completion_cb([](const s4u::Activity& activity) {
                if (in_process_ != nullptr) in_process_->completed(activity);
            });
            s4u::Engine::on_time_advance_cb([](double) {
                if (in_process_ != nullptr) in_process_->advanced();
            });
            first = false;
        }
        build(capacity, sources, sinks);
        model_ = std::make_shared<FlowClientModel>();
        engine_->add_model(model_);
        // The clock goes on from one engine to the next.
        if (s4u::Engine::get_clock() < kClockStart) reach(kClockStart);
    }
    ~Impl() { in_process_ = nullptr; }
    Impl(const Impl&) = delete;
    Impl& operator=(const Impl&) = delete;

    void set_capacity(int link, double bytes_per_second) {
        links_[static_cast<std::size_t>(link)]->set_bandwidth(bytes_per_second);
    }
    double capacity(int link) const { return links_[static_cast<std::size_t>(link)]->get_bandwidth(); }

    void open_span(std::int64_t now_ns) {
        if (model_->flows_ != 0) throw std::logic_error("a span of flows cannot start while flows are in flight");
        reach((std::floor(s4u::Engine::get_clock() * kSpanAlignment) + 1.0) / kSpanAlignment);
        model_->span_date_ = s4u::Engine::get_clock();
        model_->span_ns_ = now_ns;
    }

    void start(int source, int sink, std::int64_t bytes, int tag) {
        int slot;
        if (free_slots_.empty()) {
            slot = static_cast<int>(slots_.size());
            slots_.emplace_back();
            tags_.push_back(0);
        } else {
            slot = free_slots_.back();
            free_slots_.pop_back();
        }
        const auto index = static_cast<std::size_t>(slot);
        tags_[index] = tag;
        ++model_->flows_;
        s4u::CommPtr comm = s4u::Comm::sendto_init();
        comm->set_data(reinterpret_cast<void*>(static_cast<std::intptr_t>(slot)));
        comm->set_payload_size(static_cast<std::uint64_t>(bytes));
        slots_[index] = comm;  // the engine does not keep it alive
        comm->set_source(sources_[static_cast<std::size_t>(source)]);
        comm->set_destination(sinks_[static_cast<std::size_t>(sink)]);  // starts it
    }

    int flows_in_flight() const { return model_->flows_; }

    void run(Client& client) {
        model_->client_ = &client;
        while (model_->flows_ > 0) {
            const int before = model_->flows_;
            const double clock = s4u::Engine::get_clock();
            engine_->run();
            if (model_->flows_ == before && s4u::Engine::get_clock() <= clock)
                throw std::logic_error("the flow engine stands still with flows in flight");
        }
        model_->client_ = nullptr;
        graveyard_.clear();
    }

  private:
    void build(const std::vector<double>& capacity, const std::vector<LinkPath>& sources,
               const std::vector<LinkPath>& sinks) {
        s4u::NetZone* zone = s4u::create_star_zone("cluster");
        zone->get_network_model()->set_lat_factor_cb([](double, const s4u::Host*, const s4u::Host*,
                                                        const std::vector<s4u::Link*>&,
                                                        const std::unordered_set<s4u::NetZone*>&) { return 0.0; });
        for (std::size_t i = 0; i < capacity.size(); ++i)
            links_.push_back(zone->create_link("l" + std::to_string(i), capacity[i])->set_latency(0.0));
        // The raw latency sits on the first link of every way out; ways in have none.
        for (const LinkPath& path : sources) links_[static_cast<std::size_t>(path.front())]->set_latency(kRawLatency);
        for (s4u::Link* link : links_) link->seal();
        for (std::size_t i = 0; i < sources.size(); ++i) {
            sources_.push_back(zone->create_host("o" + std::to_string(i), 1.0)->seal());
            zone->add_route(sources_.back()->get_netpoint(), nullptr, nullptr, nullptr, route(sources[i]), false);
        }
        for (std::size_t i = 0; i < sinks.size(); ++i) {
            sinks_.push_back(zone->create_host("i" + std::to_string(i), 1.0)->seal());
            zone->add_route(nullptr, sinks_.back()->get_netpoint(), nullptr, nullptr, route(sinks[i]), false);
        }
        zone->seal();
    }

    std::vector<s4u::LinkInRoute> route(const std::vector<int>& links) const {
        std::vector<s4u::LinkInRoute> result;
        for (const int link : links) result.emplace_back(links_[static_cast<std::size_t>(link)]);
        return result;
    }

    void reach(double date) {
        model_->target_ = date;
        engine_->run();
        model_->target_ = -1.0;
    }

    void advanced() {
        if (model_->client_ != nullptr && model_->target_ < 0.0)
            model_->client_->advance(model_->ns_of(s4u::Engine::get_clock()));
    }

    void completed(const s4u::Activity& activity) {
        const auto slot = static_cast<int>(reinterpret_cast<std::intptr_t>(activity.get_data<void>()));
        const auto index = static_cast<std::size_t>(slot);
        if (graveyard_.size() >= 4096) graveyard_.erase(graveyard_.begin(), graveyard_.begin() + 2048);
        graveyard_.push_back(std::move(slots_[index]));  // must outlive this callback
        free_slots_.push_back(slot);
        --model_->flows_;
        if (model_->client_ != nullptr)
            model_->client_->flow_done(tags_[index], model_->ns_of(s4u::Engine::get_clock()));
    }

    static inline Impl* in_process_ = nullptr;
    std::unique_ptr<s4u::Engine> engine_;
    std::shared_ptr<FlowClientModel> model_;
    std::vector<s4u::Link*> links_;
    std::vector<s4u::Host*> sources_;
    std::vector<s4u::Host*> sinks_;
    std::vector<s4u::CommPtr> slots_;
    std::vector<int> tags_;
    std::vector<int> free_slots_;
    std::vector<s4u::CommPtr> graveyard_;
};

FlowNetwork::FlowNetwork(const std::vector<double>& capacity, const std::vector<LinkPath>& sources,
                         const std::vector<LinkPath>& sinks)
    : impl_(std::make_unique<Impl>(capacity, sources, sinks)) {}
FlowNetwork::~FlowNetwork() = default;

void FlowNetwork::set_capacity(int link, double bytes_per_second) {
    impl_->set_capacity(link, bytes_per_second);
}
double FlowNetwork::capacity(int link) const {
    return impl_->capacity(link);
}
void FlowNetwork::open_span(std::int64_t now_ns) {
    impl_->open_span(now_ns);
}
void FlowNetwork::start(int source, int sink, std::int64_t bytes, int tag) {
    impl_->start(source, sink, bytes, tag);
}
int FlowNetwork::flows_in_flight() const {
    return impl_->flows_in_flight();
}
void FlowNetwork::run(Client& client) {
    impl_->run(client);
}

}  // namespace headway::sim
