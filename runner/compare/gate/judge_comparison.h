// SPDX-License-Identifier: MIT
// Makes a verdict on every workload from the measurement of a comparison: is HEAD at most the
// margin slower than BASE? With a negative margin: is HEAD faster by more than that? Pairs of
// launches are the units of evidence, never the superblocks within them. Measures nothing and
// prints nothing.
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
  double margin = 0.01;  // allowed increase of HEAD's step time, relative; negative: a needed gain
  // Margins of the workloads, and of their kernels, that are allowed more than `margin`.
  std::map<std::string, double> wider = {};
  // The growth that an [[accepted]] entry allows, by workload. A comparison at that margin decides
  // whether the entry covers the slowdown.
  std::map<std::string, double> accepted_growths = {};
  // The first so many workloads are timed before the others. If most of them look slower, they are
  // launched until all workloads together fail, and the others may never be timed. 0: none. They
  // weigh more, so their choice must not depend on their times.
  std::size_t workloads_ahead = 0;
  // Results of earlier comparisons of the same two programs, by workload, as in pairs_found_in.
  EarlierRounds earlier = {};
  double alpha = 0.01;  // probability that any workload wrongly fails, by closed testing
  double beta = 0.05;   // probability that a workload wrongly passes
  double confidence = 0.95;

  double margin_of(const std::string& workload) const;
  // The weight of a workload among `workloads` workloads: its share of alpha and of the mean in the
  // closed test.
  double weight_of(std::size_t workload, std::size_t workloads) const;
};

// The fewest pairs after which a workload can fail, or pass.
std::int64_t fewest_pairs_to_refute(std::size_t workloads, const ComparisonSettings&);
std::int64_t fewest_pairs_to_hold(const ComparisonSettings&);
// The fewest pairs that every workload gets, whatever the time limit: those after which it can pass
// or after which a single one can fail.
std::int64_t fewest_pairs_to_decide(const ComparisonSettings&);

// The default number of pairs; in practice the time limit ends a gate first.
inline constexpr std::int64_t most_pairs_of_a_gate = 1000;

// Returns `asked`, or else most_pairs_of_a_gate. Throws RequestError if so few pairs can never fail
// or never pass a workload. Without workloads any number is accepted.
std::int64_t most_pairs(std::optional<std::int64_t> asked, std::size_t workloads,
                        const ComparisonSettings&);

// The results of every pair, by workload: the credible log(head's step time / base's), and three
// times: the steps of one side and the seconds that base and head took.
EarlierRounds pairs_found_in(const ComparisonMeasurement&);

// Number of pairs of the first workloads before the others begin.
inline constexpr std::int64_t pairs_ahead = 2;

// Makes ComparisonRequest::undecided. It serves one measurement, since it remembers the pairs that
// it has seen.
std::function<std::vector<int>(const ComparisonMeasurement&)> undecided_workloads(
    std::span<const std::string> workloads, const ComparisonSettings&);

struct WorkloadVerdict {
  std::string name;  // that of a workload, or of a kernel of one (kernel_workload.h)
  double margin = 0;
  Outcome outcome = Outcome::undecided;
  std::optional<double> base_step_seconds;  // over all scored steps
  std::optional<double> head_step_seconds;
  std::int64_t pairs = 0;
  std::int64_t earlier_pairs = 0;  // additional pairs of earlier comparisons
  std::int64_t superblocks = 0;
  std::int64_t steps = 0;           // of each side, counted in total time
  std::int64_t longest_launch = 0;  // largest number of steps in one launch
  // True where it is undecided and more pairs would not decide it.
  bool out_of_reach = false;
  std::optional<double> accepted_growth;  // from the settings
  Outcome at_accepted_growth = Outcome::undecided;
  std::optional<TimedEvidence> timed;  // of head / base, with one contrast per pair
  std::string reason;
};

struct ComparisonVerdict {
  Introduction introduction;
  ComparisonSettings settings;
  std::vector<WorkloadVerdict> workloads;
  Outcome outcome = Outcome::undecided;  // the worst of the workloads and of all together
  // The weighted mean of the workloads' e-values, which is an e-value against all of them together.
  double evidence_against = 1;
  bool slower_together = false;  // true: it ended for this while some workloads were undecided
  std::vector<std::string> notes;
  std::int64_t pairs = 0;
  std::chrono::nanoseconds wall_time{0};
};

ComparisonVerdict judge_comparison(const Introduction&, const ComparisonMeasurement&,
                                   const ComparisonSettings&);

// Says of each kernel what its workload's step took.
void tell_steps(ComparisonVerdict& of_kernels, const ComparisonVerdict& of_steps);
// The verdict on both, whose error rates add up.
ComparisonVerdict with_kernels(ComparisonVerdict of_steps, ComparisonVerdict of_kernels);

}  // namespace stepgate
