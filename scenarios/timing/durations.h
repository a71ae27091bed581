#pragma once

#include <cstdint>
#include <vector>

namespace headway::scenarios {

/// Durations of everything an iteration consists of, in nanoseconds. worker = replica * pipeline + stage; a cell is
/// worker * virtual_pipeline + chunk. An empty vector means zeros, except where it says otherwise.
struct StepTimes {
    std::vector<std::int64_t> forward;          ///< [cells] one micro-batch
    std::vector<std::int64_t> backward;         ///< [cells] not used by zero-bubble
    std::vector<std::int64_t> backward_input;   ///< [cells] zero-bubble only
    std::vector<std::int64_t> backward_weight;  ///< [cells] zero-bubble only
    std::vector<std::int64_t>
        send_activation;  ///< [cells] output of the cell, to the next virtual stage (unused for the last)
    std::vector<std::int64_t> send_gradient;  ///< [cells] gradient of the cell's input, to the previous virtual stage
    std::vector<std::int64_t> delay_activation;  ///< [cells] added before each such send, holding what the send holds
    std::vector<std::int64_t> delay_gradient;    ///< [cells]
    std::vector<std::int64_t> reduce_gradients;  ///< [pipeline * virtual_pipeline], stage-major
    /// [pipeline * virtual_pipeline] with overlap_grad_reduce: the part of `reduce_gradients` that can only start when
    /// the chunk's last backward has ended (its last bucket); the rest starts with that backward.
    std::vector<std::int64_t> reduce_last_bucket;
    std::vector<std::int64_t> reduce_tied_embedding;  ///< [pipeline] first and last entry; the longer one counts
    std::vector<std::int64_t> optimizer;              ///< [workers]
    std::vector<std::int64_t> gather_parameters;      ///< [pipeline * virtual_pipeline], stage-major
    /// [pipeline * virtual_pipeline] with overlap_param_gather: the part of `gather_parameters` that the chunk's first
    /// forward waits for before it starts (its first bucket); the rest arrives while that forward runs.
    std::vector<std::int64_t> gather_first_bucket;
    /// [sum of micro-batches, replica-major] work of each micro-batch relative to the mean, scales compute; empty:
    /// all 1.
    std::vector<double> micro_batch_factor;
};

/// `duration_ns` scaled and rounded to the nearest nanosecond, as every evaluator of an iteration does it.
inline std::int64_t scaled_ns(std::int64_t duration_ns, double factor) {
    return static_cast<std::int64_t>(static_cast<double>(duration_ns) * factor + 0.5);
}

}  // namespace headway::scenarios
