// SPDX-License-Identifier: MIT
// Expectations of the device contract for one run, and for its losses compared with another run's
// losses.
#pragma once

#include <cstdint>
#include <vector>

#include "device/device.h"
#include "scenario/scenario.h"

namespace stepgate {

// Expects one finite loss for every step including the wash-out, or none from a device that
// computes nothing.
void expect_losses(const StepResult&, const Observe&, DeviceKind);

// Expects no times at all, or times of every scored step that are consistent with the total.
void expect_times(const StepResult&, const Observe&, int steps_in_flight);

// Expects equality bit by bit where the device promises it for these knobs, else within rounding.
void expect_same_losses(const std::vector<float>& got, const std::vector<float>& expected,
                        DeviceKind, const Knobs&);

std::vector<std::uint32_t> bits_of(const std::vector<float>&);

// Returns the losses of all pieces, concatenated.
std::vector<float> run_in_pieces(LoadedStep&, const std::vector<Observe>& pieces);

}  // namespace stepgate
