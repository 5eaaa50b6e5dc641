// SPDX-License-Identifier: MIT
// Two variants in the same traced rounds: which counts differ, and which part of the time.
// separate.cpp puts that into words.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "judge/verdict/mechanism.h"
#include "judge/verdict/sides.h"

namespace stepgate {

// The words for a difference in a count, and the part of the time that it can move.
struct CountWords {
  Metric metric;
  TimePart moves;
  std::string_view says;  // with {} for the count
};

// The words for every count that is compared, in the order in which differences are looked for.
std::span<const CountWords> count_words();

struct RareWork {
  const PeriodicWork& work;
  const std::string& variant;
};

// Two variants. Its arguments must outlive it.
class VariantPair {
 public:
  VariantPair(std::span<const PlannedStep> variants, std::size_t first, std::size_t other,
              const Traced& traced)
      : variants_(variants), first_(first), other_(other), traced_(traced) {}

  std::vector<CountDifference> counts() const;
  std::optional<TimePart> part() const;
  std::optional<Phase> phase_of(TimePart part) const;
  // Mean over the rounds, in seconds a step.
  double mean(std::size_t variant, TimePart part) const;
  double mean_step(std::size_t variant) const;
  std::size_t first() const { return first_; }
  std::size_t other() const { return other_; }
  // Lists what either does too rarely for the traced steps to hold whole periods of it.
  std::vector<RareWork> rare_work() const;

 private:
  // The plan's, of what no trace counts or what is too rare for this one.
  std::optional<double> count(const TracedRound&, std::size_t variant, Metric metric) const;
  bool differs_everywhere(Metric metric) const;
  // By the plans, whose counts are those of the trace. Launches of a graph have no phase.
  std::optional<Phase> phase_of(Metric metric) const;
  std::optional<Phase> phase_by(const std::function<double(const PhaseSplit&)>& what) const;
  // Every round of the one beyond every round of the other.
  bool is_shown(TimePart part) const;
  std::pair<double, double> range(std::size_t variant, TimePart part) const;

  std::span<const PlannedStep> variants_;
  std::size_t first_;
  std::size_t other_;
  const Traced& traced_;
};

}  // namespace stepgate
