// SPDX-License-Identifier: MIT
// The mean clock of the multiprocessors over some steps, from the clocks that the loss kernel reads
// at the end of each. Pure arithmetic; the device reads the clocks.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace stepgate {

// Read together at one point of a step.
struct ClockStamp {
  std::uint64_t nanoseconds = 0;  // of the device's clock
  std::uint64_t cycles = 0;       // of one multiprocessor's counter
  std::uint64_t multiprocessor = 0;
};

// Cycles a second between the first and the last stamp of that multiprocessor whose stamps lie
// furthest apart: counters of different ones do not compare. Nothing unless those stamps span at
// least half of the time between the first and the last of all, or where a clock stood still.
std::optional<double> mean_clock_hertz(std::span<const ClockStamp>);

// For every stamp, cycles a second since the stamp before it; nothing for the first, and where
// another multiprocessor read the one before.
std::vector<std::optional<double>> clocks_hertz(std::span<const ClockStamp>);

}  // namespace stepgate
