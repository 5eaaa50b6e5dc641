// SPDX-License-Identifier: MIT
// Measures two programs that run the same workloads against each other. Each pair launches two
// fresh processes, and only one is timed at a time. Ends when the caller says that every workload
// is decided, or after the last pair or second. Decides nothing about the programs; prints nothing.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "compare/worker/worker.h"

namespace stepgate {

enum class ComparisonSide { base, head };
inline constexpr std::array both_sides{ComparisonSide::base, ComparisonSide::head};

// One uninterrupted run of scored steps of one side.
struct ComparisonSegment {
  ComparisonSide side = ComparisonSide::base;
  std::int64_t steps = 0;
  std::chrono::nanoseconds elapsed{0};  // as the worker says
  // Beyond what the worker says that it took, wash-out included, until it answered; 0 where that is
  // no more than a request costs.
  std::chrono::nanoseconds hidden{0};
};

// Base, head, head, base, or head, base, base, head: a fair coin says which.
using Superblock = std::array<ComparisonSegment, 4>;

// log(head's step time / base's), each side's the geometric mean of its two segments.
double contrast_of(const Superblock&);

// One workload in one pair of launches.
struct WorkInPair {
  int workload = 0;  // index into ComparisonMeasurement::workloads
  std::int64_t wash_out_steps = 0;
  std::vector<Superblock> superblocks;
  // More steps of both sides, equally many: they show what is rare or begins late, in total time
  // alone. Those of a workload that begins late ran before the superblocks.
  std::vector<Superblock> watched = {};
  // From the first request to run until both have answered the last one to unload; and what of it
  // both sides say that their steps took, with what requests cost.
  std::chrono::nanoseconds passed{0};
  std::chrono::nanoseconds claimed{0};
  // Each side says that it does these only every so many steps.
  std::array<std::vector<PeriodicWork>, both_sides.size()> periodic = {};
};

// A fresh process of each side.
struct LaunchPair {
  ComparisonSide first = ComparisonSide::base;  // started, and asked, first: a fair coin
  std::vector<WorkInPair> workloads;
};

struct ComparisonMeasurement {
  std::vector<std::string> workloads;
  bool simulated = false;         // times are not those of a clock that could be compared with ours
  std::vector<LaunchPair> pairs;  // whole ones only
  std::chrono::nanoseconds wall_time{0};
  bool budget_spent = false;
  bool stopped = false;  // somebody wanted it to end; what a pair had begun is left out
};

// Both programs' descriptions of themselves.
struct Introduction {
  Hello base;
  Hello head;
};

// Starts a fresh process of one side; `launch` counts from 0 over both sides.
using LaunchWorker = std::function<std::unique_ptr<Worker>(ComparisonSide, std::int64_t launch)>;

// Starts each program once, hears what it is and ends it; this also brings both from the disk into
// memory, where every measured launch finds them. Nothing when the wait was to end.
std::optional<Introduction> introduce(const LaunchWorker&);

// Each side's: ten stalls where one step in 2,000 has one, so that hardly ever most are missed.
inline constexpr std::int64_t enough_watched_steps = 20'000;

struct ComparisonRequest {
  std::vector<std::string> workloads;
  Introduction introduction;
  LaunchWorker launch;
  std::uint64_t seed = 0;  // of the coins
  // About as long as the faster side's segments take; and what each side runs before the first that
  // counts, besides a wash-out: a fresh process and a clock that was asleep.
  std::chrono::nanoseconds segment = std::chrono::milliseconds(20);
  std::chrono::nanoseconds warm_up = std::chrono::milliseconds(80);
  // Superblocks of a workload in a pair while nothing is known of its noise. Where a workload is
  // still open after the fewest pairs, as many are run as tell the launches' noise from the
  // superblocks' noise.
  std::int64_t first_superblocks = 3;
  // In one pair of five, which is drawn, a workload may take so long to be watched, beside its
  // superblocks, until each side has run `enough_watched_steps`; the superblocks begin at a random
  // place in it.
  std::chrono::nanoseconds watch_time{0};
  // How many pairs start and load a workload at once, given the number of finished pairs; empty:
  // one. Timing still happens one process at a time.
  std::function<std::int64_t(std::int64_t done)> pairs_at_once = {};
  std::int64_t most_pairs = 30;
  std::int64_t fewest_pairs = 5;
  // No pair is begun after so much time, once there are the fewest; absent: time has no end.
  std::optional<std::chrono::nanoseconds> patience;
  std::function<std::chrono::nanoseconds()> clock;  // steady; only differences matter
  // Asked before every pair, or several at once: the workloads that need more evidence, ascending.
  std::function<std::vector<int>(const ComparisonMeasurement&)> undecided;
  std::function<void(std::int64_t pairs, std::chrono::nanoseconds spent)> progress;  // may be empty
};

// For ComparisonRequest::watch_time: a twentieth of the time that a comparison has goes into what
// is rare or begins late, the same for each of its workloads.
std::chrono::nanoseconds time_to_watch(std::chrono::nanoseconds of_a_comparison,
                                       std::size_t workloads);

// Throws WorkerError.
ComparisonMeasurement measure_comparison(const ComparisonRequest&);

}  // namespace stepgate
