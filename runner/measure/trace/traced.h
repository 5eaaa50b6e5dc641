// SPDX-License-Identifier: MIT
// Results of tracing the variants' steady steps. They come from a process of their own, since
// tracing slows steps down, and are never compared with timed rounds.
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

// Where the time of a step goes, in seconds per step. The device runs kernels, or only copies,
// fills and collectives, or is idle. Idle time is attributed to what the host did meanwhile. The
// parts after `step` add up to it.
struct TimeBreakdown {
  double step = 0;
  double math = 0;             // kernels limited by arithmetic
  double memory = 0;           // kernels limited by device memory, and fills
  double latency = 0;          // kernels limited by the latency of dependent loads
  double copies = 0;           // copies while no kernel runs
  double communication = 0;    // collectives while no kernel or copy runs
  double idle_after_wait = 0;  // the device became idle while the host waited for it
  double idle_for_data = 0;    // the host got the batch from its loader, or wrote it
  double idle_for_host = 0;    // the host issued work too slowly
  double idle_in_queue = 0;    // work had been issued already: the device's own pauses between
                               // pieces of work, which no wait and no host can shorten
};
template <>
inline constexpr auto fields_of<TimeBreakdown> =
    fields<&TimeBreakdown::step, &TimeBreakdown::math, &TimeBreakdown::memory,
           &TimeBreakdown::latency, &TimeBreakdown::copies, &TimeBreakdown::communication,
           &TimeBreakdown::idle_after_wait, &TimeBreakdown::idle_for_data,
           &TimeBreakdown::idle_for_host, &TimeBreakdown::idle_in_queue>;

// One phase of a step, in seconds per step.
struct PhaseSplit {
  double host_blocked = 0;  // in calls that wait for the device
  double device_busy = 0;   // sum over kernels, copies and fills
  double host_waits = 0;    // blocking calls per step
  double copying = 0;       // copies, as part of device_busy
};
template <>
inline constexpr auto fields_of<PhaseSplit> =
    fields<&PhaseSplit::host_blocked, &PhaseSplit::device_busy, &PhaseSplit::host_waits,
           &PhaseSplit::copying>;

// Copies of one kind, per step.
struct CopyTally {
  CopyEnd from = CopyEnd::unknown;
  CopyEnd to = CopyEnd::unknown;
  double copies = 0;
  double bytes = 0;
};
template <>
inline constexpr auto fields_of<CopyTally> =
    fields<&CopyTally::from, &CopyTally::to, &CopyTally::copies, &CopyTally::bytes>;

// Time of a step in one kernel of the catalogue, or in all copies, fills or collectives.
struct WorkTime {
  double times = 0;    // per step; of a kernel, its launches
  double seconds = 0;  // sum per step
};
template <>
inline constexpr auto fields_of<WorkTime> = fields<&WorkTime::times, &WorkTime::seconds>;
// By kernel name; the names "(copies)", "(fills)" and "(collectives)" stand for work without
// kernels.
using WorkTimes = std::map<std::string, WorkTime>;

// Results of one trace of one variant on one rank.
struct TracedStep {
  int rank = 0;
  std::map<Metric, double> values;  // of every metric that the trace measures, in base units
  TimeBreakdown time;
  std::array<PhaseSplit, phase_count> phases{};
  std::vector<CopyTally> copies;  // kinds that occur, in order of their ends
  WorkTimes work;                 // all work that ran
  MemoryUse memory;
  std::map<UnsteadyKind, std::int64_t> unsteady;  // number of occurrences
  std::optional<LibraryRecord> library;           // copied from the trace
  // First operation whose work ran on another stream than the plan's (streams.h); empty: none.
  std::string on_another_stream;
};
template <>
inline constexpr auto fields_of<TracedStep> =
    fields<&TracedStep::rank, &TracedStep::values, &TracedStep::time, &TracedStep::phases,
           &TracedStep::copies, &TracedStep::work, &TracedStep::memory, &TracedStep::unsteady,
           &TracedStep::library, &TracedStep::on_another_stream>;

// All variants, each loaded anew, in a random order.
struct TracedRound {
  // The results that count, in the order of the plans. For several ranks, worst_ranks.h selects
  // them.
  std::vector<TracedStep> variants;
  // By variant and then by rank, the results of each of several ranks; empty where there is one
  // rank.
  std::vector<std::vector<TracedStep>> ranks = {};
};
template <>
inline constexpr auto fields_of<TracedRound> = fields<&TracedRound::variants, &TracedRound::ranks>;

// The ranks that supply the numbers of one variant.
struct WorstRanks {
  int shown = 0;  // of all numbers without a rank of their own
  // Only metrics in which ranks differ.
  std::map<Metric, int> metrics;
  std::map<std::string, int> kernels;  // of the time of a kernel, by its name
};
template <>
inline constexpr auto fields_of<WorstRanks> =
    fields<&WorstRanks::shown, &WorstRanks::metrics, &WorstRanks::kernels>;

// The result of [calibrate]: a knob and the value found for it.
struct Calibrated {
  std::string knob;
  std::string value;  // as written for `--set`
  std::string aim;    // as written: "fix.h2d_share ~= 30% within 5%"
  double metric = 0;  // measured with that value, in the metric's base unit
  MetricUnit unit = MetricUnit::ratio;
  std::int64_t trials = 0;
  std::string failure;   // why no value matches, in words; empty when one does
  bool is_kept = false;  // the aim is a limit that the file's own value is within
};
template <>
inline constexpr auto fields_of<Calibrated> =
    fields<&Calibrated::knob, &Calibrated::value, &Calibrated::aim, &Calibrated::metric,
           &Calibrated::unit, &Calibrated::trials, &Calibrated::failure, &Calibrated::is_kept>;

struct Traced {
  std::optional<Calibrated> calibrated;  // absent where the scenario has no [calibrate]
  std::string unavailable;               // why there is no trace, in words; empty when there is one
  std::int64_t steps = 0;                // of each trace; some traces of the first round have more
  std::vector<TracedRound> rounds;
  std::vector<WorstRanks> worst;  // by variant; empty element for one rank
  // The traces of the last round, by variant and then by rank, at least one each. Empty where
  // timelines are not drawn and every trace matches its plan, or where they took too much memory.
  std::vector<std::vector<Trace>> timelines;
  std::string not_drawn;  // why there are no timelines, in words, if they took too much memory
  // Why the traces contradict their plans, in words (conformance.h); empty: they match.
  std::string not_as_planned;
  std::chrono::nanoseconds wall_time{0};  // by the device's clock
  WallTimes wall_times = {};              // on this machine, by part of tracing
};
template <>
inline constexpr auto fields_of<Traced> =
    fields<&Traced::calibrated, &Traced::unavailable, &Traced::steps, &Traced::rounds,
           &Traced::worst, &Traced::timelines, &Traced::not_drawn, &Traced::not_as_planned,
           &Traced::wall_time, &Traced::wall_times>;

}  // namespace stepgate
