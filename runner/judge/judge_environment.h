// SPDX-License-Identifier: MIT
// Checks whether the environment of the GPU allows trusting the times, and describes it in words
// with numbers. Reads the environment readings between rounds; judge.cpp draws the conclusions for
// assertions.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "device/environment.h"
#include "measure/rounds/measurement.h"

namespace stepgate {

// Summarises several readings. Heat, the power brake and a neighbour process disturb a measurement,
// since they vary with the room and with other users. A software power cap, chosen clocks and sync
// boost do not: they are how this GPU is configured.
class EnvironmentLog {
 public:
  // Readings must be added in the order in which they were made.
  void add(const EnvironmentReading&);

  // Why the times between the first and the last reading cannot be trusted; nullopt when no reading
  // shows a disturbance, also when there are no readings.
  std::optional<std::string> disturbance() const;

  // Describes the environment for readers of a report. Empty when there was no reading.
  std::vector<std::string> in_words() const;

 private:
  struct Range {
    double low = 0;
    double high = 0;
  };

  void add_times(const std::vector<ClockEventTime>&);
  void add_processes(const ComputeProcesses&);
  static void widen(std::optional<Range>&, std::optional<double>);

  std::chrono::nanoseconds time_of(ClockEvent) const;
  std::optional<std::string> throttling() const;
  std::string state() const;
  std::string company() const;

  int readings_ = 0;
  std::string unavailable_;
  std::optional<Range> sm_clock_;
  std::optional<Range> memory_clock_;
  std::optional<Range> temperature_;
  std::optional<Range> power_;
  std::optional<double> power_limit_;
  std::map<ClockEvent, int> active_;  // number of readings with each event
  // The first and the last counter value of each event.
  std::map<ClockEvent, std::pair<std::chrono::nanoseconds, std::chrono::nanoseconds>> times_;
  bool processes_known_ = false;
  bool self_was_listed_ = false;
  std::size_t fewest_listed_ = 0;
  std::string neighbours_;  // in the reading with the most of them; empty when there are none
  std::size_t most_neighbours_ = 0;
};

// The log of all readings of a measurement.
EnvironmentLog environment_of(const Measurement&);

}  // namespace stepgate
