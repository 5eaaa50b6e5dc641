// SPDX-License-Identifier: MIT
// From a comparison's measurement to a verdict on every workload: is HEAD no more than the margin
// slower than BASE? Pairs of launches are the units of evidence, never the superblocks within.
// Measures nothing, prints nothing.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "compare/launches/comparison.h"
#include "judge/earlier_evidence.h"
#include "judge/verdict/verdict.h"

namespace stepgate {

struct ComparisonSettings {
  double margin = 0.01;  // HEAD's step time may be this much longer, relative
  // Margins of the workloads that are allowed more than `margin`.
  std::map<std::string, double> wider = {};
  // The growth that an [[accepted]] entry allows, by workload. A comparison at that margin decides
  // whether the entry covers the slowdown.
  std::map<std::string, double> accepted_growths = {};
  // The first so many workloads are timed before the others. If most of them look slower, they are
  // launched until all workloads together fail, and the others may never be timed. 0: none. They
  // weigh more, so their choice must not depend on their times.
  std::size_t workloads_ahead = 0;
  // Pairs of earlier comparisons of the same two programs found this, by workload, as
  // pairs_found_in has it.
  EarlierRounds earlier = {};
  double alpha = 0.01;  // of any workload wrongly failed, by closed testing over all of them
  double beta = 0.05;   // of a workload wrongly passed
  double confidence = 0.95;

  double margin_of(const std::string& workload) const;
  // The weight of one of `workloads` workloads: its share of alpha and of the mean of the closed
  // test.
  double weight_of(std::size_t workload, std::size_t workloads) const;
};

// The fewest pairs after which a workload can fail, or hold.
std::int64_t fewest_pairs_to_refute(std::size_t workloads, const ComparisonSettings&);
std::int64_t fewest_pairs_to_hold(const ComparisonSettings&);

// The default; in practice the time limit ends a gate first.
inline constexpr std::int64_t most_pairs_of_a_gate = 1000;

// Returns `asked`, or else most_pairs_of_a_gate. Throws RequestError if so few pairs can never fail
// or never pass a workload. Without workloads any number is accepted.
std::int64_t most_pairs(std::optional<std::int64_t> asked, std::size_t workloads,
                        const ComparisonSettings&);

// By workload, of every pair: log(head's step time / base's) as far as it is believed, and three
// times: the steps of a side and the seconds that base's and head's took.
EarlierRounds pairs_found_in(const ComparisonMeasurement&);

// How many pairs the workloads that go ahead have had before the others begin.
inline constexpr std::int64_t pairs_ahead = 2;

// For ComparisonRequest::undecided. Use it for one measurement: it remembers the pairs that it has
// seen.
std::function<std::vector<int>(const ComparisonMeasurement&)> undecided_workloads(
    std::span<const std::string> workloads, const ComparisonSettings&);

struct WorkloadVerdict {
  std::string name;
  double margin = 0;
  Outcome outcome = Outcome::undecided;
  std::optional<double> base_step_seconds;  // over all scored steps
  std::optional<double> head_step_seconds;
  std::int64_t pairs = 0;
  std::int64_t earlier_pairs = 0;  // of earlier comparisons, besides
  std::int64_t superblocks = 0;
  std::int64_t steps = 0;           // of each side that count in total time
  std::int64_t longest_launch = 0;  // how many of them were of one launch
  // It is undecided, and more pairs would not decide it.
  bool out_of_reach = false;
  std::optional<double> accepted_growth;  // that settings have for it
  Outcome at_accepted_growth = Outcome::undecided;
  std::optional<TimedEvidence> timed;  // of head / base, a contrast for each pair
  std::string reason;
};

struct ComparisonVerdict {
  Introduction introduction;
  ComparisonSettings settings;
  std::vector<WorkloadVerdict> workloads;
  Outcome outcome = Outcome::undecided;  // the worst of the workloads, or of all together
  // The weighted mean of the e-values against the workloads, which is one against all of them
  // together.
  double evidence_against = 1;
  bool slower_together = false;  // it was, while some workloads were undecided
  std::vector<std::string> notes;
  std::int64_t pairs = 0;
  std::chrono::nanoseconds wall_time{0};
};

ComparisonVerdict judge_comparison(const Introduction&, const ComparisonMeasurement&,
                                   const ComparisonSettings&);

}  // namespace stepgate
