#pragma once

#include "scenarios/language/fields.h"
#include "scenarios/language/scenario_set.h"

/// The schema of scenario sets, by field lists as in fields.h.
namespace headway::scenarios {

template <class V>
void fields(V& v, WholeRange& r) {
    v.required("min", r.min, between(0, 1'000'000));
    v.required("max", r.max, between(0, 1'000'000));
}
template <class V>
void fields(V& v, NumberRange& r) {
    v.required("min", r.min);
    v.required("max", r.max);
}
template <class V>
void fields(V& v, TimeRange& r) {
    v.required("min", r.min);
    v.required("max", r.max);
}

template <class V>
void fields(V& v, JobChoice& j) {
    v.field("weight", j.weight, positive());
    v.catalogued("model", j.model, "models");
    v.catalogued("stack", j.stack, "stacks");
    v.field("precision", j.precision);
    v.required("global_batch", j.global_batch, between(1, 1'000'000));
    v.field("micro_batch", j.micro_batch, between(1, 1'000'000));
}

template <class V>
void fields(V& v, ClusterChoice& c) {
    v.field("weight", c.weight, positive());
    v.catalogued("cluster", c.cluster, "clusters");
    v.required("nodes", c.nodes, between(1, 100'000));
    v.field("nodes_per_rack", c.nodes_per_rack, between(1, 100'000));
    v.field("oversubscription", c.oversubscription, between(1, 1000));
}

template <class V>
void fields(V& v, LayoutChoice& l) {
    v.field("compared", l.compared, between(1, 1000));
    v.field("fewest_micro_batches", l.fewest_micro_batches, between(1, 1'000'000));
    v.field("tensor", l.tensor, between(1, 1'000'000));
    v.field("pipeline", l.pipeline, between(1, 10'000));
    v.field("schedule", l.schedule);
    v.field("recompute", l.recompute);
    v.field("distributed_optimizer", l.distributed_optimizer);
}

template <class V>
void fields(V& v, DrawnCause& c) {
    v.required("cause", c.cause);
    v.field("on", c.on);
    v.field("count", c.count);
    v.field("severity", c.severity);
    v.field("start", c.start);
    v.field("lasting", c.lasting);
}

template <class V>
void fields(V& v, ScenarioFamily& f) {
    v.required("name", f.name);
    v.field("weight", f.weight, positive());
    v.field("causes", f.causes);
}

template <class V>
void fields(V& v, Randomisation& r) {
    v.field("constants", r.constants, share());
    v.field("time_noise", r.time_noise);
    v.field("temperature_noise", r.temperature_noise);
    v.field("delay_intervals", r.delay_intervals);
    v.field("switch_time_factor", r.switch_time_factor);
}

template <class V>
void fields(V& v, FacilityChoice& f) {
    v.field("spare_nodes", f.spare_nodes);
    v.field("spare_start", f.spare_start);
    v.field("repair", f.repair);
    v.field("checkpoint_interval", f.checkpoint_interval);
    v.field("inlet", f.inlet);
}

template <class V>
void fields(V& v, RunChoice& r) {
    v.field("mean", r.mean, positive());
    v.field("shortest", r.shortest, positive());
    v.field("longest", r.longest, positive());
    v.field("between_decisions", r.between_decisions);
}

template <class V>
void fields(V& v, SetStage& s) {
    v.required("name", s.name);
    v.required("until", s.until, share_left());
    v.field("largest_gpus", s.largest_gpus, between(0, 1'048'576));
    v.field("randomisation", s.randomisation, share());
    v.field("families", s.families);
}

template <class V>
void fields(V& v, ScenarioSet& s) {
    v.field("name", s.name);
    v.field("description", s.description);
    v.field("seed", s.seed);
    v.required("count", s.count, between(1, 100'000));
    v.required("jobs", s.jobs);
    v.required("clusters", s.clusters);
    v.field("layout", s.layout);
    v.required("families", s.families);
    v.field("randomisation", s.randomisation);
    v.field("facility", s.facility);
    v.field("run", s.run);
    v.field("stages", s.stages);
}

}  // namespace headway::scenarios
