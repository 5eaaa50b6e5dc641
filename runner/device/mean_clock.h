// SPDX-License-Identifier: MIT
// The mean clock of the multiprocessors over some steps, from the clocks that the loss kernel reads
// at the end of each. Pure arithmetic; the device reads the clocks.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace stepgate {

// The clock and the counter of a multiprocessor, read together at one point of a step.
struct ClockStamp {
  std::uint64_t nanoseconds = 0;  // of the device's clock
  std::uint64_t cycles = 0;       // of one multiprocessor's counter
  std::uint64_t multiprocessor = 0;
};

// Cycles per second between the first and last stamp of one multiprocessor: the one whose stamps
// span the longest time, as counters of different multiprocessors do not compare. nullopt if that
// is less than half of the time between the first and last stamp of all, or if a clock stood still.
std::optional<double> mean_clock_hertz(std::span<const ClockStamp>);

// For every stamp, cycles per second since the stamp before it. nullopt for the first stamp, and
// where another multiprocessor read the stamp before.
std::vector<std::optional<double>> clocks_hertz(std::span<const ClockStamp>);

}  // namespace stepgate
