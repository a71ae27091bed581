#pragma once

namespace headway::benchmarks {

/// Prints how long collectives and messages take between ranks of this machine, through shared memory and over the
/// network; false when shared memory is not faster for an all-reduce of 1 MiB.
bool print_host_links();

}  // namespace headway::benchmarks
