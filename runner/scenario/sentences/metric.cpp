// SPDX-License-Identifier: MIT
// The metric table.
#include "scenario/sentences/metric.h"

#include <array>

#include "support/require.h"

namespace stepgate {
namespace {

using enum Evidence;
using enum MetricUnit;

// In the order of the enum, so that a row is found by its number.
constexpr std::array metric_rows{
    MetricRow{Metric::step_ms_mean, "step_ms_mean", timed, seconds, "time of a step, on average"},
    MetricRow{Metric::step_ms_p50, "step_ms_p50", timed, seconds, "median time of a step"},
    MetricRow{Metric::step_ms_p95, "step_ms_p95", timed, seconds,
              "time that 95% of the steps stay within"},
    MetricRow{Metric::step_ms_p99, "step_ms_p99", timed, seconds,
              "time that 99% of the steps stay within"},
    MetricRow{Metric::samples_per_s, "samples_per_s", timed, per_second,
              "samples trained on in a second"},
    MetricRow{Metric::host_us, "host_us", timed, seconds,
              "host time to issue a step, its waits taken out"},
    MetricRow{Metric::host_share, "host_share", timed, ratio, "host_us over the time of a step"},
    MetricRow{Metric::launches_per_step, "launches_per_step", plan, count,
              "kernel launches and graph launches; one call of a library is one launch"},
    MetricRow{Metric::copies_per_step, "copies_per_step", plan, count,
              "copies in either direction"},
    MetricRow{Metric::copy_bytes_per_step, "copy_bytes_per_step", plan, bytes,
              "bytes of those copies"},
    MetricRow{Metric::memset_bytes_per_step, "memset_bytes_per_step", plan, bytes,
              "bytes filled with zeros"},
    MetricRow{Metric::pageable_copies_per_step, "pageable_copies_per_step", exact, count,
              "copies with an end in ordinary host memory"},
    MetricRow{Metric::host_waits_per_step, "host_waits_per_step", exact, count,
              "calls in which the host can block for the device"},
    MetricRow{Metric::device_syncs_per_step, "device_syncs_per_step", exact, count,
              "those that wait for the whole device"},
    MetricRow{Metric::polls_per_step, "polls_per_step", exact, count,
              "waits that spin on an event query instead of blocking"},
    MetricRow{Metric::device_allocs_per_step, "device_allocs_per_step", exact, count,
              "allocations of device memory"},
    MetricRow{Metric::device_frees_per_step, "device_frees_per_step", exact, count,
              "releases of device memory"},
    MetricRow{Metric::pinned_allocs_per_step, "pinned_allocs_per_step", exact, count,
              "times that host memory is pinned"},
    MetricRow{Metric::flops_per_step, "flops_per_step", plan, flops,
              "floating-point operations; a multiply-add counts 2"},
    MetricRow{Metric::peak_live, "peak_live", plan, bytes, "most device memory in use at once"},
    MetricRow{Metric::peak_reserved, "peak_reserved", plan, bytes,
              "most device memory held at once, used or not"},
    MetricRow{Metric::host_pinned, "host_pinned", plan, bytes, "pinned host memory"},
    MetricRow{Metric::need, "need", plan, bytes,
              "most bytes that the buffers' lifetimes have live at once, in blocks of 512"},
    MetricRow{Metric::arena_bytes, "arena_bytes", plan, bytes,
              "one piece of device memory with places planned from the lifetimes"},
    MetricRow{Metric::live_slope, "live_slope", plan, bytes,
              "device memory that a step allocates and never releases"},
    MetricRow{Metric::reserve_overhead, "reserve_overhead", plan, ratio,
              "peak_reserved over peak_live, less 1"},
    MetricRow{Metric::fragmentation_peak, "fragmentation_peak", plan, ratio,
              "share of what is reserved that is not live when the most is"},
    MetricRow{Metric::ooms, "ooms", plan, count,
              "requests that the allocator refuses, over measure.steps steps"},
    MetricRow{Metric::alloc_retries, "alloc_retries", plan, count,
              "times that it gives its cache back for a request, likewise"},
    MetricRow{Metric::live_after_empty_cache, "live_after_empty_cache", plan, bytes,
              "live bytes when the cache is given back after these steps"},
    MetricRow{Metric::sectors_per_request, "sectors_per_request", plan, count,
              "elementwise: most sectors of 32 bytes that a warp touches at once; 4 is all useful "
              "in fp32"},
    MetricRow{Metric::gpu_idle, "gpu_idle", traced, ratio,
              "share of the time in which no kernel, copy or fill runs"},
    MetricRow{Metric::kernel_idle, "kernel_idle", traced, ratio,
              "share of the time in which no kernel runs"},
    MetricRow{Metric::copy_overlap, "copy_overlap", traced, ratio,
              "share of the copy time that kernels hide"},
    MetricRow{Metric::short_kernel_share, "short_kernel_share", traced, ratio,
              "share of kernels shorter than their own launch call"},
    MetricRow{Metric::exposed_copy_us, "exposed_copy_us", traced, seconds,
              "time of a step in which copies run and no kernel does"},
    MetricRow{Metric::host_blocked_us, "host_blocked_us", traced, seconds,
              "time of a step that the host spends in calls that wait for the device"},
    MetricRow{Metric::h2d_gbps, "h2d_gbps", traced, bytes_per_second,
              "speed of the copies to the device"},
    MetricRow{Metric::h2d_share, "h2d_share", traced, ratio,
              "copy time alone over the time of a step without copies"},
    MetricRow{Metric::data_share, "data_share", traced, ratio,
              "loader wait alone over the time of a step without it"},
    MetricRow{Metric::page_faults_per_step, "page_faults_per_step", traced, count,
              "times that the device stops for pages of managed memory"},
    MetricRow{Metric::host_page_faults_per_step, "host_page_faults_per_step", traced, count,
              "times that the host stops for pages of managed memory"},
    MetricRow{Metric::migrated_bytes_per_step, "migrated_bytes_per_step", traced, bytes,
              "bytes of managed memory that move between host and device"},
    MetricRow{Metric::kernel_gbps, "kernel_gbps", traced, bytes_per_second,
              "useful bytes of kernels that memory limits, each input and output once, over their "
              "time"},
};

static_assert([] {
  for (std::size_t i = 0; i < metric_rows.size(); ++i) {
    if (metric_rows[i].metric != static_cast<Metric>(i)) return false;
  }
  return true;
}());

constexpr std::array<std::string_view, 4> not_built_metrics{"tokens_per_s", "comm_overlap",
                                                            "kernel_us", "wire_bytes_per_step"};

}  // namespace

std::span<const MetricRow> metric_table() {
  return metric_rows;
}

const MetricRow& row_of(Metric metric) {
  const auto index = static_cast<std::size_t>(metric);
  require(index < metric_rows.size(), "every metric has a row");
  return metric_rows[index];
}

bool is_step_time(Metric metric) {
  switch (metric) {
    case Metric::step_ms_mean:
    case Metric::step_ms_p50:
    case Metric::step_ms_p95:
    case Metric::step_ms_p99:
    case Metric::samples_per_s:
      return true;
    default:
      return false;
  }
}

bool can_be_stored(Metric metric) {
  return is_step_time(metric) || row_of(metric).evidence <= Evidence::exact;
}

std::optional<Metric> metric_named(std::string_view name) {
  for (const MetricRow& row : metric_rows) {
    if (row.name == name) return row.metric;
  }
  return std::nullopt;
}

std::span<const std::string_view> metrics_not_built() {
  return not_built_metrics;
}

}  // namespace stepgate
