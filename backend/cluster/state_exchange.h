#pragma once

#include <span>

#include "backend/communicator/communicator.h"
#include "backend/device/device.h"
#include "backend/training/trainer.h"

namespace headway::backend {

/// Fills `to` with what the slices `from` of all processes hold: the state of one plan under another. Every process
/// calls it with its own. What a process has itself is copied, everything else comes from one of its owners over the
/// device's links; elements that nobody owned (padding of the vocabulary) become 0.
void exchange_state(Control& control, CommunicatorMaker& communicators, Device& device, std::span<StateSlice> from,
                    std::span<StateSlice> to);

}  // namespace headway::backend
