#pragma once

#include <array>
#include <string_view>

#include "scenarios/language/bounds.h"
#include "scenarios/language/scenario.h"
#include "scenarios/language/words.h"

/// The schema: one field list a struct, by which it is read, checked and written. A visitor `v` offers
///   field(key, member[, bounds])      a key that may be left out; the struct's default then holds
///   required(key, member[, bounds])   a key that must be there
///   index(key, member)                a number from 0 that may be left out (-1), and is then not written
///   group(key, list)                  keys of this struct under a heading of their own
///   catalogued(key, member, kind)     the name of a catalogue entry, or a map with an optional `base: NAME`
///   value_or_auto(key, member, open)  a value, or `auto`, which sets `open` and leaves the value alone
///   only_auto(key, open, why)         `auto` or nothing; `why` says where a value goes
///   list_or_word(key, member, word)   a list, or the word that stands for the empty one
///   rows(key, member)                 a list, or the name of a CSV file
///   refuse(key, why)                  a key of the vocabulary that cannot be used (here)
/// Numbers are not negative unless their bounds say otherwise. Enumerations have their words in words.h.
namespace headway::scenarios {

template <class V>
void fields(V& v, Thermal& t) {
    v.required("fast_resistance", t.fast_resistance, positive());
    v.required("fast_time", t.fast_time, positive());
    v.required("slow_resistance", t.slow_resistance, positive());
    v.required("slow_time", t.slow_time, positive());
    v.required("hot_slot_factor", t.hot_slot_factor, between(1, 10));
    v.required("max_operating", t.max_operating, between(20, 200));
    v.required("slowdown", t.slowdown, between(20, 200));
    v.required("shutdown", t.shutdown, between(20, 200));
    v.required("clock_loss_mhz_per_kelvin", t.clock_loss_mhz_per_kelvin);
}

template <class V>
void fields(V& v, GpuType& g) {
    v.name(g.name);
    v.required("peak_half", g.peak_half, positive());
    v.required("peak_fp8", g.peak_fp8);
    v.field("peak_single", g.peak_single, positive());
    v.required("memory", g.memory, positive());
    v.required("memory_bandwidth", g.memory_bandwidth, positive());
    v.required("sm_count", g.sm_count, between(1, 100'000));
    v.required("boost_clock", g.boost_clock, positive());
    v.required("min_clock", g.min_clock, positive());
    v.required("clock_step", g.clock_step, positive());
    v.required("power_limit", g.power_limit, positive());
    v.required("idle_power", g.idle_power);
    v.required("thermal", g.thermal);
    v.required("gemm_efficiency", g.gemm_efficiency, share_left());
    v.required("fp8_gemm_efficiency", g.fp8_gemm_efficiency, share_left());
    v.required("gemm_depth_lost", g.gemm_depth_lost);
    v.required("wave_quantisation", g.wave_quantisation, share());
    v.field("gemm_tile", g.gemm_tile, between(1, 4096));
    v.required("unaligned_efficiency", g.unaligned_efficiency, share_left());
    v.required("attention_forward_efficiency", g.attention_forward_efficiency, share_left());
    v.required("attention_backward_efficiency", g.attention_backward_efficiency, share_left());
    v.required("memory_efficiency", g.memory_efficiency, share_left());
}

template <class V>
void fields(V& v, FabricProtocol& p) {
    v.field("start", p.start);
    v.field("hop", p.hop);
    v.field("message", p.message);
    v.field("limit", p.limit);
}

template <class V>
void fields(V& v, Fabric& f) {
    v.name(f.name);
    v.required("kind", f.kind);
    v.required("bandwidth", f.bandwidth, positive());
    v.required("efficiency", f.efficiency, share_left());
    v.required("all_to_all_efficiency", f.all_to_all_efficiency, share_left());
    v.required("low_latency", f.low_latency);
    v.required("low_latency_128", f.low_latency_128);
    v.required("simple", f.simple);
    v.field("copy", f.copy);
    v.field("mesh", f.mesh);
    v.field("mesh_shares", f.mesh_shares, share_left());
    v.field("reduces_in_switch", f.reduces_in_switch);
}

template <class V>
void fields(V& v, SoftwareStack& s) {
    v.name(s.name);
    v.required("flash_attention", s.flash_attention);
    v.required("dropout", s.dropout);
    v.required("kernel_gap", s.kernel_gap);
    v.required("memory_traffic", s.memory_traffic, positive());
    v.required("copies", s.copies);
    v.required("cast_traffic", s.cast_traffic);
    v.required("loss_traffic", s.loss_traffic);
    v.required("pads_vocabulary", s.pads_vocabulary);
    v.required("host_forward", s.host_forward);
    v.required("host_backward", s.host_backward);
    v.required("host_collective", s.host_collective);
    v.required("host_unfused_softmax", s.host_unfused_softmax);
    v.required("host_loss", s.host_loss);
    v.required("host_message", s.host_message);
    v.required("host_step", s.host_step);
    v.required("tensor_overlap", s.tensor_overlap, share());
    v.required("input_gradient_overlap", s.input_gradient_overlap, share());
    v.required("tensor_bandwidth", s.tensor_bandwidth, share_left());
    v.required("collective_skew", s.collective_skew);
    v.required("scatter_gather", s.scatter_gather);
    v.required("exposed_bucket", s.exposed_bucket, share());
    v.required("overlap_interference", s.overlap_interference, share());
    v.required("node_nics", s.node_nics);
    v.required("shared_nic_efficiency", s.shared_nic_efficiency, share_left());
    v.required("gradient_bytes", s.gradient_bytes, positive());
    v.required("accumulation_bytes", s.accumulation_bytes);
    v.required("optimizer_traffic", s.optimizer_traffic);
}

template <class V>
void fields(V& v, Model& m) {
    v.name(m.name);
    v.required("layers", m.layers, between(1, 10'000));
    v.required("hidden", m.hidden, between(1, 1'000'000));
    v.required("heads", m.heads, between(1, 100'000));
    v.field("kv_heads", m.kv_heads, between(1, 100'000));
    v.field("head_dim", m.head_dim, between(1, 100'000));
    v.required("ffn", m.ffn, between(1, 10'000'000));
    v.field("gated_mlp", m.gated_mlp);
    v.required("vocab", m.vocab, between(1, 10'000'000));
    v.required("sequence_length", m.sequence_length, between(1, 100'000'000));
    v.field("positions", m.positions);
    v.field("norm", m.norm);
    v.field("biases", m.biases);
    v.field("tied_embedding", m.tied_embedding);
    v.field("norm_epsilon", m.norm_epsilon, between_above(0, 1));
    v.field("rotary_base", m.rotary_base, between(1, 1e12));
}

template <class V>
void fields(V& v, Training& t) {
    v.field("learning_rate", t.learning_rate, between(0, 100));
    v.field("final_learning_rate", t.final_learning_rate, between(0, 100));
    v.field("warmup_iterations", t.warmup_iterations, between(0, 1'000'000'000));
    v.field("decay_iterations", t.decay_iterations, between(0, 1'000'000'000));
    v.field("beta1", t.beta1, between(0, 1));
    v.field("beta2", t.beta2, between(0, 1));
    v.field("epsilon", t.epsilon, between_above(0, 1));
    v.field("weight_decay", t.weight_decay, between(0, 1));
    v.field("clip_gradient_norm", t.clip_gradient_norm, between(0, 1e6));
}

template <class V>
void fields(V& v, Checkpointing& c) {
    v.field("interval", c.interval);
    v.field("asynchronous", c.asynchronous);
    v.field("detection", c.detection);
    v.field("restart", c.restart);
}

template <class V>
void fields(V& v, MeasuredWorker& w) {
    v.required("replica", w.replica);
    v.required("stage", w.stage);
    v.required("forward", w.forward, positive());
    v.required("backward", w.backward, positive());
    v.field("send_activation", w.send_activation);
    v.field("send_gradient", w.send_gradient);
}

template <class V>
void fields(V& v, MeasuredTimes& m) {
    v.field("rest_of_step", m.rest_of_step);
    v.rows("workers", m.workers);
}

template <class V>
void fields(V& v, Job& j) {
    v.catalogued("model", j.model, "models");
    v.field("precision", j.precision);
    v.required("global_batch", j.global_batch, between(1, 1'000'000));
    v.field("micro_batch", j.micro_batch, between(1, 1'000'000));
    v.catalogued("stack", j.stack, "stacks");
    v.field("checkpoint", j.checkpoint);
    v.field("measured", j.measured);
    v.field("data", j.data);
    v.field("training", j.training);
}

template <class V>
void fields(V& v, Node& n) {
    v.catalogued("gpu", n.gpu, "gpus");
    v.field("gpus", n.gpus, between(1, 1024));
    v.catalogued("fabric", n.fabric, "fabrics");
    v.field("nics", n.nics, between(1, 1024));
    v.catalogued("network", n.network, "fabrics");
    v.required("host_memory", n.host_memory, positive());
    v.required("pcie", n.pcie, positive());
}

template <class V>
void fields(V& v, NodeGroup& g) {
    v.required("count", g.count, between(1, 1'000'000));
    v.required("node", g.node);
}

template <class V>
void fields(V& v, Network& n) {
    v.field("nodes_per_rack", n.nodes_per_rack, between(1, 1'000'000));
    v.field("oversubscription", n.oversubscription, between(1, 1000));
}

template <class V>
void fields(V& v, Facility& f) {
    v.field("inlet", f.inlet, between(-50, 100));
    v.field("spare_nodes", f.spare_nodes, between(0, 1'000'000));
    v.field("spare_start", f.spare_start);
    v.field("node_repair", f.node_repair);
    v.field("gpu_repair", f.gpu_repair);
    v.field("storage_read", f.storage_read, positive());
    v.field("storage_write", f.storage_write, positive());
}

template <class V>
void fields(V& v, Cluster& c) {
    v.name(c.name);
    v.node_groups(c.node_groups);
    v.field("network", c.network);
    v.field("facility", c.facility);
}

template <class V>
void fields(V& v, Adapt& a) {
    v.field("micro_batches", a.micro_batches);
    v.field("layers", a.layers);
    v.field("layers_apart", a.layers_apart);
    v.field("placement", a.placement);
    v.field("degrees", a.degrees);
    v.field("drop", a.drop);
    v.field("live", a.live);
}

template <class V>
void fields(V& v, Strategy& s) {
    Layout& l = s.layout;
    Wildcards& w = s.wildcards;
    v.value_or_auto("tensor", l.tensor, w.tensor, between(1, 1'000'000));
    v.value_or_auto("pipeline", l.pipeline, w.pipeline, between(1, 10'000));
    v.value_or_auto("data", l.data, w.data, between(1, 1'000'000));
    v.value_or_auto("context", l.context, w.context, between(1, 1'000'000));
    v.value_or_auto("virtual_pipeline", l.virtual_pipeline, w.virtual_pipeline, between(1, 10'000));
    v.field("zero_bubble_memory", l.zero_bubble_memory, between(1, 2));
    v.field("sequence_parallel", l.sequence_parallel);
    v.value_or_auto("schedule", l.schedule, w.schedule, {});
    v.value_or_auto("recompute", l.recompute, w.recompute, {});
    v.only_auto("micro_batch", w.micro_batch, "a number of sequences goes into job.micro_batch");
    v.field("distributed_optimizer", l.distributed_optimizer);
    v.group("overlap", [&l](auto& o) {
        o.field("grad_reduce", l.overlap_grad_reduce);
        o.field("param_gather", l.overlap_param_gather);
        o.field("tensor", l.overlap_tensor_comm);
        o.field("pipeline", l.overlap_pipeline_comm);
    });
    v.list_or_word("layers_per_stage", s.layers_per_stage, "even", between(1, 10'000));
    v.list_or_word("micro_batches_per_replica", s.micro_batches_per_replica, "even", between(1, 1'000'000));
    v.list_or_word("placement", s.placement, "in_order", not_negative());
    v.field("idle_gpus", s.idle_gpus, between(0, 1'048'576));
    v.field("adapt", s.adapt);
    v.refuse("expert", "expert parallelism is not built yet");
    v.refuse(
        "fully_sharded",
        "sharded parameters and gradients (ZeRO-2, ZeRO-3, FSDP) are not built yet; distributed_optimizer is ZeRO-1");
    v.refuse("compression", "compression of communication is not built yet");
    v.refuse("tiering", "state in host memory or on storage is not built yet");
    v.refuse("collectives", "a choice of collective algorithm per group is not built yet");
}

template <class V>
void fields(V& v, GpuTarget& t) {
    v.index("gpu", t.gpu);
    v.index("node", t.node);
    v.index("rack", t.rack);
}

template <class V>
void fields(V& v, LinkTarget& t) {
    v.index("rack_uplink", t.rack_uplink);
    v.index("node_network", t.node_network);
    v.index("nic", t.nic);
    v.index("node_fabric", t.node_fabric);
    v.index("pipeline_hop", t.pipeline_hop);
}

template <class V>
void fields(V& v, SpeedPoint& p) {
    v.required("time", p.time);
    v.required("factor", p.factor, pace_left(10));
}

template <class V>
void fields(V& v, Airflow& c) {
    fields(v, c.at);
    v.required("resistance_factor", c.resistance_factor, between_above(0, 100));
}
template <class V>
void fields(V& v, Inlet& c) {
    fields(v, c.at);
    v.required("temperature", c.temperature, between(-50, 100));
}
template <class V>
void fields(V& v, PowerCap& c) {
    fields(v, c.at);
    v.required("limit", c.limit, positive());
}
template <class V>
void fields(V& v, CoTenant& c) {
    fields(v, c.at);
    v.field("compute_share", c.compute_share, share_taken());
    v.field("memory_share", c.memory_share, share_taken());
}
template <class V>
void fields(V& v, SpeedFactor& c) {
    fields(v, c.at);
    v.rows("series", c.series);
    if (c.series.empty())
        v.required("factor", c.factor, pace_left(10));
    else
        v.refuse("factor", "a recorded series is given; give one of the two");
}
template <class V>
void fields(V& v, LinkBandwidth& c) {
    fields(v, c.at);
    v.required("factor", c.factor, pace_left(1));
}
template <class V>
void fields(V& v, LinkDelay& c) {
    fields(v, c.at);
    v.required("delay", c.delay, added_delay());
}
template <class V>
void fields(V& v, LinkFlap& c) {
    fields(v, c.at);
    v.required("down", c.down, positive());
    v.required("period", c.period, positive());
}
template <class V>
void fields(V& v, GpuLoss& c) {
    v.required("gpu", c.gpu);
}
template <class V>
void fields(V& v, NodeLoss& c) {
    v.required("node", c.node);
}
template <class V>
void fields(V& v, NodeArrival& c) {
    v.field("nodes", c.nodes, between(1, 1'000'000));
}
template <class V>
void fields(V& v, SequenceLengths& c) {
    v.required("spread", c.spread, between(0, 2));
}
template <class V>
void fields(V& v, Jitter& c) {
    v.required("spread", c.spread, between(0, 2));
}

template <class V>
void fields(V& v, Disturbance& d) {
    v.field("name", d.name);
    v.required("start", d.start);
    v.field("duration", d.duration, positive());
    v.cause(d.cause);
}

template <class V>
void fields(V& v, FamilyRate& r) {
    v.field("per_day", r.per_day, between(0, 1e6));
    v.field("severity_min", r.severity_min, positive());
    v.field("severity_max", r.severity_max, positive());
    v.field("shortest", r.shortest, positive());
    v.field("longest", r.longest, positive());
}

template <class V>
void fields(V& v, DisturbanceRates& r) {
    v.field("horizon", r.horizon, positive());
    v.field("airflow", r.airflow);
    v.field("inlet", r.inlet);
    v.field("power_cap", r.power_cap);
    v.field("co_tenant", r.co_tenant);
    v.field("speed_factor", r.speed_factor);
    v.field("link_bandwidth", r.link_bandwidth);
    v.field("link_delay", r.link_delay);
    v.field("link_flap", r.link_flap);
    v.field("gpu_loss", r.gpu_loss);
    v.field("node_loss", r.node_loss);
    v.field("node_arrival", r.node_arrival);
    v.field("sequence_lengths", r.sequence_lengths);
    v.field("jitter", r.jitter);
}

template <class V>
void fields(V& v, RunLength& r) {
    v.field("time", r.time, positive());
    if (r.time)
        v.refuse("iterations", "a time is given; give one of the two");
    else
        v.field("iterations", r.iterations, between(1, 100'000'000));
}

template <class V>
void fields(V& v, Sensors& s) {
    v.field("time_noise", s.time_noise, share());
    v.field("temperature_noise", s.temperature_noise, between(0, 100));
    v.field("delay_intervals", s.delay_intervals, between(0, 100));
}

template <class V>
void fields(V& v, Switching& s) {
    v.field("time_factor", s.time_factor, between_above(0, 100));
}

template <class V>
void fields(V& v, Deployment& d) {
    v.field("pace", d.pace, between_above(0, 1'000'000));
    v.field("timeout", d.timeout, positive());
    v.field("checkpoints", d.checkpoints);
    v.field("keep", d.keep, between(1, 1000));
}

template <class V>
void fields(V& v, Scenario& s) {
    v.field("name", s.name);
    v.field("description", s.description);
    v.required("job", s.job);
    v.catalogued("cluster", s.cluster, "clusters");
    v.required("strategy", s.strategy);
    v.field("disturbances", s.disturbances);
    v.field("generate", s.generate);
    v.field("policy", s.policy);
    v.field("seed", s.seed);
    v.field("run", s.run);
    v.field("decision_interval", s.decision_interval, between(1, 1'000'000));
    v.field("telemetry_period", s.telemetry_period, positive());
    v.field("sensors", s.sensors);
    v.field("switching", s.switching);
    v.field("deploy", s.deploy);
}

}  // namespace headway::scenarios
