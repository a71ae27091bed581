#pragma once

#include <cstdint>
#include <memory>
#include <vector>

/// Max-min fair flows over shared links: the one adapter to SimGrid (its headers appear in flow_network.cpp alone).
///
/// One instance at a time, since SimGrid has one engine a process. The engine is driven from the calling thread without
/// actors. It runs only while flows are in flight: everything else is the client's own business, in integer
/// nanoseconds.
///
/// Settings (measured on SimGrid 3.32): network model CM02 without cross traffic and without TCP windows, so that n
/// flows on a link get 1/n each; all routes carry the same vanishing raw latency, taken out again by a latency factor
/// of 0, since CM02 weights flows by latency and a route of latency 0 would freeze a flow's rate bound at its start.
/// Real latencies are the client's delays. The engine's clock starts at a power of two and every span of flows on a
/// multiple of 2^-20 s, so that equal spans are equal to the bit.
namespace headway::sim {

/// Links that a flow crosses on its way out of a source or into a sink, as indices into the network's links.
using LinkPath = std::vector<int>;

class FlowNetwork {
  public:
    /// What goes on beside the flows. Times are nanoseconds on the client's own clock.
    class Client {
      public:
        virtual ~Client() = default;
        /// Time of the client's next own event; negative: none.
        virtual std::int64_t next_event_ns() const = 0;
        /// Do everything due up to and including `now_ns`; may start flows and change capacities.
        virtual void advance(std::int64_t now_ns) = 0;
        /// A flow has ended. May start flows and change capacities.
        virtual void flow_done(int tag, std::int64_t now_ns) = 0;
    };

    /// `capacity` in bytes a second, each > 0. Throws std::logic_error while another instance lives.
    FlowNetwork(const std::vector<double>& capacity, const std::vector<LinkPath>& sources,
                const std::vector<LinkPath>& sinks);
    ~FlowNetwork();

    /// Effective at once, also for flows in flight.
    void set_capacity(int link, double bytes_per_second);
    double capacity(int link) const;

    /// Opens a span: SimGrid's clock now stands for `now_ns` of the client's. Only while no flow is in flight.
    void open_span(std::int64_t now_ns);
    /// Starts a flow of at least one byte; `tag` comes back in `flow_done`.
    void start(int source, int sink, std::int64_t bytes, int tag);
    int flows_in_flight() const;
    /// Runs until no flow is in flight.
    void run(Client& client);

  private:
    class Impl;
    std::unique_ptr<Impl> impl_;
};

}  // namespace headway::sim
