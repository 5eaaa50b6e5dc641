// SPDX-License-Identifier: MIT
// Makes verdicts from the counts of attached programs, and from the times of held ones.
#pragma once

#include <map>
#include <span>
#include <string>
#include <vector>

#include "judge/judge.h"
#include "program/run_attached.h"

namespace stepgate {

// Evidence about one variant, or about the one program of `stepgate attach`.
struct ProgramRun {
  AttachedRun counted;
  std::map<Metric, double> memory = {};  // of held runs, in bytes: Metric::peak_live
  bool was_started = true;
};

// The processes of a run whose steps are counted.
std::vector<const CountedProcess*> counted_of(const AttachedRun&);

// Why a run has no counts, in words; empty where it has.
std::string reason_without_counts(const AttachedRun&);

// Why passing is not shown, in words: a process whose calls were not all recorded. Empty where all
// were.
std::string reason_for_doubt(const AttachedRun&);

// Why a program that did not end well is no evidence, in words; empty where it ended well.
std::string failure_of(const AttachedRun&, const Command&);

// Judges with the runs of the variants, in order. Of several processes of a variant, every one
// counts: the worst decides, and is named by its rank. An assertion about a variant without counts,
// or with a process whose calls were not all recorded, does not pass. The first line of the program
// that adds to a count which fails is the place of the assertion.
Verdict judge_programs(const Scenario&, std::span<const ProgramRun>, const Measurement&,
                       const JudgeSettings&);

}  // namespace stepgate
