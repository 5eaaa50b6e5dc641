// SPDX-License-Identifier: MIT
// The result of measuring: every segment of every round, in the order of execution. It suffices for
// a third party to recompute the verdict and holds no conclusions.
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

// The scored steps of one variant in one round: consecutive, or in short segments that alternate
// with those of other variants.
struct Segment {
  int variant = 0;  // index into Measurement::variants
  int slot = 0;     // where the variant was loaded
  std::int64_t first_step =
      0;  // number of the first scored step; when interleaved, of the first run
  std::int64_t steps = 0;
  std::chrono::nanoseconds elapsed{0};
  std::optional<std::chrono::nanoseconds> host_busy = {};
  std::optional<std::chrono::nanoseconds> host_processor = {};
  // Mean clock rate over the scored steps; when interleaved, from the first to the last step of any
  // variant.
  std::optional<double> sm_clock_hertz = {};
  std::vector<std::chrono::nanoseconds> step_times = {};
  // Number of the scored steps that came directly after steps of the same variant, and their time.
  std::int64_t own_steps = 0;
  std::chrono::nanoseconds own_elapsed{0};
};

// A round is the unit of evidence. All variants are loaded anew. Their slots and order, the first
// step, and the draws of the loader are random; the last two are common to all variants. Then a
// segment of each variant runs in that order and another one in the reversed order. Where steps do
// not disturb each other, short segments run interleaved instead, every cycle in an order of its
// own, and the queue never runs empty. Swapping the labels of two variants leaves the distribution
// of all of this unchanged.
struct Round {
  std::vector<Segment> segments;
  bool interleaved = false;  // then each variant's short segments are joined into one
  std::optional<EnvironmentReading> environment_after = {};  // read after the last segment
};

// Approximate bytes that keeping a round takes: its segments, a number for every scored step, and
// as much again for the values derived from them.
std::int64_t bytes_kept(const Round&);

// A measurement ends when its rounds take so many bytes, even if more rounds were allowed. This
// bounds memory without discarding measured rounds. The fewest rounds for a verdict are always
// taken.
inline constexpr std::int64_t most_bytes_kept = 128 << 20;

// Expected cost of the measurement, known after the warm-up and before the first round.
struct ExpectedCost {
  std::chrono::nanoseconds round{0};
  std::int64_t fewest_rounds = 0;  // with fewer no assertion can be decided
  std::int64_t most_rounds = 0;    // as many as fit into the limits of rounds and seconds
  double deviation = 0;  // of the log-ratio of two variants over rounds, estimated from the warm-up
};

struct MeasuredVariant {
  std::string name;
  std::optional<double> batch_size = {};  // this and the next two are copied from Subject
  std::optional<double> tokens = {};
  std::optional<double> model_flops = {};
  std::optional<double> peak_flops_per_second = {};  // of the device: device/peak_rates.h
  // Libraries that its steps depend on besides the device, and kernels that these chose (device.h).
  // A different choice in a later load is appended.
  std::vector<DeviceKey> libraries = {};
  std::vector<KernelChoice> choices = {};
  std::vector<LaunchAudit> audits = {};  // of launches of kernels that replace the catalogue's
  int ranks = 1;
  std::int64_t wash_out_steps = 0;  // unscored, at the start of each long segment
  std::int64_t segment_steps = 0;   // scored, in each long segment
};

// Records that two variants, or two ranks of one variant, computed different values where they
// should have computed the same.
struct AnotherStep {
  int variant = 0;
  int against = 0;  // the other variant, of the same arithmetic
  int rank = 0;     // nonzero: this rank of the variant is compared with its rank 0
  std::int64_t step = 0;
  std::string parameter = {};     // whose gradient differs; empty: the loss differs
  double value = 0;               // the loss, or the relative difference of the gradients
  double expected = 0;            // loss of the other variant
  double bound = 0;               // allowed relative difference
  bool after_the_rounds = false;  // in a repetition of the first steps
};

// Two variants whose losses and gradients were compared, with their largest differences: of losses
// in the first steps after a load, and of gradients for the parameter that differs the most.
struct ComparedPair {
  int variant = 0;
  int against = 0;
  bool adds_alike = false;    // their models make the same launches and collectives
  double gradient_bound = 0;  // allowed relative difference of gradients
  double loss = 0;            // largest relative difference
  double gradient = 0;  // largest relative difference by norm; only where gradients were compared
  // The parameter with that difference; empty: no gradient differs, or none was compared.
  std::string parameter = {};
  std::int64_t gradients = 0;  // number of compared gradients, over all steps
};

// Two sets of variants: no variant of `variants` is compared with one of `against`.
struct NotCompared {
  std::vector<int> variants;
  std::vector<int> against;
  bool gradients_alone = false;  // true: the losses are compared
  std::string reason;            // what `variants` compute differently, in words
};

struct Measurement {
  // True where only the counts of plans were determined, so that no device was used.
  bool planned_only = false;
  DeviceIdentity device;
  std::uint64_t scenario_fingerprint = 0;
  std::uint64_t seed = 0;
  std::vector<MeasuredVariant> variants;
  std::optional<EnvironmentReading> environment_before = {};  // read before the first round
  std::vector<Round> rounds;
  std::int64_t warmup_steps = 0;  // largest number of steps of a variant before the first round
  std::string segments_because;   // why steps are not interleaved; empty: they are
  ExpectedCost expected;
  bool steady = true;  // false: the step times still drifted when the warm-up ended
  std::chrono::nanoseconds device_time{0};  // of all steps run, including warm-up and wash-out
  std::chrono::nanoseconds wall_time{0};
  WallTimes wall_times = {};  // on this machine: loads, steps, and judging after rounds
  std::chrono::nanoseconds device_time_before_rounds{0};  // like wall_time: in the warm-up
  std::chrono::nanoseconds wall_time_before_rounds{0};
  bool budget_spent = false;    // ended by the budget before there was enough evidence
  bool record_full = false;     // ended because its rounds took most_bytes_kept
  bool budget_refused = false;  // no round was run since not even the fewest rounds fit
  std::optional<AnotherStep> another_step;
  // Why no number of this run is valid besides, in words that name a variant; empty: nothing found.
  std::string broken = {};
  std::vector<ComparedPair> compared;
  std::vector<NotCompared> not_compared;
  std::optional<Traced> traced = {};  // absent when no trace was requested
};

// Called after every round: is there enough evidence? `judge` makes it and `main` passes it on.
using Enough = std::function<bool(const Measurement&)>;

}  // namespace stepgate
