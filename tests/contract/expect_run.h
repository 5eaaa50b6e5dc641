// SPDX-License-Identifier: MIT
// Expectations of the device contract about one run, and about its losses beside those of another.
#pragma once

#include <cstdint>
#include <vector>

#include "device/device.h"
#include "scenario/scenario.h"

namespace stepgate {

// One finite loss for every step, wash-out included; none from a device that computes nothing.
void expect_losses(const StepResult&, const Observe&, DeviceKind);

// No times at all, or times of every scored step that fit into the time of all of them.
void expect_times(const StepResult&, const Observe&, int steps_in_flight);

// Bit for bit where the device promises that of these knobs, else within what rounding allows.
void expect_same_losses(const std::vector<float>& got, const std::vector<float>& expected,
                        DeviceKind, const Knobs&);

std::vector<std::uint32_t> bits_of(const std::vector<float>&);

// The losses of all pieces, one after the other.
std::vector<float> run_in_pieces(LoadedStep&, const std::vector<Observe>& pieces);

}  // namespace stepgate
