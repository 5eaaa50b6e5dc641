// SPDX-License-Identifier: MIT
// For tests only: gates of two command lines of workers, and well-behaved and hostile workers.
#pragma once

#include "tests/cli/command_line.h"
#include "tests/cli/processes.h"

namespace stepgate {

const std::string python = "python3 ";
const std::string example = python + STEPGATE_SOURCE_DIR "/ci/worker_example.py";

class WorkerGates : public CommandLine {
 protected:
  // A worker that behaves well until the request and then misbehaves.
  std::string hostile(const std::string& trick, const std::string& request) const {
    return python + STEPGATE_SOURCE_DIR "/tests/workers/hostile.py " + trick + " " + request + " " +
           ids().string();
  }
  std::filesystem::path ids() const { return place() / "ids"; }

  // The command line of a gate that only compares times.
  static std::vector<std::string> call_of(const std::string& base, const std::string& head,
                                          const std::vector<std::string>& more = {}) {
    std::vector<std::string> call{"gate", "--base-command", base, "--head-command", head, "--only",
                                  "time", "--seed",         "1"};
    call.insert(call.end(), more.begin(), more.end());
    return call;
  }
  Finished gate(const std::string& base, const std::string& head,
                const std::vector<std::string>& more = {}) const {
    return stepgate(call_of(base, head, more));
  }

  std::vector<int> processes() const { return noted_processes(ids()); }
};

}  // namespace stepgate
