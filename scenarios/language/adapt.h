#pragma once

namespace headway::scenarios {

/// `strategy.adapt`: what a policy may change at run time. Everything by default.
struct Adapt {
    bool micro_batches = true;  ///< shares of the replicas
    bool layers = true;         ///< split over the stages
    bool layers_apart = true;   ///< replicas may split the model differently
    bool placement = true;      ///< GPU of each rank
    bool degrees = true;        ///< tensor, pipeline, data, context
    bool drop = true;           ///< leave GPUs, nodes or replicas out, and bring them back
    bool live = true;           ///< plans change while the job runs; false: by save and restart
    bool operator==(const Adapt&) const = default;
};

/// `sensors`: how far what a policy is told is from what is. Relative errors are standard deviations.
struct Sensors {
    double time_noise = 0.0;         ///< of every measured time and bandwidth, relative
    double temperature_noise = 0.0;  ///< kelvins
    int delay_intervals = 0;         ///< decision intervals by which measurements come late
    bool operator==(const Sensors&) const = default;
};

/// `switching`: how a switch of plans turns out against its estimate.
struct Switching {
    double time_factor = 1.0;  ///< pauses of switches over what costs say
    bool operator==(const Switching&) const = default;
};

}  // namespace headway::scenarios
