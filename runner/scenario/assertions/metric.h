// SPDX-License-Identifier: MIT
// The metrics that assertions may name: one row each. Plans, the measuring and the judge find their
// values.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string_view>

#include "scenario/choices.h"

namespace stepgate {

// In order of exactness. `plan`: computed on the CPU. `exact`: counted by tracing a few steps on
// the GPU. `timed`: statistical. `traced`: statistical too, but only a trace of the timeline can
// tell.
enum class Evidence { plan, exact, timed, traced };
std::string_view name_of(Evidence);

enum class MetricUnit {
  count,
  bytes,
  seconds,
  ratio,
  per_second,
  bytes_per_second,
  flops,
  bound_class
};

// The classes of what bounds a step, in the words of assertions: `fix.bound == copy`. As a number
// of a side it is its place, counted from 1.
enum class BoundClass { data, copy, compute, host, communication };
std::string_view name_of(BoundClass);

// A value's name here is the metric's in assertions.
enum class Metric {
  // timed
  step_ms_mean,
  step_ms_p50,
  step_ms_p95,
  step_ms_p99,
  samples_per_s,
  samples_per_s_per_rank,
  tokens_per_s,
  mfu,
  host_us,
  host_share,
  host_cpu_us,
  // plan: known before anything runs; the trace must agree where it counts the same thing
  launches_per_step,
  copies_per_step,
  copy_bytes_per_step,
  memset_bytes_per_step,
  // exact: counted by the trace, and by the plan, which must agree
  pageable_copies_per_step,
  host_waits_per_step,
  device_syncs_per_step,
  polls_per_step,
  device_allocs_per_step,
  device_frees_per_step,
  pinned_allocs_per_step,
  // plan again: files that keep counts have them in this order, and digests of it
  flops_per_step,
  peak_live,
  peak_reserved,
  host_pinned,
  need,
  arena_bytes,
  live_slope,
  reserve_overhead,
  fragmentation_peak,
  ooms,
  alloc_retries,
  live_after_empty_cache,
  sectors_per_request,
  memory_cap,
  requests_per_step,
  streams,
  advised_bytes,
  loader_threads,
  spinning_waits_per_step,
  pool_returns_per_step,
  // traced
  gpu_idle,
  kernel_idle,
  copy_overlap,
  short_kernel_share,
  exposed_copy_us,
  host_blocked_us,
  h2d_gbps,
  h2d_share,
  data_share,
  page_faults_per_step,
  host_page_faults_per_step,
  migrated_bytes_per_step,
  kernel_gbps,
  data_wait_us,
  h2d_us,
  forward_us,
  backward_us,
  optimizer_us,
  kernel_us,
  bound,
  // Counted by plans; files keep counts in this order.
  loader_starts_per_step,
  // traced
  driver_used,
  // Metrics of steps of several ranks, each a value of one of the ranks. Plans count them, and so
  // does the trace, which must agree.
  all_reduces_per_step,
  reduce_scatters_per_step,
  all_gathers_per_step,
  payload_bytes_per_step,
  // plan
  collectives_per_step,
  wire_bytes_per_step,
  unbucketed_per_step,
  late_collectives_per_step,
  early_comm_waits_per_step,
  state_bytes,
  // traced
  comm_us,
  exposed_comm_us,
  comm_overlap,
  comm_stretch,
  bus_gbps,
  skew_us,
  last_rank,
  blocking_comm_us,
  // timed, of the few slow steps of a round
  step_ms_max,
  slow_step_share,
};

// Which values of a metric are better; neither for one that only describes a step.
enum class Better { less, more, neither };

struct MetricRow {
  Metric metric;
  std::string_view name;
  Evidence evidence;
  MetricUnit unit;
  std::string_view meaning;
  Better better = Better::less;
  double most = std::numeric_limits<double>::infinity();  // that it can be: 1 for a share
};

std::span<const MetricRow> metric_table();
const MetricRow& row_of(Metric);
std::optional<Metric> metric_named(std::string_view name);

// Says which percentile of a round's steps a metric is, if any, as a share. step_ms_p99: 0.99.
std::optional<double> percentile_of(Metric);
// Scored steps of a variant in a round with which the percentile is one, and not the largest of a
// few: three lie beyond it, 3 / (1 - p). 1 for any other metric.
std::int64_t fewest_steps_of(Metric);

// How long a step takes, in one form or another.
bool is_step_time(Metric);

// Whether a few steps of a round decide it. Then it is an estimate without a known error rate.
bool is_of_few_steps(Metric);

// Whether it only describes the step and is no cost, so that more of it is no worse.
bool describes_the_step(Metric);

// Whether it is a rate: something that a step has so much of, over its mean time.
bool is_rate(Metric);

// Why no model of this kind has such a value, in words; empty where it has one.
std::string_view reason_against(Metric, ModelKind);

// Whether a baseline keeps the metric, so that assertions may say `stored.`: what plans count, and
// times of a step, which are kept relative to a frozen step. Host times have no such reference, and
// an mfu is of a peak rate, which no baseline keeps.
bool can_be_stored(Metric);

// The hint for a name that looks like a metric but is none; empty for other names.
std::string_view way_out_of(std::string_view name);

}  // namespace stepgate
