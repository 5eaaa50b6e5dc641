// SPDX-License-Identifier: MIT
// The mechanism behind the numbers, from traces: what bounds each variant's step, which differences
// separate two variants, and the memory that they hold. These are the values; diagnose.h computes
// them.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "measure/trace/traced.h"
#include "scenario/assertions/step_counts.h"

namespace stepgate {

// The parts of a TimeBreakdown, in its order.
enum class TimePart {
  math,
  memory,
  latency,
  copies,
  communication,
  idle_after_wait,
  idle_for_data,
  idle_for_host,
  idle_in_queue
};
constexpr int time_part_count = 9;

// Returns the part in seconds per step.
double part_of(const TimeBreakdown&, TimePart);

// A step is bound by what keeps kernels from running if that takes at least this share of it. With
// a smaller share, removing it would gain less than 1.25x.
inline constexpr double share_that_binds = 0.2;

// The class, as assertions name it: the largest part of the time in which no kernel runs, if it
// takes share_that_binds. It may be data, copies, collectives, or the host, whose waits and
// launches count together. Otherwise the class is compute, which includes fills and the device's
// own pauses.
BoundClass class_of(const TimeBreakdown&);

struct VariantMechanism {
  std::string variant;
  // The part that bounds the step. The diagnosis names it: math is compute-bound, memory
  // memory-bound, latency latency-bound, copies copy-bound, collectives communication-bound. Idle
  // parts are sync-, data- or launch-bound; pauses in the queue count as launch-bound. Absent when
  // no single part bounds it.
  std::optional<TimePart> bound_by;
  BoundClass bound_class = BoundClass::compute;  // class_of(time)
  std::string diagnosis;                         // a sentence with the numbers
  TimeBreakdown time;                            // mean over the traced rounds
  std::array<PhaseSplit, phase_count> phases{};  // mean over the traced rounds, too
  std::map<Metric, double> values;               // means of the metrics that every round knows
  std::optional<WorstRanks> ranks;  // the ranks these come from, where there are several
  WorkTimes work;                   // means of all work in any round
  std::optional<double> slowdown;   // time of a traced step / time of a timed step
  // Memory by the plan, if there is one; reserved bytes that it cannot know are 0.
  std::optional<MemoryUse> planned;
  MemoryUse memory;  // as recorded by the device in the last round
};

// A count that differs between two variants.
struct CountDifference {
  Metric metric = Metric::launches_per_step;
  double first = 0;
  double other = 0;
  std::optional<Phase> phase;  // with most of the difference; absent if unknown
};

// The differences that separate two variants.
struct Separation {
  std::string first;
  std::string other;
  std::vector<CountDifference> counts;
  // The part of the time that differs most, in seconds per step, where the ranges of the two
  // variants over the traced rounds do not overlap; otherwise absent.
  std::optional<TimePart> part;
  std::optional<Phase> phase;  // in which the part differs; absent if unknown
  std::string summary;
};

struct Mechanism {
  std::string unavailable;  // why there is no trace; empty when there is one
  std::int64_t rounds = 0;
  std::int64_t steps = 0;  // of each variant in each round
  std::chrono::nanoseconds wall_time{0};
  std::vector<VariantMechanism> variants;
  std::vector<Separation> separations;  // of the pairs that assertions name (diagnose.h)
};

}  // namespace stepgate
