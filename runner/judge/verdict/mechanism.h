// SPDX-License-Identifier: MIT
// The mechanism behind a number, from traces: what bounds each variant's step, what separates two
// of them, and what memory they hold. Values of a verdict; diagnose.h finds them.
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

// In seconds a step.
double part_of(const TimeBreakdown&, TimePart);

// A step is bound by what keeps kernels from running when that takes at least this share of it. One
// that loses less gains less than 1.25x by losing nothing.
inline constexpr double share_that_binds = 0.2;

// The class in the words of assertions. It is the largest part of the time in which no kernel runs,
// if that part binds: for data, by copies, by collectives, or by the host, whose waits it counts
// with its launches. Otherwise it is compute: kernels, fills, and the device's own pauses are left.
BoundClass class_of(const TimeBreakdown&);

struct VariantMechanism {
  std::string variant;
  // The part that bounds the step: math makes it compute-bound, memory memory-bound,
  // latency latency-bound, copies copy-bound, collectives communication-bound, and what the device
  // idles for sync-, data- or launch-bound (pauses in the queue are those between launches). Absent
  // when no single one does.
  std::optional<TimePart> bound_by;
  BoundClass bound_class = BoundClass::compute;  // class_of(time)
  std::string diagnosis;                         // a sentence with the numbers
  TimeBreakdown time;                            // mean over the traced rounds
  std::array<PhaseSplit, phase_count> phases{};  // likewise
  std::map<Metric, double> values;               // likewise, of those that every round tells
  std::optional<WorstRanks> ranks;               // whose these are, where there are several
  WorkTimes work;                                // likewise, of what any round has
  std::optional<double> slowdown;                // time of a traced step over that of a timed one
  // By the plan, if there is one; what it cannot know of reserved bytes is 0.
  std::optional<MemoryUse> planned;
  MemoryUse memory;  // as the device booked it in the last round
};

// A count that differs between two variants.
struct CountDifference {
  Metric metric = Metric::launches_per_step;
  double first = 0;
  double other = 0;
  std::optional<Phase> phase;  // where most of the difference lies; absent where that is not known
};

// The differences that separate two variants.
struct Separation {
  std::string first;
  std::string other;
  std::vector<CountDifference> counts;
  // The part of the time whose seconds a step differ most, when every traced round of the one is
  // beyond every one of the other; otherwise absent.
  std::optional<TimePart> part;
  std::optional<Phase> phase;  // where the part differs; absent where that is not known
  std::string summary;
};

struct Mechanism {
  std::string unavailable;  // why there is no trace; empty when there is
  std::int64_t rounds = 0;
  std::int64_t steps = 0;  // of each variant in each round
  std::chrono::nanoseconds wall_time{0};
  std::vector<VariantMechanism> variants;
  std::vector<Separation> separations;  // of the pairs that assertions name: diagnose.h
};

}  // namespace stepgate
