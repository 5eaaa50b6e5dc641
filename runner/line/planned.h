// SPDX-License-Identifier: MIT
// Makes plans from the arguments. This is the first step of every verb that reads scenario files.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "judge/judge.h"
#include "judge/stored/baseline.h"
#include "line/line_arguments.h"
#include "measure/trace/traced.h"
#include "plan/planned_step.h"
#include "scenario/scenario.h"

namespace stepgate {

// Everything about one scenario that is known before the measurement.
struct Planned {
  Scenario scenario;
  std::vector<PlannedStep> plans;      // including those of anchors
  std::optional<Baseline> baseline{};  // the runs that `stored.` refers to
  std::string compared_with{};         // describes these runs, if they come from a ledger
  std::int64_t fewest_rounds = 0;      // rounds that the measurement needs
  bool stretches = false;              // may exceed its budget to get the fewest rounds
  std::optional<Traced> traced{};      // absent when no trace was requested
};

// The scenario files that the arguments name. A folder stands for the scenario files in it, ordered
// by name. Throws RequestError when there are none.
std::vector<std::filesystem::path> scenario_files(const LineArguments&);

// Reads and plans every file before anything runs, so that an error in the last file is found
// before any time is spent. Throws RequestError with the errors of all files.
std::vector<Planned> plan_all(const LineArguments&, std::uint64_t seed);

// Reads the scenario again, with one more override.
Scenario with_knob(const Planned&, const LineArguments&, const std::string& knob,
                   const std::string& value);

// Returns steps with the injected faults, which their plans do not have and a gate must find.
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

// Reads the stored runs for scenarios that refer to them, and adds anchors, which must be measured
// for a comparison with them. Where `accept` stored no run on this device, runs of other builds in
// the ledger are used instead. Throws RequestError with the errors of all files.
void add_baselines(std::span<Planned>, const DeviceIdentity&, const LineArguments&);

// The name of what is tested: --subject, or this build without it. Throws RequestError for a
// character that is not printable ASCII.
std::string subject_under_test(const LineArguments&);
std::string build_in_words();

// The provenance of a run that begins now. Only a GPU run records the boot, since a simulated
// device does not depend on it.
Provenance provenance_of(const LineArguments&, const Scenario&, std::uint64_t seed, DeviceKind);

// The date and time to write into a file: those of --date, or now.
std::string date_of(const LineArguments&);

// Opens the requested device, or the best available one.
OpenedDevice open_device_for(const LineArguments&, std::uint64_t seed);

// Whether --tag and --exclude-tag select the scenario.
bool has_wanted_tags(const Scenario&, const LineArguments&);

// Reads the given files as they are written, and returns the scenarios with the wanted tags, at
// least one. Throws RequestError, also for a tag that no scenario has.
std::vector<Scenario> scenarios_with_wanted_tags(const LineArguments&);

// The given seed, or a random one.
std::uint64_t seed_of(const LineArguments&);

// The seed for one scenario's random draws, which are independent between the scenarios of a run.
std::uint64_t seed_of(const Scenario&, std::uint64_t seed);

// The commit of the scenario's checkout, with "-dirty" appended if files in it are changed. With
// --commit, the given commit; "unknown" where git does not know.
std::string commit_of(const LineArguments&, const std::filesystem::path& scenario_file);

// Returns whether rounds must be measured, because plans alone do not decide all assertions.
bool needs_device(std::span<const Planned>);

}  // namespace stepgate
