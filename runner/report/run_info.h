// SPDX-License-Identifier: MIT
// Identifies a run, for readers of its report years later.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace stepgate {

// The command line of a run, without the files that it writes and without its seed.
struct CommandOfRun {
  std::vector<std::string> options;  // the verb and its options; empty: not known
  std::vector<std::string> choice;   // what it is about: files, and options that choose among them
  bool takes_seed = false;
  bool takes_scenarios = false;
};

struct RunInfo {
  std::string stepgate;  // version
  std::string build;     // digest of the program, hexadecimal
  std::string commit;    // of the scenarios' folder, "-dirty" behind it when something is changed
  std::string date;      // "2026-11-22T12:00:00Z"
  std::string host;
  std::uint64_t seed = 0;
  std::string asked_for;   // the device as given to `--device`; empty: the best available
  bool simulated = false;  // nothing was measured
  bool gated = true;  // false: simulated only because there was no GPU, which ends with exit code 4
  int scenarios = 0;  // number of scenarios in the JSON; 0: not known yet
  CommandOfRun command;    // shows it again (command_again.h)
  bool has_rounds = true;  // false: JSON omits step times, which gates do not read
};

// With this variable set to "none", a `run` leaves rounds out of its JSON.
inline constexpr const char* json_rounds_variable = "STEPGATE_JSON_ROUNDS";

}  // namespace stepgate
