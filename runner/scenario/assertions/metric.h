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

// Kinds of evidence, the most exact first. `plan`: computed on the CPU. `exact`: counted by tracing
// a few steps on the GPU. `timed`: statistical. `traced`: statistical too, but needs a trace of the
// timeline.
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

// Classes of bottlenecks of a step, as assertions name them: `fix.bound == copy`. Where a side
// needs a number, it is the position in the enum, counted from 1.
enum class BoundClass { data, copy, compute, host, communication };
std::string_view name_of(BoundClass);

// The enumerators are named like the metrics in assertions.
enum class Metric {
  // Timed metrics.
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
  // Plan metrics: known before anything runs. The trace must agree where it counts the same thing.
  launches_per_step,
  copies_per_step,
  copy_bytes_per_step,
  memset_bytes_per_step,
  // Exact metrics: counted by the trace and by the plan, which must agree.
  pageable_copies_per_step,
  host_waits_per_step,
  device_syncs_per_step,
  polls_per_step,
  device_allocs_per_step,
  device_frees_per_step,
  pinned_allocs_per_step,
  // More plan metrics. Their order is part of stored counts and digests.
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
  // Traced metrics.
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
  // A plan metric; the order of plan metrics is part of stored counts.
  loader_starts_per_step,
  // A traced metric.
  driver_used,
  // Metrics of steps of several ranks; each is the value of one rank. Plan and trace count them and
  // must agree.
  all_reduces_per_step,
  reduce_scatters_per_step,
  all_gathers_per_step,
  broadcasts_per_step,
  payload_bytes_per_step,
  // Plan metrics.
  collectives_per_step,
  wire_bytes_per_step,
  unbucketed_per_step,
  late_collectives_per_step,
  early_comm_waits_per_step,
  state_bytes,
  // Traced metrics.
  comm_us,
  exposed_comm_us,
  comm_overlap,
  comm_stretch,
  bus_gbps,
  skew_us,
  last_rank,
  blocking_comm_us,
  // Timed metrics of the few slowest steps of a round.
  step_ms_max,
  slow_step_share,
  // A timed metric.
  steps_per_s,
  // A traced metric.
  cycles_per_load,
};

// Which values of a metric are better; `neither` for a metric that only describes a step.
enum class Better { less, more, neither };

struct MetricRow {
  Metric metric;
  std::string_view name;
  Evidence evidence;
  MetricUnit unit;
  std::string_view meaning;
  Better better = Better::less;
  double most = std::numeric_limits<double>::infinity();  // largest value; 1 for a share
};

std::span<const MetricRow> metric_table();
const MetricRow& row_of(Metric);
std::optional<Metric> metric_named(std::string_view name);

// The percentile of a round's steps that a metric is, as a share: 0.99 for step_ms_p99. nullopt for
// metrics that are no percentile.
std::optional<double> percentile_of(Metric);
// The fewest scored steps of a variant in a round for a meaningful percentile: 3 / (1 - p), so that
// three steps lie beyond it and it is not the maximum. 1 for any other metric.
std::int64_t fewest_steps_of(Metric);

// Whether the metric is a duration of a step, such as a mean or percentile.
bool is_step_time(Metric);

// Whether a few steps of a round determine the metric. It is then an estimate without a known error
// rate.
bool is_of_few_steps(Metric);

// Whether the metric only describes the step and is no cost, so that a larger value is no worse.
bool describes_the_step(Metric);

// Whether the metric is a rate: an amount of a step divided by its mean time.
bool is_rate(Metric);

// Why the metric does not exist for models of this kind; empty where it exists.
std::string_view reason_against(Metric, ModelKind);

// Why a program that stepgate does not plan has no such metric; empty where it has.
std::string_view reason_against_in_programs(Metric);

// Whether a baseline stores the metric, so that assertions may say `stored.`. Stored are counts of
// plans, and step times relative to a frozen step. Host times have no such reference, and an mfu
// depends on a peak rate, which no baseline stores.
bool can_be_stored(Metric);

}  // namespace stepgate
