// SPDX-License-Identifier: MIT
// One finding of a gate: what differs between BASE and HEAD, how much it matters, and why.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "compare/gate/accepted.h"
#include "judge/verdict/verdict.h"
#include "scenario/scenario.h"

namespace stepgate {

enum class FindingKind {
  scenario,  // that HEAD changed or removed
  counts,    // exact, from the plan or a trace
  losses,    // of the first steps, compared bit by bit, and gradients
  time,      // of a workload in the comparison
  assertion  // of a scenario, about HEAD alone
};
std::string_view name_of(FindingKind);

enum class Severity {
  blocks,
  undecided,
  not_gated,  // it could not be compared
  failed,     // a program failed, and nothing it reported can be trusted
  note        // an improvement, new, or known: nothing to decide
};
std::string_view name_of(Severity);

struct Finding {
  FindingKind kind = FindingKind::counts;
  Severity severity = Severity::blocks;
  std::string workload = {};  // "scenario/variant", or a scenario; empty: the gate as a whole
  std::string what = {};      // "host_waits_per_step", "time", "losses", an assertion's name
  std::optional<double> base = {};
  std::optional<double> head = {};
  MetricUnit unit = MetricUnit::count;
  std::string words = {};               // one sentence
  std::string mechanism = {};           // probable cause; may be empty
  Place place = {};                     // in the scenario's file; empty if unknown
  std::optional<Outcome> outcome = {};  // for time and assertions; absent for a broken scenario
  bool out_of_reach = false;            // undecided, and more evidence would not decide it
  // For a finding about time: the largest accepted growth, and the outcome of a comparison at it.
  std::optional<double> accepted_growth = {};
  Outcome at_accepted_growth = Outcome::undecided;
  std::optional<Accepted> accepted = {};  // the entry that makes it a note
};

}  // namespace stepgate
