#pragma once

#include "policies/learning/byte_stream.h"
#include "policies/learning/trained_policy.h"

namespace headway::policies {

/// A policy without the frame of a file, for files that hold one among other things. `read_policy_body` throws
/// std::runtime_error for numbers that contradict each other; it takes any number of features.
void write_policy_body(ByteWriter& out, const TrainedPolicy& policy);
TrainedPolicy read_policy_body(ByteReader& in);

}  // namespace headway::policies
