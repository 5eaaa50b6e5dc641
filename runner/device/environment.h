// SPDX-License-Identifier: MIT
// The environment of the GPU at one moment: clocks, the reasons why the driver holds them down,
// temperature, power, and other processes that compute there. The device reads it for measure, and
// judge says what it means for a verdict. A value is absent where this machine does not report it.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/record/fields.h"

namespace stepgate {

// Why the driver holds the clocks below what they could be. Several can be active at once.
enum class ClockEvent {
  idle,
  applications_clocks,   // a user chose lower clocks
  software_power_cap,    // the power limit: legitimate, a step that draws more is slower
  hardware_slowdown,     // heat or the power brake, by the hardware
  sync_boost,            // held to the clocks of another GPU
  software_thermal,      // heat, by the driver
  hardware_thermal,      // heat, by the hardware
  hardware_power_brake,  // an outside signal: the power supply
  display_clocks
};

// How long one cause has held the clocks down since the driver was loaded.
struct ClockEventTime {
  ClockEvent event = ClockEvent::idle;
  std::chrono::nanoseconds total{0};
};
template <>
inline constexpr auto fields_of<ClockEventTime> =
    entry_fields<&ClockEventTime::event, &ClockEventTime::total>;

// A process that computes on the GPU, by the driver's process number. Inside a container that
// number may differ from the one that the process itself sees.
struct ComputeProcess {
  std::int64_t pid = 0;
  std::optional<std::int64_t> memory_bytes;
};
template <>
inline constexpr auto fields_of<ComputeProcess> =
    fields<&ComputeProcess::pid, &ComputeProcess::memory_bytes>;

struct ComputeProcesses {
  std::vector<ComputeProcess> others;  // all but this process
  // False if this process is not listed under its own number. Then one of `others` may be this
  // process.
  bool self_is_listed = true;
};
template <>
inline constexpr auto fields_of<ComputeProcesses> =
    fields<&ComputeProcesses::others, &ComputeProcesses::self_is_listed>;

struct EnvironmentReading {
  // Why nothing could be read, in words; empty when something could.
  std::string unavailable = {};
  std::optional<double> sm_clock_hertz = {};
  std::optional<double> memory_clock_hertz = {};
  std::optional<std::vector<ClockEvent>> active = {};  // at this moment
  std::vector<ClockEventTime> times = {};              // of the causes that are counted here
  std::optional<double> temperature_celsius = {};
  std::optional<double> power_watts = {};
  std::optional<double> power_limit_watts = {};
  std::optional<ComputeProcesses> processes = {};
};
template <>
inline constexpr auto fields_of<EnvironmentReading> =
    fields<&EnvironmentReading::unavailable, &EnvironmentReading::sm_clock_hertz,
           &EnvironmentReading::memory_clock_hertz, &EnvironmentReading::active,
           &EnvironmentReading::times, &EnvironmentReading::temperature_celsius,
           &EnvironmentReading::power_watts, &EnvironmentReading::power_limit_watts,
           &EnvironmentReading::processes>;

}  // namespace stepgate
