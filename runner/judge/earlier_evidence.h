// SPDX-License-Identifier: MIT
// Evidence of earlier runs of the same pair. A new run adds their contrasts to its tests first, so
// that all runs form one process. Under the null hypothesis it is a test martingale for any
// stopping rule, so that repeating a run until it passes gains nothing. ledger.h reads and writes
// the file.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "measure/rounds/measurement.h"
#include "measure/subject.h"
#include "scenario/scenario.h"

namespace stepgate {

struct JudgeSettings;

// log(left / right) of every round, by the assertion's name_in_files.
using Contrasts = std::map<std::string, std::vector<double>>;

// Rounds of earlier runs, by the name_in_files of the assertion.
struct EarlierRounds {
  Contrasts contrasts = {};
  // Three numbers for each round. For an assertion about step times: the scored steps of one side,
  // and the seconds that the left and the right side took. For one about a high percentile: the
  // number of steps, and that percentile on both sides in seconds, over all rounds of its run so
  // far.
  Contrasts times = {};
  bool operator==(const EarlierRounds&) const = default;
};

// Appends the numbers of each assertion.
void append(Contrasts& all, const Contrasts& more);
void append(EarlierRounds& all, const EarlierRounds& more);

struct EarlierEvidence {
  std::int64_t runs = 0;
  EarlierRounds regime = {};
  EarlierRounds expect = {};
  // For assertions about stored times: log(time / anchor's time) of every run.
  Contrasts stored = {};
  // log(anchor's seconds) of the same runs; older files lack it for their first runs.
  Contrasts stored_anchors = {};
  bool operator==(const EarlierEvidence&) const = default;
};

// The name of the assertion if it is printable ASCII, otherwise a hash of it.
std::string name_in_files(const Expectation&);

// Returns the contrasts of the assertion; empty if there are none.
std::span<const double> contrasts_for(const Expectation&, const Contrasts&);

// Returns whether rounds of this run, timed or traced, decide the assertion.
bool is_decided_by_rounds(const Expectation&);

// Returns whether rounds decide any of its assertions, or one compares with stored times. Otherwise
// there is no earlier evidence to use.
bool has_assertion_to_go_on_from(const Scenario&);

// Returns the largest number of earlier rounds of a timed assertion.
std::int64_t most_rounds(const EarlierEvidence&);

// Returns whether the earlier evidence alone makes one of its assertions fail.
bool is_failed_by_earlier(const Scenario&, std::span<const Subject>, const JudgeSettings&);

// True when the earlier evidence alone decides every timed assertion, or makes one of the regime
// fail, so that more rounds would change no outcome.
bool nothing_left_to_measure(const Scenario&, std::span<const Subject>, const JudgeSettings&);

// Returns the contrasts of the measurement's own rounds, as one run. An assertion with a value that
// the device does not know has none.
EarlierEvidence evidence_of_rounds(const Scenario&, std::span<const Subject>, const Measurement&,
                                   const JudgeSettings&);

// Returns whether its rounds may be used by later runs: its losses agree and nothing disturbed it.
bool is_trusted(const Measurement&);

// Returns an empty measurement, for a run where earlier evidence has decided everything.
Measurement unmeasured(const Scenario&, std::span<const Subject>, const DeviceIdentity&,
                       std::uint64_t seed);

}  // namespace stepgate
