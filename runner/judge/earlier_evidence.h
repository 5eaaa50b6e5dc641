// SPDX-License-Identifier: MIT
// A run that goes on where earlier runs of the same pair ended: their contrasts are bet on first,
// so that all runs together are one process. Under the tie it is a test martingale whenever one
// stops or starts again, and "run again until it passes" gains nothing. ledger.h has the
// file.
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

// Rounds of earlier runs, by the assertion's name_in_files.
struct EarlierRounds {
  Contrasts contrasts = {};
  // Three numbers a round. For an assertion about step times the scored steps of a side and the
  // seconds that those of the left and of the right one took; for one about a high percentile the
  // steps and that percentile of either side, in seconds, over the rounds of its run so far.
  Contrasts times = {};
  bool operator==(const EarlierRounds&) const = default;
};

// Adds the numbers of each assertion behind those that are there.
void append(Contrasts& all, const Contrasts& more);
void append(EarlierRounds& all, const EarlierRounds& more);

struct EarlierEvidence {
  std::int64_t runs = 0;
  EarlierRounds regime = {};
  EarlierRounds expect = {};
  // For assertions about stored times another number is kept: log(time / anchor's) of every run.
  Contrasts stored = {};
  // And log(anchor's seconds) of the same runs; of none where they were kept before this was.
  Contrasts stored_anchors = {};
  bool operator==(const EarlierEvidence&) const = default;
};

// The assertion's name where that is printable ASCII, otherwise a number for it.
std::string name_in_files(const Expectation&);

// The contrasts of the assertion; none where there are none.
std::span<const double> contrasts_for(const Expectation&, const Contrasts&);

// Whether rounds of this run decide the assertion, timed ones or traced ones.
bool is_decided_by_rounds(const Expectation&);

// Whether any of its assertions is, or compares with stored times: only then is there anything to
// go on from.
bool has_assertion_to_go_on_from(const Scenario&);

// Rounds of earlier runs behind the timed assertion that has the most of them.
std::int64_t most_rounds(const EarlierEvidence&);

// Whether the earlier evidence alone refutes any of its assertions.
bool is_failed_by_earlier(const Scenario&, std::span<const Subject>, const JudgeSettings&);

// True when the earlier evidence alone decides every timed assertion, or refutes one of the regime:
// more rounds would change no outcome.
bool nothing_left_to_measure(const Scenario&, std::span<const Subject>, const JudgeSettings&);

// The contrasts of the measurement's own rounds, as one run. An assertion with a value that the
// device does not know has none.
EarlierEvidence evidence_of_rounds(const Scenario&, std::span<const Subject>, const Measurement&,
                                   const JudgeSettings&);

// Whether its rounds are something to go on from: its losses agree and nothing disturbed it.
bool is_trusted(const Measurement&);

// The measurement of a run that measures nothing because nothing is left to measure.
Measurement unmeasured(const Scenario&, std::span<const Subject>, const DeviceIdentity&,
                       std::uint64_t seed);

}  // namespace stepgate
