// SPDX-License-Identifier: MIT
// From arguments to plans: what every verb that names scenario files starts with.
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

// Everything of one scenario that is known before it is measured.
struct Planned {
  Scenario scenario;
  std::vector<PlannedStep> plans;      // and those of anchors
  std::optional<Baseline> baseline{};  // what `stored.` means
  std::string compared_with{};         // which runs these are, in words, where a ledger has some
  std::int64_t fewest_rounds = 0;      // that the measurement should have
  bool stretches = false;              // beyond its budget, where that has no room for them
  std::optional<Traced> traced{};      // absent when nobody asked
};

// The scenario files among the given ones; a folder stands for those in it, in the order of their
// names. Throws RequestError when there are none.
std::vector<std::filesystem::path> scenario_files(const Arguments&);

// Reads and plans every file before anything runs, so that a typo in the last one does not cost the
// others' time. Throws RequestError with the faults of all of them.
std::vector<Planned> plan_all(const Arguments&, std::uint64_t seed);

// The scenario read anew, with one more override.
Scenario with_knob(const Planned&, const Arguments&, const std::string& knob,
                   const std::string& value);

// Steps that do something besides that no plan says: what a gate must find.
std::vector<PlannedStep> with_injections(std::vector<PlannedStep>,
                                         const std::vector<std::string>& injected);

// Settings of a run of all of them.
JudgeSettings settings_for(std::span<const Planned>);

// Throws RequestError for scenarios whose [calibrate] only a run can solve.
void refuse_calibration(const std::vector<Planned>&);

// For verbs that only measure. Throws RequestError that names the scenarios without a device.
void refuse_planned_only(const std::vector<Planned>&);

// Whether any of its assertions speaks of stored runs.
bool names_any_stored(const Scenario&);

// For scenarios that speak of stored runs: reads them and adds what else must be measured to
// compare with them. Where `accept` stored none on this device, runs of other builds in the ledger
// take their place. Throws RequestError with what is wrong in any of the files.
void add_baselines(std::span<Planned>, const DeviceIdentity&, const Arguments&);

// Names what is under test: this build where --subject does not say. Throws RequestError for a
// character that is not printable ASCII.
std::string subject_under_test(const Arguments&);
std::string build_in_words();

// The provenance of a run that begins now. Only a GPU run records the boot: a simulated device does
// not depend on it.
Provenance provenance_of(const Arguments&, const Scenario&, std::uint64_t seed, DeviceKind);

// The day and second to write into a file: what was given, or now.
std::string date_of(const Arguments&);

// The device that was asked for, or the best there is.
OpenedDevice open_device_for(const Arguments&, std::uint64_t seed);

// Whether --tag and --exclude-tag select the scenario.
bool has_wanted_tags(const Scenario&, const Arguments&);

// Reads the given files, as they are written, with wanted tags: at least one. Throws RequestError,
// also for a tag that none of them has.
std::vector<Scenario> scenarios_with_wanted_tags(const Arguments&);

// How much slower the option allows: "1%" is 0.01. Throws RequestError.
double margin_of(const std::string& option);

// The given seed, or a random one.
std::uint64_t seed_of(const Arguments&);

// Seed of one scenario's coins: the coins of two scenarios of a run have nothing to do with each
// other.
std::uint64_t seed_of(const Scenario&, std::uint64_t seed);

// The commit that the scenario's folder is at, "-dirty" behind it when something there is changed;
// --commit where it was given, "unknown" where git does not know.
std::string commit_of(const Arguments&, const std::filesystem::path& scenario_file);

// Describes this program and this moment, about these scenarios on that device.
RunInfo run_info_of(const Arguments&, const std::filesystem::path& scenario_file,
                    std::uint64_t seed);
// Describes also the device that takes part.
RunInfo run_info_of(const Arguments&, const std::vector<Planned>&, const OpenedDevice&,
                    std::uint64_t seed);

// Whether rounds are to be measured, and not all is decided by plans.
bool needs_device(std::span<const Planned>);

}  // namespace stepgate
