// SPDX-License-Identifier: MIT
// The reports of a run that CI systems read: files that exist before the first round and say of
// everything undecided that it is no pass, so that a run that is killed leaves no green one.
#pragma once

#include <exception>
#include <span>
#include <string>
#include <vector>

#include "line/planned.h"
#include "report/report.h"
#include "verbs/arguments.h"

namespace stepgate {

// Describes this program and this moment, about these scenarios on that device.
RunInfo run_info_of(const Arguments&, const std::filesystem::path& scenario_file,
                    std::uint64_t seed);
// Describes also the device that takes part.
RunInfo run_info_of(const Arguments&, const std::vector<Planned>&, const OpenedDevice&,
                    std::uint64_t seed);

// Where they go.
class ReportFiles {
 public:
  // Where annotations are wanted nothing that is printed from now on is a command.
  explicit ReportFiles(const Arguments&);

  void write(const Report&) const;
  // And what is written once: annotations, and the page that GitHub gives a step.
  void end(const Report&) const;

 private:
  enum class State { at_work, ended };
  void write(const Report&, State) const;

  const Arguments& arguments_;
  std::string token_;  // empty when commands were not stopped
};

// Reports of a run.
class MachineReports {
 public:
  explicit MachineReports(const Arguments&);

  // All that the run will decide. The scenarios must outlive this.
  void plan(const std::vector<Planned>&, RunInfo);
  // Draws the timelines and memory that the page shows of these scenarios, which come next in the
  // same order. Draws nothing if no page was requested.
  void draw(std::span<const Planned>, const DeviceIdentity&);
  // The device is open: all that is known of the run, and why nothing here gates anything; empty
  // when something does.
  void begin(RunInfo, const std::string& not_gated);
  // The next scenario is decided.
  const ReportedScenario& add(Verdict);
  // So far. Writes the files.
  void write() const;
  // All scenarios are decided: the report of the run, which `end` writes.
  Report finish(double suite_alpha);
  void end(const Report&) const;
  // The end that it should not have had. Throws nothing.
  void fail(const std::exception&);
  void interrupted();

 private:
  const Arguments& arguments_;
  ReportFiles files_;
  std::vector<std::vector<Picture>> pictures_;  // of the scenarios, in order
  RunSoFar run_;
};

}  // namespace stepgate
