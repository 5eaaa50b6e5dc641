// SPDX-License-Identifier: MIT
// The result of measuring: every segment of every round, in the order it ran. Enough for a third
// party to recompute the verdict; nothing is decided here.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "device/device.h"
#include "measure/trace/traced.h"
#include "measure/wall_times.h"

namespace stepgate {

// Scored steps of one variant in one round: one after the other, or in short segments between those
// of the other variants.
struct Segment {
  int variant = 0;  // index into Measurement::variants
  int slot = 0;     // where it was loaded
  std::int64_t first_step =
      0;  // number of the first scored step; when interleaved, of the first run
  std::int64_t steps = 0;
  std::chrono::nanoseconds elapsed{0};
  std::optional<std::chrono::nanoseconds> host_busy = {};
  std::optional<std::chrono::nanoseconds> host_processor = {};
  // Mean over the scored steps; when interleaved, from the first step to the last of anybody.
  std::optional<double> sm_clock_hertz = {};
  std::vector<std::chrono::nanoseconds> step_times = {};
  // The part of `step_times` that came right after steps of the same variant.
  std::int64_t own_steps = 0;
  std::chrono::nanoseconds own_elapsed{0};
};

// The unit of evidence. All variants are loaded anew, into slots and in an order that are drawn
// anew, from a step number and with draws of the loader that are drawn anew and that all of them
// share. Then a segment of each runs in that order and another in its mirror; or, where steps do
// not disturb each other, short segments of them run interleaved, every cycle in an order of its
// own, without the queue ever running empty. Swapping the labels of two variants leaves the
// distribution of all of this unchanged.
struct Round {
  std::vector<Segment> segments;
  bool interleaved = false;  // one segment of every variant, all its short ones together
  std::optional<EnvironmentReading> environment_after = {};  // read when the last one had ended
};

// Memory that keeping a round takes, about: its segments, a number for every scored step, and as
// much again for what is concluded from it.
std::int64_t bytes_kept(const Round&);

// A measurement ends when its rounds take so much, whatever it was allowed: memory is bounded, and
// nothing that was measured is thrown away. The fewest rounds of a verdict are taken all the same.
inline constexpr std::int64_t most_bytes_kept = 128 << 20;

// Cost of a run, known once the variants are warm and before the first round.
struct ExpectedCost {
  std::chrono::nanoseconds round{0};
  std::int64_t fewest_rounds = 0;  // with fewer no assertion can be decided
  std::int64_t most_rounds = 0;    // that fit into rounds and seconds
  double deviation = 0;  // of a round's log-ratio of two variants, as the warm-up lets expect
};

struct MeasuredVariant {
  std::string name;
  std::optional<double> batch_size = {};  // these three as Subject has them
  std::optional<double> tokens = {};
  std::optional<double> model_flops = {};
  std::optional<double> peak_flops_per_second = {};  // of the device: device/peak_rates.h
  // Libraries that its steps depend on besides the device, and kernels that they got (device.h). A
  // choice that a later load made otherwise stands behind the first.
  std::vector<DeviceKey> libraries = {};
  std::vector<KernelChoice> choices = {};
  int ranks = 1;
  std::int64_t wash_out_steps = 0;  // at the start of each of its long segments
  std::int64_t segment_steps = 0;   // scored, of each
};

// The steps of two variants, or of two ranks of one, that should have computed the same and did
// not.
struct AnotherStep {
  int variant = 0;
  int against = 0;  // another variant of the same arithmetic
  int rank = 0;     // other than 0: that rank of the variant against its rank 0
  std::int64_t step = 0;
  std::string parameter = {};     // whose gradient is another; empty: the loss is
  double value = 0;               // the loss, or by how much the gradients differ, relative
  double expected = 0;            // the other's loss
  double bound = 0;               // relative
  bool after_the_rounds = false;  // in steps that began again, with the kernels of the last round
};

// Two variants whose numbers were compared, and by how much they differ at most: of losses in the
// first steps after a load, of gradients for the parameter that differs the most.
struct ComparedPair {
  int variant = 0;
  int against = 0;
  bool adds_alike = false;     // their models make the same launches and collectives
  double gradient_bound = 0;   // by how much gradients may differ
  double loss = 0;             // relative
  double gradient = 0;         // relative, by norm; only where any was compared
  std::string parameter = {};  // whose gradient that is; empty: none differs, or none was compared
  std::int64_t gradients = 0;  // of parameters that were compared, over all steps
};

// Each of some variants with each of some others: their numbers are not compared.
struct NotCompared {
  std::vector<int> variants;
  std::vector<int> against;
  bool gradients_alone = false;  // their losses are
  std::string reason;            // what `variants` compute otherwise, in words
};

struct Measurement {
  // No device took part, and none is needed: what plans count is all that there is.
  bool planned_only = false;
  DeviceIdentity device;
  std::uint64_t scenario_fingerprint = 0;
  std::uint64_t seed = 0;
  std::vector<MeasuredVariant> variants;
  std::optional<EnvironmentReading> environment_before = {};  // read before the first round
  std::vector<Round> rounds;
  std::int64_t warmup_steps = 0;  // run of each variant before the first round, at most
  std::string segments_because;   // why steps are not interleaved, in words; empty: they are
  ExpectedCost expected;
  bool steady =
      true;  // false: the warm-up ended because it had to, with the step times still drifting
  std::chrono::nanoseconds device_time{0};  // of all steps run, warm-up and wash-out included
  std::chrono::nanoseconds wall_time{0};
  WallTimes wall_times = {};  // of this machine: those of loads, steps and judging after rounds
  std::chrono::nanoseconds device_time_before_rounds{0};  // of both, for the warm-up
  std::chrono::nanoseconds wall_time_before_rounds{0};
  bool budget_spent = false;    // ended by the budget, not by enough evidence
  bool record_full = false;     // ended because its rounds took most_bytes_kept
  bool budget_refused = false;  // not even the fewest rounds fit: none was run
  std::optional<AnotherStep> another_step;
  std::vector<ComparedPair> compared;
  std::vector<NotCompared> not_compared;
  std::optional<Traced> traced = {};  // absent when nobody asked
};

// Asked after every round: is there enough evidence? `judge` makes it, `main` hands it over.
using Enough = std::function<bool(const Measurement&)>;

}  // namespace stepgate
