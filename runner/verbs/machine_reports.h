// SPDX-License-Identifier: MIT
// The reports of a run for CI systems. The files exist before the first round and count everything
// undecided as not passed, so that a killed run leaves no passing report.
#pragma once

#include <exception>
#include <span>
#include <string>
#include <vector>

#include "line/planned.h"
#include "report/exit_code.h"
#include "report/report.h"
#include "verbs/arguments.h"

namespace stepgate {

// Describes the run for its reports: this program, the time, the scenarios and the device.
RunInfo run_info_of(const Arguments&, const std::filesystem::path& scenario_file,
                    std::uint64_t seed);
// Describes a run of these scenarios.
RunInfo run_info_of(const Arguments&, const std::vector<Planned>&, std::uint64_t seed);
// Describes also the device that takes part.
RunInfo run_info_of(const Arguments&, const std::vector<Planned>&, const OpenedDevice&,
                    std::uint64_t seed);

// The files to which reports are written.
class ReportFiles {
 public:
  // If annotations are requested, GitHub ignores commands in all output from now on.
  explicit ReportFiles(const Arguments&);

  void write(const Report&) const;
  // Also writes what is written once: annotations, and GitHub's summary of the step.
  void end(const Report&) const;

 private:
  enum class State { at_work, ended };
  void write(const Report&, State) const;

  const Arguments& arguments_;
  std::string token_;  // empty when commands were not stopped
};

// Collects the verdicts of a run and writes its reports.
class MachineReports {
 public:
  explicit MachineReports(const Arguments&);

  // Sets all scenarios of the run. They must outlive this object.
  void plan(const std::vector<Planned>&, RunInfo);
  // Draws the timelines and memory pictures of these scenarios, which must be the next ones in the
  // order of the run. Draws nothing if no page was requested.
  void draw(std::span<const Planned>, const DeviceIdentity&);
  // Called when the device is open: sets what is known of the run. `not_gated` says why nothing is
  // gated; empty when something is.
  void begin(RunInfo, const std::string& not_gated);
  // Adds the verdict of the next scenario.
  const ReportedScenario& add(Verdict);
  // Writes the files with the verdicts so far.
  void write() const;
  // Called when all scenarios are decided: returns the report of the run, which `end` writes.
  Report finish(double suite_alpha);
  void end(const Report&) const;
  // Reports an unexpected end of the run, which leads to that exit code. Returns the one of the
  // run: what was decided before may be graver. Throws nothing.
  ExitCode fail(const std::exception&, ExitCode);
  void interrupted();

 private:
  const Arguments& arguments_;
  ReportFiles files_;
  std::vector<std::vector<Picture>> pictures_;  // by scenario, in order
  RunSoFar run_;
};

}  // namespace stepgate
