// SPDX-License-Identifier: MIT
// Where the wall time of a run went, by the machine's steady clock, also where a simulated device
// has a clock of its own. No two parts overlap.
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
  trace_loads,    // loads and unloads steps there
  trace_steps,    // runs them there, those before the traced ones included
  trace_records,  // collects what the device recorded of them
  trace_counts,   // counts what traces say, and judges whether there are enough
  trace_reading,  // writes and reads what one process hands to the other
  opening,        // opens the device, finds stored runs, draws traces
  loads,          // loads the steps that are timed
  same_step,      // first steps with their gradients, and the same begun again after the rounds,
                  // also where they are loaded for it
  warm_up,        // until the first round has ended, without loads and first steps
  rounds,         // all further ones, likewise
  judging
};

// "trace_loads": in files.
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
