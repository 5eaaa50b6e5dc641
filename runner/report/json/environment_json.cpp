// SPDX-License-Identifier: MIT
#include "report/json/environment_json.h"

#include <string_view>

namespace stepgate {
namespace {

using Json = nlohmann::ordered_json;

std::string_view name_of(ClockEvent event) {
  switch (event) {
    case ClockEvent::idle:
      return "idle";
    case ClockEvent::applications_clocks:
      return "applications_clocks";
    case ClockEvent::software_power_cap:
      return "software_power_cap";
    case ClockEvent::hardware_slowdown:
      return "hardware_slowdown";
    case ClockEvent::sync_boost:
      return "sync_boost";
    case ClockEvent::software_thermal:
      return "software_thermal";
    case ClockEvent::hardware_thermal:
      return "hardware_thermal";
    case ClockEvent::hardware_power_brake:
      return "hardware_power_brake";
    case ClockEvent::display_clocks:
      return "display_clocks";
  }
  return {};
}

template <class Value>
Json or_null(const std::optional<Value>& value) {
  return value ? Json(*value) : Json(nullptr);
}

Json json_of(const ComputeProcesses& processes) {
  Json others = Json::array();
  for (const ComputeProcess& process : processes.others) {
    others.push_back({{"pid", process.pid}, {"memory_bytes", or_null(process.memory_bytes)}});
  }
  return {{"self_is_listed", processes.self_is_listed}, {"others", std::move(others)}};
}

}  // namespace

Json json_of(const EnvironmentReading& reading) {
  if (!reading.unavailable.empty()) return {{"unavailable", reading.unavailable}};
  Json active;
  if (reading.active) {
    active = Json::array();
    for (const ClockEvent event : *reading.active) active.push_back(name_of(event));
  }
  Json times = Json::object();
  for (const ClockEventTime& time : reading.times) {
    times[std::string(name_of(time.event)) + "_ns"] = time.total.count();
  }
  return {{"sm_clock_hz", or_null(reading.sm_clock_hertz)},
          {"memory_clock_hz", or_null(reading.memory_clock_hertz)},
          {"active", std::move(active)},
          {"times", std::move(times)},
          {"temperature_celsius", or_null(reading.temperature_celsius)},
          {"power_watts", or_null(reading.power_watts)},
          {"power_limit_watts", or_null(reading.power_limit_watts)},
          {"processes", reading.processes ? json_of(*reading.processes) : Json(nullptr)}};
}

}  // namespace stepgate
