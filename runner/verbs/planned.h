// SPDX-License-Identifier: MIT
// Makes plans from the arguments, which is the first step of every verb that reads scenario files.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "judge/judge.h"
#include "judge/stored/baseline.h"
#include "measure/trace/traced.h"
#include "plan/planned_step.h"
#include "report/run_info.h"
#include "scenario/scenario.h"
#include "verbs/arguments.h"

namespace stepgate {

// Everything about one scenario that is known before the measurement.
struct Planned {
  Scenario scenario;
  std::vector<PlannedStep> plans;      // including those of anchors
  std::optional<Baseline> baseline{};  // the runs that `stored.` refers to
  std::string compared_with{};         // describes these runs, if they come from a ledger
  std::int64_t fewest_rounds = 0;      // that the measurement needs
  bool stretches = false;              // may exceed its budget to get the fewest rounds
  std::optional<Traced> traced{};      // absent when no trace was requested
};

// Returns the scenario files among the arguments. A folder stands for its files in the order of
// their names. Throws RequestError when there are none.
std::vector<std::filesystem::path> scenario_files(const Arguments&);

// Reads and plans every file before anything runs, so that an error in the last one costs no
// measuring time. Throws RequestError with the errors of all files.
std::vector<Planned> plan_all(const Arguments&, std::uint64_t seed);

// Reads the scenario again, with one more override.
Scenario with_knob(const Planned&, const Arguments&, const std::string& knob,
                   const std::string& value);

// Returns steps that do more than their plans say, which a gate must find.
std::vector<PlannedStep> with_injections(std::vector<PlannedStep>,
                                         const std::vector<std::string>& injected);

// Returns the settings for a run of these scenarios together.
JudgeSettings settings_for(std::span<const Planned>);

// Throws RequestError for scenarios with [calibrate], which only a run can resolve.
void refuse_calibration(const std::vector<Planned>&);

// Throws RequestError that names planned-only scenarios, for verbs that only measure.
void refuse_planned_only(const std::vector<Planned>&);

// Returns whether any of its assertions refers to stored runs.
bool names_any_stored(const Scenario&);

// For scenarios that refer to stored runs: reads these runs and adds the anchors that must be
// measured for the comparison. Where `accept` has stored none on this device, uses runs of other
// builds in the ledger. Throws RequestError with all errors in the files.
void add_baselines(std::span<Planned>, const DeviceIdentity&, const Arguments&);

// Names the tested version: --subject, or else this build. Throws RequestError for characters that
// are not printable ASCII.
std::string subject_under_test(const Arguments&);
std::string build_in_words();

// The provenance of a run that begins now. Only a GPU run records the boot: a simulated device does
// not depend on it.
Provenance provenance_of(const Arguments&, const Scenario&, std::uint64_t seed, DeviceKind);

// The date and time to write into a file: the given one, or now.
std::string date_of(const Arguments&);

// Opens the requested device, or the best one available.
OpenedDevice open_device_for(const Arguments&, std::uint64_t seed);

// Whether --tag and --exclude-tag select the scenario.
bool has_wanted_tags(const Scenario&, const Arguments&);

// Reads the given files without planning and selects those with wanted tags, at least one. Throws
// RequestError, also for a tag that none of them has.
std::vector<Scenario> scenarios_with_wanted_tags(const Arguments&);

// The allowed slowdown in an option: "1%" is 0.01. Throws RequestError.
double margin_of(const std::string& option);

// The given seed, or a random one.
std::uint64_t seed_of(const Arguments&);

// The seed for one scenario's random draws, which are independent between the scenarios of a run.
std::uint64_t seed_of(const Scenario&, std::uint64_t seed);

// The commit of the scenario's folder, with "-dirty" when tracked files are changed; --commit if it
// was given, "unknown" where git does not know.
std::string commit_of(const Arguments&, const std::filesystem::path& scenario_file);

// Describes this program, the current time, and these scenarios.
RunInfo run_info_of(const Arguments&, const std::filesystem::path& scenario_file,
                    std::uint64_t seed);
// Also describes the device.
RunInfo run_info_of(const Arguments&, const std::vector<Planned>&, const OpenedDevice&,
                    std::uint64_t seed);

// Returns whether rounds must be measured, since plans do not decide everything.
bool needs_device(std::span<const Planned>);

}  // namespace stepgate
