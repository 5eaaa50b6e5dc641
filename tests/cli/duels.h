// SPDX-License-Identifier: MIT
// For tests only: duels of the built stepgate, and the workers that they are between.
#pragma once

#include "tests/cli/command_line.h"
#include "tests/cli/processes.h"

namespace stepgate {

const std::string python = "python3 ";
const std::string example = python + STEPGATE_SOURCE_DIR "/ci/worker_example.py";

class Duels : public CommandLine {
 protected:
  // One that is good until the request and then plays the trick.
  std::string hostile(const std::string& trick, const std::string& request) const {
    return python + STEPGATE_SOURCE_DIR "/tests/workers/hostile.py " + trick + " " + request + " " +
           ids().string();
  }
  std::filesystem::path ids() const { return place() / "ids"; }

  Finished duel(std::vector<std::string> arguments) const {
    arguments.insert(arguments.begin(), "duel");
    return stepgate(arguments);
  }
  Finished commands(const std::string& base, const std::string& head,
                    std::vector<std::string> more = {}) const {
    more.insert(more.begin(), {"--command", base, head});
    return duel(more);
  }

  // `stepgate worker` on a simulated device that no measurement changes.
  static std::string simulating(const std::string& more) {
    return std::string(STEPGATE_PROGRAM) +
           " --baselines " STEPGATE_SOURCE_DIR
           "/tests/baselines worker a.toml "
           "--device simulated:round-numbers " +
           more;
  }

  std::vector<int> processes() const { return noted_processes(ids()); }
};

}  // namespace stepgate
