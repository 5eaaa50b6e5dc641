// SPDX-License-Identifier: MIT
// The arguments that the line itself reads: which scenarios, on what device, compared with which
// runs. A verb has them besides its own (verbs/arguments.h), and a job brings them to another
// process.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "device/open_device.h"
#include "line/baselines_folder.h"

namespace stepgate {

// Arguments of a run on several ranks.
struct RankArguments {
  std::optional<int> count;          // that this process starts; absent: what the plans need
  std::filesystem::path rendezvous;  // where a launcher's ranks find each other
  std::string fault;                 // for tests: "1:load:KILL"
};

struct LineArguments {
  std::vector<std::filesystem::path> files;
  std::vector<std::string> overrides;
  std::vector<std::string> tags;           // run: only scenarios with any of them
  std::vector<std::string> excluded_tags;  // run: and with none of these
  std::string date;
  std::filesystem::path
      ledger;           // run, gate: what earlier runs found; history: instead of baselines
  std::string subject;  // run: what is under test; this build when empty
  std::string commit;
  DeviceChoice device{.spec = {}, .baselines = default_baselines(), .seed = 0};
  std::optional<double> budget_seconds;
  std::optional<std::uint64_t> seed;
  std::optional<double> stall_seconds;  // see stall_seconds_of
  RankArguments ranks;
  std::optional<std::uint64_t> noise;  // seed of a simulated device, apart from that of the steps
  std::vector<std::string> injected;   // what a step does that its plan does not say, for tests
};

// A process that this one starts, a worker or a rank, must answer within so many seconds.
inline double stall_seconds_of(const LineArguments& arguments) {
  constexpr double usual = 60;
  return arguments.stall_seconds.value_or(usual);
}

}  // namespace stepgate
