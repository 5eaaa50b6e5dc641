// SPDX-License-Identifier: MIT
// Facts learned from traces of the variants' steady steps. Made in a process of its own, since
// tracing slows steps down; nothing in it is compared with a timed round.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/record/fields.h"
#include "device/trace.h"
#include "measure/wall_times.h"
#include "scenario/assertions/metric.h"

namespace stepgate {

// Where the time of a step goes, in seconds a step. The device is busy with kernels, or with
// copies, fills and collectives alone, or idle; the idle time is blamed on what the host did
// meanwhile. The parts after `step` add up to it.
struct TimeBreakdown {
  double step = 0;
  double math = 0;             // kernels that their arithmetic keeps busy
  double memory = 0;           // kernels that device memory keeps busy, and fills
  double latency = 0;          // kernels that wait for one load after the other
  double copies = 0;           // copies while no kernel runs
  double communication = 0;    // collectives while neither does
  double idle_after_wait = 0;  // the device ran dry while the host waited for it
  double idle_for_data = 0;    // the host got the batch: from its loader, or by writing it
  double idle_for_host = 0;    // the host issued work, too slowly
  double idle_in_queue = 0;    // work had been issued already: the device's own pauses between
                               // pieces of work, which no wait and no host can shorten
};
template <>
inline constexpr auto fields_of<TimeBreakdown> =
    fields<&TimeBreakdown::step, &TimeBreakdown::math, &TimeBreakdown::memory,
           &TimeBreakdown::latency, &TimeBreakdown::copies, &TimeBreakdown::communication,
           &TimeBreakdown::idle_after_wait, &TimeBreakdown::idle_for_data,
           &TimeBreakdown::idle_for_host, &TimeBreakdown::idle_in_queue>;

// One phase of a step, in seconds a step.
struct PhaseSplit {
  double host_blocked = 0;  // in calls that wait for the device
  double device_busy = 0;   // sum over kernels, copies and fills
  double host_waits = 0;    // calls that can block, a step
  double copying = 0;       // of device_busy: copies
};
template <>
inline constexpr auto fields_of<PhaseSplit> =
    fields<&PhaseSplit::host_blocked, &PhaseSplit::device_busy, &PhaseSplit::host_waits,
           &PhaseSplit::copying>;

// Copies of one kind, a step.
struct CopyTally {
  CopyEnd from = CopyEnd::unknown;
  CopyEnd to = CopyEnd::unknown;
  double copies = 0;
  double bytes = 0;
};
template <>
inline constexpr auto fields_of<CopyTally> =
    fields<&CopyTally::from, &CopyTally::to, &CopyTally::copies, &CopyTally::bytes>;

// Time of a step in one kernel of the catalogue, or in all copies or fills.
struct WorkTime {
  double times = 0;    // a step: of a kernel, its launches
  double seconds = 0;  // a step, added up
};
template <>
inline constexpr auto fields_of<WorkTime> = fields<&WorkTime::times, &WorkTime::seconds>;
// By kernel; "(copies)", "(fills)" and "(collectives)" are none.
using WorkTimes = std::map<std::string, WorkTime>;

// One trace of one variant, of one rank.
struct TracedStep {
  int rank = 0;
  std::map<Metric, double> values;  // of every metric that the trace can tell, in base units
  TimeBreakdown time;
  std::array<PhaseSplit, phase_count> phases{};
  std::vector<CopyTally> copies;  // of the kinds that there are, in the order of the ends
  WorkTimes work;                 // of all that ran
  MemoryUse memory;
  std::map<UnsteadyKind, std::int64_t> unsteady;  // how often
  std::optional<LibraryRecord> library;           // as in the trace
};
template <>
inline constexpr auto fields_of<TracedStep> =
    fields<&TracedStep::rank, &TracedStep::values, &TracedStep::time, &TracedStep::phases,
           &TracedStep::copies, &TracedStep::work, &TracedStep::memory, &TracedStep::unsteady,
           &TracedStep::library>;

// All variants, each loaded anew, in an order of its own.
struct TracedRound {
  // In the order of the plans. These steps count: for several ranks those that worst_ranks.h takes
  // from each.
  std::vector<TracedStep> variants;
  // By variant, what each of several ranks says, by rank; empty where there is one.
  std::vector<std::vector<TracedStep>> ranks = {};
};
template <>
inline constexpr auto fields_of<TracedRound> = fields<&TracedRound::variants, &TracedRound::ranks>;

// The ranks whose numbers the rounds have of one variant.
struct WorstRanks {
  int shown = 0;  // of all that no other line is about
  // Only where ranks differ.
  std::map<Metric, int> metrics;
  std::map<std::string, int> kernels;  // of the time of one, by its name
};
template <>
inline constexpr auto fields_of<WorstRanks> =
    fields<&WorstRanks::shown, &WorstRanks::metrics, &WorstRanks::kernels>;

// The knob that [calibrate] names, at the value that was found.
struct Calibrated {
  std::string knob;
  std::string value;  // as `--set` takes it
  std::string aim;    // as written: "fix.h2d_share ~= 30% within 5%"
  double metric = 0;  // what the value gives, in the metric's base unit
  MetricUnit unit = MetricUnit::ratio;
  std::int64_t trials = 0;
  std::string failure;  // why no value will do, in words; empty when one does
};
template <>
inline constexpr auto fields_of<Calibrated> =
    fields<&Calibrated::knob, &Calibrated::value, &Calibrated::aim, &Calibrated::metric,
           &Calibrated::unit, &Calibrated::trials, &Calibrated::failure>;

struct Traced {
  std::optional<Calibrated> calibrated;  // absent where nothing is to be calibrated
  std::string unavailable;               // why there is no trace, in words; empty when there is one
  std::int64_t steps = 0;                // of each trace; of some of the first round more
  std::vector<TracedRound> rounds;
  std::vector<WorstRanks> worst;  // by variant; of one of one rank there is nothing to say
  // The traces of the last round, by variant and then by rank, at least one each. Empty if they are
  // not drawn and every trace matches its plan.
  std::vector<std::vector<Trace>> timelines;
  // Why these are not the traces of their plans, in words (conformance.h); empty: they are.
  std::string not_as_planned;
  std::chrono::nanoseconds wall_time{0};  // by the device's clock
  WallTimes wall_times = {};              // how long each part of tracing took this machine
};
template <>
inline constexpr auto fields_of<Traced> =
    fields<&Traced::calibrated, &Traced::unavailable, &Traced::steps, &Traced::rounds,
           &Traced::worst, &Traced::timelines, &Traced::not_as_planned, &Traced::wall_time,
           &Traced::wall_times>;

}  // namespace stepgate
