// SPDX-License-Identifier: MIT
// Measures two programs that run the same workloads against each other. Each pair launches two
// fresh processes, and only one is timed at a time. Ends when the caller says that every workload
// is decided, or at the limit of pairs or seconds. Draws no conclusions and prints nothing.
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

// Largest allowed time of an answer besides its steps, for a line each way and reading the timers.
inline constexpr std::chrono::nanoseconds most_cost_of_a_request = std::chrono::milliseconds(2);

// One uninterrupted run of scored steps of one side.
struct ComparisonSegment {
  ComparisonSide side = ComparisonSide::base;
  std::int64_t steps = 0;
  std::chrono::nanoseconds elapsed{0};  // reported by the worker
  // Time until the answer, beyond the reported time including the wash-out. It has the cost of a
  // request.
  std::chrono::nanoseconds hidden{0};
};

// The four segments are in random order: base, head, head, base, or head, base, base, head.
using Superblock = std::array<ComparisonSegment, 4>;

// log(head's step time / base's), where each side has the geometric mean of its two segments.
double contrast_of(const Superblock&);

// One workload in one pair of launches.
struct WorkInPair {
  int workload = 0;  // index into ComparisonMeasurement::workloads
  std::int64_t wash_out_steps = 0;
  std::vector<Superblock> superblocks;
  // Watched steps, equally many of both sides, show rare or late effects, and count only in total
  // time. A workload that starts late ran them before its superblocks.
  std::vector<Superblock> watched = {};
  // Time from the first request to run until both sides answered the last request to unload, and
  // the part of it that both sides report for their steps, plus the cost of requests.
  std::chrono::nanoseconds passed{0};
  std::chrono::nanoseconds claimed{0};
  // Work that each side reports as periodic.
  std::array<std::vector<PeriodicWork>, both_sides.size()> periodic = {};
};

// One fresh process of each side.
struct LaunchPair {
  ComparisonSide first = ComparisonSide::base;  // started and asked first, by a fair coin
  std::vector<WorkInPair> workloads;
};

struct ComparisonMeasurement {
  std::vector<std::string> workloads;
  bool unchecked = false;         // reported times are not wall times and cannot be checked
  std::vector<LaunchPair> pairs;  // complete ones only
  std::chrono::nanoseconds wall_time{0};
  bool budget_spent = false;
  bool stopped = false;  // interrupted; an incomplete pair is left out
};

// Both programs' descriptions of themselves.
struct Introduction {
  Hello base;
  Hello head;
};

// Starts a fresh process of one side; `launch` counts the launches of both sides from 0.
using LaunchWorker = std::function<std::unique_ptr<Worker>(ComparisonSide, std::int64_t launch)>;

// Starts each program once, reads its hello and ends it. This also loads both programs from disk
// into memory for the measured launches. nullopt when interrupted.
std::optional<Introduction> introduce(const LaunchWorker&);

// Watched steps of each side that suffice: with a stall in one step of 2,000 they expect ten
// stalls, and rarely miss most of them.
inline constexpr std::int64_t enough_watched_steps = 20'000;

struct ComparisonRequest {
  std::vector<std::string> workloads;
  Introduction introduction;
  LaunchWorker launch;
  std::uint64_t seed = 0;  // of the random draws
  // Time of the faster side's segments, about, and the time that each side runs before its first
  // scored segment besides a wash-out. The latter warms up a fresh process and an idle clock.
  std::chrono::nanoseconds segment = std::chrono::milliseconds(20);
  std::chrono::nanoseconds warm_up = std::chrono::milliseconds(80);
  // Superblocks of a workload per pair while its noise is unknown. A workload that is open after
  // the fewest pairs gets as many as separate the noise of launches from that of superblocks.
  std::int64_t first_superblocks = 3;
  std::int64_t most_steps = 1'000'000;  // of a segment
  // Reported times are those of kernels in traced steps, which are a part of what passes.
  bool of_kernels = false;
  // Time for watched steps of a workload in one random pair of five, besides its superblocks, until
  // each side has run `enough_watched_steps`. The superblocks begin at a random place among them.
  std::chrono::nanoseconds watch_time{0};
  // Returns how many pairs start and load a workload at once, given the number of finished pairs
  // and how many fit into memory by what loaded workers say (pairs_in_memory); empty means one.
  // Timing still happens one process at a time.
  std::function<std::int64_t(std::int64_t done, std::optional<std::int64_t> fitting)>
      pairs_at_once = {};
  std::int64_t most_pairs = 30;
  std::int64_t fewest_pairs = 5;
  // After this time no pair begins, once there are the fewest pairs; absent means no limit.
  std::optional<std::chrono::nanoseconds> patience;
  std::function<std::chrono::nanoseconds()> clock;  // steady; only differences matter
  // Returns the workloads that need more evidence, in ascending order. Called before each group of
  // concurrent pairs.
  std::function<std::vector<int>(const ComparisonMeasurement&)> undecided;
  std::function<void(std::int64_t pairs, std::chrono::nanoseconds spent)> progress;  // may be empty
};

// How many pairs may be loaded at once: those that fit into half of the device's memory, from 1
// to 5.
std::int64_t pairs_in_memory(double bytes_of_a_pair, double bytes_of_device);

// For ComparisonRequest::watch_time: a twentieth of a comparison's time is used for rare and late
// effects, equally for each workload.
std::chrono::nanoseconds time_to_watch(std::chrono::nanoseconds of_a_comparison,
                                       std::size_t workloads);

// Throws WorkerError.
ComparisonMeasurement measure_comparison(const ComparisonRequest&);

}  // namespace stepgate
