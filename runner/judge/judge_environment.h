// SPDX-License-Identifier: MIT
// Whether the surroundings of the GPU let times be trusted, and what they were, in words with
// numbers. Fed the readings between the rounds; judge.cpp draws the conclusions for assertions.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "device/environment.h"
#include "measure/rounds/measurement.h"

namespace stepgate {

// The conclusion from several readings. Heat, the power brake and a neighbour disturb a
// measurement: they come and go with the room and the machine's other users. A software power cap,
// chosen clocks and sync boost do not: they are how this GPU is run.
class EnvironmentLog {
 public:
  // In the order in which they were read.
  void add(const EnvironmentReading&);

  // Why the times between the first and the last reading are not to be trusted; nothing when no
  // reading speaks against them, be it for lack of readings.
  std::optional<std::string> disturbance() const;

  // For the reader of a report. None when there was no reading.
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
  std::map<ClockEvent, int> active_;  // in how many readings
  // The first and the last time that each cause was read.
  std::map<ClockEvent, std::pair<std::chrono::nanoseconds, std::chrono::nanoseconds>> times_;
  bool processes_known_ = false;
  bool self_was_listed_ = false;
  std::size_t fewest_listed_ = 0;
  std::string neighbours_;  // of the reading with the most of them; empty when there are none
  std::size_t most_neighbours_ = 0;
};

// The log of all readings of a measurement.
EnvironmentLog environment_of(const Measurement&);

}  // namespace stepgate
