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
  std::int64_t fewest_rounds = 0;      // that the measurement needs
  bool stretches = false;              // may exceed its budget to get the fewest rounds
  std::optional<Traced> traced{};      // absent when no trace was requested
};

// The scenario files among the given ones; a folder stands for those in it, in the order of their
// names. Throws RequestError when there are none.
std::vector<std::filesystem::path> scenario_files(const LineArguments&);

// The scenario files whose names match a pattern: a part of the name, or the whole name with * and
// ? in it. Throws RequestError for a pattern that matches none.
std::vector<std::filesystem::path> files_that_match(const LineArguments&);

// Scenarios of programs have no plans, so most verbs refuse them.
enum class Programs { refused, kept };

// Reads and plans every file before anything runs, so that a typo in the last one does not cost the
// others' time. Throws RequestError with the faults of all of them.
std::vector<Planned> plan_all(const LineArguments&, std::uint64_t seed,
                              Programs = Programs::refused);

// The scenario read anew, with one more override.
Scenario with_knob(const Planned&, const LineArguments&, const std::string& knob,
                   const std::string& value);

// Returns steps that do more than their plans say, which a gate must find.
std::vector<PlannedStep> with_injections(std::vector<PlannedStep>,
                                         const std::vector<std::string>& injected);

// Returns the settings for a run of these scenarios together.
JudgeSettings settings_for(std::span<const Planned>);

// Throws RequestError for scenarios whose knob only [calibrate] gives a value.
void refuse_calibration(const std::vector<Planned>&);

// Throws RequestError that names planned-only scenarios, for verbs that only measure.
void refuse_planned_only(const std::vector<Planned>&);

// Returns whether any of its assertions refers to stored runs.
bool names_any_stored(const Scenario&);

// For scenarios that speak of stored runs: reads them and adds what else must be measured to
// compare with them. Where `accept` stored none on this device, runs of other builds in the ledger
// take their place. Throws RequestError with what is wrong in any of the files.
void add_baselines(std::span<Planned>, const DeviceIdentity&, const LineArguments&);

// The device that was asked for, or the best there is.
OpenedDevice open_device_for(const LineArguments&, std::uint64_t seed);

// Whether --tag and --exclude-tag select the scenario.
bool has_wanted_tags(const Scenario&, const LineArguments&);

// Reads the given files, as they are written, with wanted tags: at least one. Throws RequestError,
// also for a tag that none of them has.
std::vector<Scenario> scenarios_with_wanted_tags(const LineArguments&);

// The given seed, or a random one.
std::uint64_t seed_of(const LineArguments&);

// The seed for one scenario's random draws, which are independent between the scenarios of a run.
std::uint64_t seed_of(const Scenario&, std::uint64_t seed);

// Returns whether a device must be opened: rounds must be measured, since plans do not decide
// everything, and the steps are not those of programs.
bool needs_device(std::span<const Planned>);

}  // namespace stepgate
