#pragma once

#include "scenarios/language/plan.h"
#include "scenarios/record/json_text.h"

namespace headway::scenarios {

/// A plan as an object of a record's line: degrees, switches and the columns `gpu_of_rank`, `layers_of_virtual_stage`
/// (one split where all replicas share it, else one a replica) and `micro_batches_of_replica`.
void write_plan(JsonText& json, const Plan& plan);

}  // namespace headway::scenarios
