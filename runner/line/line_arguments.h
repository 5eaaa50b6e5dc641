// SPDX-License-Identifier: MIT
// The arguments of the line: the scenarios, the device, and the runs to compare with. Every verb
// has these in addition to its own (verbs/arguments.h), and a job carries them to another process.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "device/baselines.h"
#include "device/open_device.h"

namespace stepgate {

// Arguments of a run on several ranks.
struct RankArguments {
  std::optional<int> count;          // number to start; absent: as many as the plans need
  std::filesystem::path rendezvous;  // file with the address of a launcher's rank 0
  std::string fault;                 // for tests: "1:load:KILL"
};

// Where scenarios lie when none are named.
inline constexpr const char* default_scenarios = "scenarios";

inline constexpr double usual_stall_seconds = 60;

struct LineArguments {
  std::vector<std::filesystem::path> files;
  std::vector<std::string> patterns;  // of file names, without folder and ending; empty: all
  std::vector<std::string> overrides;
  std::vector<std::string> tags;           // run: only scenarios with at least one of these
  std::vector<std::string> excluded_tags;  // run: only scenarios with none of these
  std::string date;
  std::filesystem::path
      ledger;           // run, gate: what earlier runs found; history: instead of baselines
  std::string subject;  // run: name of what is tested; empty: this build
  std::string commit;
  DeviceChoice device{.spec = {}, .baselines = default_baselines(), .seed = 0};
  std::optional<double> budget_seconds;
  std::optional<std::uint64_t> seed;
  std::optional<double> stall_seconds;  // see stall_seconds_of
  RankArguments ranks;
  std::optional<std::uint64_t> noise;  // seed of a simulated device's noise; absent: the run's seed
  std::vector<std::string> injected;   // faults that steps have beyond their plans, for tests
};

// Time limit in seconds for each answer of a process that this one starts, a worker or a rank.
inline double stall_seconds_of(const LineArguments& arguments) {
  return arguments.stall_seconds.value_or(usual_stall_seconds);
}

}  // namespace stepgate
