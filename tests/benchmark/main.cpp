#include <cstdio>
#include <cstring>

#include <benchmark/benchmark.h>

#include "tests/benchmark/host_links.h"
#include "tests/benchmark/host_speed.h"
#include "tests/benchmark/host_training.h"
#include "tests/benchmark/predictions.h"
#include "tests/benchmark/ratios.h"

/// Without arguments all benchmarks with their absolute figures, which depend on the machine. `--ratios` measures only
/// the pairs whose ratio the design promises, prints them and fails when one is missed; `--gemm` those of the host's
/// matrix products alone; `--links` how ranks of one machine talk; `--predictions` how far predictions of candidates are
/// from what the simulator takes.
int main(int argc, char** argv) {
    if (argc == 2 && std::strcmp(argv[1], "--ratios") == 0) return headway::benchmarks::print_ratios() ? 0 : 1;
    if (argc == 2 && std::strcmp(argv[1], "--links") == 0) return headway::benchmarks::print_host_links() ? 0 : 1;
    if (argc == 2 && std::strcmp(argv[1], "--host") == 0) {
        const bool gemm = headway::benchmarks::print_host_gemm(), training = headway::benchmarks::print_host_training();
        return gemm && training ? 0 : 1;
    }
    if (argc == 2 && std::strcmp(argv[1], "--predictions") == 0) {
        headway::benchmarks::print_prediction_errors(400);
        return 0;
    }
    benchmark::Initialize(&argc, argv);
    if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
    benchmark::RunSpecifiedBenchmarks();
    benchmark::Shutdown();
    return 0;
}
