// SPDX-License-Identifier: MIT
// Counts of a step, from a plan, a trace, or a tool that is attached to a program.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <set>
#include <span>
#include <string>
#include <string_view>

#include "scenario/assertions/metric.h"

namespace stepgate {

enum class Phase {
  data_wait,
  h2d,
  forward,
  backward,
  optimizer,
  evaluation,
  log,
  sync,
  host,
  save
};
constexpr int phase_count = 10;

std::string_view name_of(Phase);  // "data wait"

enum class CollectiveKind { all_reduce, reduce_scatter, all_gather, broadcast };
std::string_view name_of(CollectiveKind);  // "all-reduce"

// Counts of some work, such as that of a step or a phase.
struct Tally {
  double launches = 0;
  double copies = 0;
  double copy_bytes = 0;
  double memset_bytes = 0;
  double pageable_copies = 0;
  double host_waits = 0;
  double device_syncs = 0;
  double polls = 0;
  double device_allocs = 0;
  double device_frees = 0;
  double pinned_allocs = 0;
  double all_reduces = 0;
  double reduce_scatters = 0;
  double all_gathers = 0;
  double broadcasts = 0;
  double payload_bytes = 0;
  double flops = 0;

  double operator[](Metric) const;  // looks the metric up in tally_table
};

using TallyMember = double Tally::*;

struct TallyRow {
  Metric metric;
  TallyMember amount;
  bool of_ranks = false;  // exists only for steps of several ranks
};

inline constexpr std::array tally_table{
    TallyRow{Metric::launches_per_step, &Tally::launches},
    TallyRow{Metric::copies_per_step, &Tally::copies},
    TallyRow{Metric::copy_bytes_per_step, &Tally::copy_bytes},
    TallyRow{Metric::memset_bytes_per_step, &Tally::memset_bytes},
    TallyRow{Metric::pageable_copies_per_step, &Tally::pageable_copies},
    TallyRow{Metric::host_waits_per_step, &Tally::host_waits},
    TallyRow{Metric::device_syncs_per_step, &Tally::device_syncs},
    TallyRow{Metric::polls_per_step, &Tally::polls},
    TallyRow{Metric::device_allocs_per_step, &Tally::device_allocs},
    TallyRow{Metric::device_frees_per_step, &Tally::device_frees},
    TallyRow{Metric::pinned_allocs_per_step, &Tally::pinned_allocs},
    TallyRow{Metric::all_reduces_per_step, &Tally::all_reduces, true},
    TallyRow{Metric::reduce_scatters_per_step, &Tally::reduce_scatters, true},
    TallyRow{Metric::all_gathers_per_step, &Tally::all_gathers, true},
    TallyRow{Metric::broadcasts_per_step, &Tally::broadcasts, true},
    TallyRow{Metric::payload_bytes_per_step, &Tally::payload_bytes, true},
    TallyRow{Metric::flops_per_step, &Tally::flops}};
// The counts that a trace contains too: all except flops, which comes last.
inline constexpr std::span traced_tally(tally_table.data(), tally_table.size() - 1);

inline double Tally::operator[](Metric metric) const {
  for (const TallyRow& row : tally_table) {
    if (row.metric == metric) return this->*row.amount;
  }
  return 0;
}

// Work that a step does only once in so many steps. Everything that must cover this work, price it,
// or distrust measurements without it uses this list.
struct PeriodicWork {
  std::string name;          // for people; operations with one period are named after the first
  std::int64_t every = 0;    // period in steps; more than 1
  double rough_seconds = 0;  // each time, if the step hides none of it
  std::set<Metric> counts;   // the metrics whose counts it increases
};

// The name of an anchor among the measured variants.
inline std::string anchor_variant(const std::string& anchor) {
  return "anchor." + anchor;
}

}  // namespace stepgate
