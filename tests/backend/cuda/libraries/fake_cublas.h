#pragma once

/// cuBLASLt as far as products use it: column-major, on the host, with what its reference demands of layouts checked.
/// Operands of less than 4 bytes' alignment find no algorithm, as libraries of tensor cores have it.
namespace headway::tests {

struct FakeCublasCounts {
    int products = 0;
    int heuristics = 0;
};
FakeCublasCounts& fake_cublas_counts();

}  // namespace headway::tests
