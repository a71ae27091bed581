#pragma once

namespace headway::benchmarks {

/// Measures and prints every promised ratio of speeds. False when one is missed in three tries.
bool print_ratios();

}  // namespace headway::benchmarks
