// SPDX-License-Identifier: MIT
// The parts of a run's wall time, by the machine's steady clock even where a simulated device has
// its own clock. No two parts overlap.
#pragma once

#include <array>
#include <chrono>
#include <string_view>

#include "base/record/fields.h"
#include "base/text/enumerators.h"

namespace stepgate {

enum class WallPart {
  planning,       // reads scenarios and plans them
  tracer,         // starts the tracing process with its plans and its device, and ends it
  calibration,    // finds the knobs that [calibrate] names, in the tracing process
  trace_loads,    // loads and unloads steps in the tracing process
  trace_steps,    // runs steps in the tracing process, including the untraced ones
  trace_records,  // collects the device's records of the traced steps
  trace_counts,   // computes counts from traces, and judges whether there are enough
  trace_reading,  // writes and reads what the processes exchange
  opening,        // opens the device, finds stored runs, draws traces
  loads,          // loads the timed steps
  same_step,      // runs first steps with their gradients, and repeats them after the rounds,
                  // including their loads
  warm_up,        // until the end of the first round, without loads and first steps
  rounds,         // all later rounds, without loads and first steps
  judging
};

// The name in files: "trace_loads".
constexpr std::string_view name_of(WallPart part) {
  return enumerators<WallPart>.at(static_cast<std::size_t>(part));
}

struct WallTimes {
  static constexpr std::size_t parts = enumerators<WallPart>.size();

  std::array<std::chrono::nanoseconds, parts> by_part{};  // in the order of WallPart

  std::chrono::nanoseconds& operator[](WallPart part) {
    return by_part[static_cast<std::size_t>(part)];
  }
  std::chrono::nanoseconds operator[](WallPart part) const {
    return by_part[static_cast<std::size_t>(part)];
  }
  WallTimes& operator+=(const WallTimes& more) {
    for (std::size_t part = 0; part < parts; ++part) by_part[part] += more.by_part[part];
    return *this;
  }
  std::chrono::nanoseconds sum() const {
    std::chrono::nanoseconds sum{0};
    for (const std::chrono::nanoseconds time : by_part) sum += time;
    return sum;
  }
};
template <>
inline constexpr auto fields_of<WallTimes> = fields<&WallTimes::by_part>;

// All parts, in the order of a run.
constexpr std::array<WallPart, WallTimes::parts> all_wall_parts() {
  std::array<WallPart, WallTimes::parts> all{};
  for (std::size_t part = 0; part < all.size(); ++part) all[part] = static_cast<WallPart>(part);
  return all;
}

}  // namespace stepgate
