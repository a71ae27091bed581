#pragma once

#include <cstdint>

namespace headway::backend::host {

/// Does `rounds` rounds of fused multiply-adds of float32 in registers alone, as many as keep both units of a core
/// busy, and returns how many floating-point operations that were (a multiply-add counts 2). Divided by the time it
/// took: what one core can reach with the instruction set that this program is built for.
double multiply_adds_in_registers(std::int64_t rounds);

}  // namespace headway::backend::host
