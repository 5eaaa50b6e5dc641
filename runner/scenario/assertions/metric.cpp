// SPDX-License-Identifier: MIT
// The metric table.
#include "scenario/assertions/metric.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "base/require.h"
#include "base/text/enumerators.h"

namespace stepgate {
namespace {

using enum Evidence;
using enum MetricUnit;

constexpr MetricRow row(Metric metric, Evidence evidence, MetricUnit unit, std::string_view meaning,
                        Better better = Better::less) {
  return {.metric = metric,
          .name = enumerators<Metric>[static_cast<std::size_t>(metric)],
          .evidence = evidence,
          .unit = unit,
          .meaning = meaning,
          .better = better};
}

// A row for a ratio that is never above 1.
constexpr MetricRow share(Metric metric, Evidence evidence, std::string_view meaning,
                          Better better = Better::less) {
  MetricRow result = row(metric, evidence, ratio, meaning, better);
  result.most = 1;
  return result;
}

// Rows in the order of the enum, so that a metric is an index.
constexpr std::array metric_rows{
    row(Metric::step_ms_mean, timed, seconds, "time of a step, on average"),
    row(Metric::step_ms_p50, timed, seconds,
        "median time of a step, from one to the next by the device's clock, over all scored steps "
        "of a "
        "round"),
    row(Metric::step_ms_p95, timed, seconds,
        "time that 95% of the steps stay within; a round has 60 steps of a variant for it"),
    row(Metric::step_ms_p99, timed, seconds,
        "time that 99% of the steps stay within; a round has 300 steps of a variant for it"),
    row(Metric::samples_per_s, timed, per_second,
        "samples trained on in a second, by all ranks together", Better::more),
    row(Metric::samples_per_s_per_rank, timed, per_second,
        "samples_per_s over the number of ranks; of n ranks over that of one it is the scaling "
        "efficiency",
        Better::more),
    row(Metric::tokens_per_s, timed, per_second,
        "transformer: tokens trained on in a second, without those of padding", Better::more),
    share(Metric::mfu, timed,
          "mlp, transformer, recommender, resnet, unet: FLOPs that the model needs (GEMMs and "
          "convolutions "
          "of forward and backward, the part of attention that is not masked; nothing that is "
          "computed again) over the mean "
          "time of a step and the GPU's peak rate for `model.dtype`, dense, by its data sheet",
          Better::more),
    row(Metric::host_us, timed, seconds, "host time to issue a step, its waits taken out"),
    share(Metric::host_share, timed, "host_us over the time of a step"),
    row(Metric::host_cpu_us, timed, seconds,
        "processor time of the thread that issues a step; its waits count as far as they spin "
        "(`sync.wait`), those that only keep it from running ahead do not"),
    row(Metric::launches_per_step, plan, count,
        "kernel launches and graph launches; one call of a library is one launch"),
    row(Metric::copies_per_step, plan, count, "copies in either direction"),
    row(Metric::copy_bytes_per_step, plan, bytes, "bytes of those copies"),
    row(Metric::memset_bytes_per_step, plan, bytes, "bytes filled with zeros"),
    row(Metric::pageable_copies_per_step, exact, count,
        "copies with an end in ordinary host memory"),
    row(Metric::host_waits_per_step, exact, count,
        "calls in which the host can block for the device"),
    row(Metric::device_syncs_per_step, exact, count, "those that wait for the whole device"),
    row(Metric::polls_per_step, exact, count,
        "waits that spin on an event query instead of blocking"),
    row(Metric::device_allocs_per_step, exact, count, "allocations of device memory"),
    row(Metric::device_frees_per_step, exact, count, "releases of device memory"),
    row(Metric::pinned_allocs_per_step, exact, count, "times that host memory is pinned"),
    row(Metric::flops_per_step, plan, flops, "floating-point operations; a multiply-add counts 2"),
    row(Metric::peak_live, plan, bytes, "most device memory in use at once"),
    row(Metric::peak_reserved, plan, bytes, "most device memory held at once, used or not"),
    row(Metric::host_pinned, plan, bytes, "pinned host memory"),
    row(Metric::need, plan, bytes,
        "most bytes that the buffers' lifetimes have live at once, in blocks of 512"),
    row(Metric::arena_bytes, plan, bytes,
        "one piece of device memory with places planned from the lifetimes"),
    row(Metric::live_slope, plan, bytes, "device memory that a step allocates and never releases"),
    row(Metric::reserve_overhead, plan, ratio, "peak_reserved over peak_live, less 1"),
    share(Metric::fragmentation_peak, plan,
          "share of what is reserved that is not live when the most is"),
    row(Metric::ooms, plan, count, "requests that the allocator refuses, over measure.steps steps"),
    row(Metric::alloc_retries, plan, count,
        "times that it gives its cache back for a request, likewise"),
    row(Metric::live_after_empty_cache, plan, bytes,
        "live bytes when the cache is given back after these steps"),
    row(Metric::sectors_per_request, plan, count,
        "elementwise: most sectors of 32 bytes that a warp touches at once; 4 is all useful "
        "in fp32"),
    row(Metric::memory_cap, plan, bytes, "device memory that a step may pass; 0 where nobody says",
        Better::neither),
    row(Metric::requests_per_step, plan, count,
        "blocks of device memory that a step asks for, whoever serves them"),
    row(Metric::streams, plan, count, "streams that a step's operations are in", Better::neither),
    row(Metric::advised_bytes, plan, bytes, "managed memory that the driver is told how to treat",
        Better::neither),
    row(Metric::loader_threads, plan, count,
        "threads that make batches ahead of the step; 0 where it makes them itself",
        Better::neither),
    row(Metric::spinning_waits_per_step, plan, count,
        "host waits that ask again and again and leave the processor to nobody", Better::neither),
    row(Metric::pool_returns_per_step, plan, count,
        "waits for a stream, an event or the device at which an async pool holds more than "
        "`alloc.keep` and gives it back; a copy that blocks is none",
        Better::neither),
    share(Metric::gpu_idle, traced, "share of the time in which no kernel, copy or fill runs"),
    share(Metric::kernel_idle, traced, "share of the time in which no kernel runs"),
    share(Metric::copy_overlap, traced, "share of the copy time that kernels hide", Better::more),
    share(Metric::short_kernel_share, traced,
          "share of kernels shorter than their own launch call"),
    row(Metric::exposed_copy_us, traced, seconds,
        "time of a step in which copies run and no kernel does"),
    row(Metric::host_blocked_us, traced, seconds,
        "time of a step that the host spends in calls that wait for the device"),
    row(Metric::h2d_gbps, traced, bytes_per_second, "speed of the copies to the device",
        Better::more),
    row(Metric::h2d_share, traced, ratio, "copy time alone over the time of a step without copies"),
    row(Metric::data_share, traced, ratio, "loader wait alone over the time of a step without it"),
    row(Metric::page_faults_per_step, traced, count,
        "times that the device stops for pages of managed memory"),
    row(Metric::host_page_faults_per_step, traced, count,
        "times that the host stops for pages of managed memory"),
    row(Metric::migrated_bytes_per_step, traced, bytes,
        "bytes of managed memory that move between host and device"),
    row(Metric::kernel_gbps, traced, bytes_per_second,
        "useful bytes of kernels that memory limits, each input and output once, over their "
        "time",
        Better::more),
    row(Metric::data_wait_us, traced, seconds,
        "time of a step that the host spends getting a batch from its loader"),
    row(Metric::h2d_us, traced, seconds,
        "time of a step in which work of its transfer to the device runs, beside others or not"),
    row(Metric::forward_us, traced, seconds,
        "the same of its forward pass: kernels, copies and fills, without pauses between them"),
    row(Metric::backward_us, traced, seconds,
        "the same of its backward pass, what is computed again included"),
    row(Metric::optimizer_us, traced, seconds, "the same of its optimizer"),
    row(Metric::kernel_us, traced, seconds,
        "time of a step that launches of one kernel take together, named as in "
        "`fix.kernel_us(matmul)`; `stepgate plan` lists a step's kernels"),
    row(Metric::bound, traced, bound_class,
        "`fix.bound == copy`: which of `data` (the device idles for a batch), `copy` (copies run "
        "and no kernel does), `communication` (collectives do) and `host` (it idles for launches, "
        "or after a wait for it) takes the most of a step, and 20 % of it or more; `compute` "
        "where none does",
        Better::neither),
    row(Metric::loader_starts_per_step, plan, count,
        "threads that start to make batches; of a loader with `loader.restart_every`"),
    row(Metric::driver_used, traced, bytes,
        "device memory that the step has taken and not returned when its last traced step has "
        "ended, "
        "by the driver's report of what is free"),
    row(Metric::all_reduces_per_step, exact, count, "all-reduces that a rank takes part in"),
    row(Metric::reduce_scatters_per_step, exact, count, "reduce-scatters, likewise"),
    row(Metric::all_gathers_per_step, exact, count, "all-gathers, likewise"),
    row(Metric::broadcasts_per_step, exact, count, "broadcasts, likewise"),
    row(Metric::payload_bytes_per_step, exact, bytes,
        "bytes of the whole tensors that these reduce, gather or broadcast, as nccl-tests counts "
        "them"),
    row(Metric::collectives_per_step, plan, count, "all of them"),
    row(Metric::wire_bytes_per_step, plan, bytes,
        "bytes that a rank sends where they go round a ring: of n ranks (n-1)/n of a payload, of "
        "an "
        "all-reduce twice that"),
    row(Metric::unbucketed_per_step, plan, count,
        "reductions of more than 64 B and less than 1 MiB, less one, which the last bucket may be"),
    row(Metric::late_collectives_per_step, plan, count,
        "reductions of gradients that are issued after the backward pass's last kernel; 1 is the "
        "least"),
    row(Metric::early_comm_waits_per_step, plan, count,
        "waits of the backward pass for a reduction of its gradients"),
    row(Metric::state_bytes, plan, bytes,
        "device memory for weights, gradients and the optimizer's state, of one rank"),
    row(Metric::comm_us, traced, seconds,
        "time of a step in which collectives run or wait for a rank"),
    row(Metric::exposed_comm_us, traced, seconds,
        "time of a step in which they do and no kernel runs"),
    share(Metric::comm_overlap, traced, "share of comm_us that kernels hide", Better::more),
    row(Metric::comm_stretch, traced, ratio,
        "time of kernels wholly under a collective over that of launches of the same kernel and "
        "shape beside none"),
    row(Metric::bus_gbps, traced, bytes_per_second,
        "bytes that the rank sends where they go round a ring, over the time from when its last "
        "rank has come to a collective to its end",
        Better::more),
    row(Metric::skew_us, traced, seconds,
        "time from when the first rank has come to a collective to when the last one has; the "
        "longest of a step"),
    row(Metric::last_rank, traced, count,
        "the rank that comes last to the most collectives, counted from 0", Better::neither),
    row(Metric::blocking_comm_us, traced, seconds,
        "time of a step in which nothing runs on the compute stream and its next operation waits "
        "for a collective that runs"),
    row(Metric::step_ms_max, timed, seconds,
        "longest step of a round; more steps have a longer one"),
    share(Metric::slow_step_share, timed,
          "share of a round's steps that take more than twice as long as their median"),
    row(Metric::steps_per_s, timed, per_second, "steps in a second", Better::more),
    row(Metric::cycles_per_load, traced, count,
        "chase: cycles of the multiprocessors' clock from one load to the next"),
};

static_assert([] {
  for (std::size_t i = 0; i < metric_rows.size(); ++i) {
    if (metric_rows[i].metric != static_cast<Metric>(i)) return false;
  }
  return true;
}());

}  // namespace

std::string_view name_of(Evidence evidence) {
  return enumerators<Evidence>[static_cast<std::size_t>(evidence)];
}

std::string_view name_of(BoundClass bound) {
  return enumerators<BoundClass>[static_cast<std::size_t>(bound)];
}

std::span<const MetricRow> metric_table() {
  return metric_rows;
}

const MetricRow& row_of(Metric metric) {
  const auto index = static_cast<std::size_t>(metric);
  require(index < metric_rows.size(), "every metric has a row");
  return metric_rows[index];
}

std::optional<double> percentile_of(Metric metric) {
  switch (metric) {
    case Metric::step_ms_p50:
      return 0.50;
    case Metric::step_ms_p95:
      return 0.95;
    case Metric::step_ms_p99:
      return 0.99;
    default:
      return std::nullopt;
  }
}

std::int64_t fewest_steps_of(Metric metric) {
  constexpr double beyond = 3;
  const auto percentile = percentile_of(metric);
  return percentile ? std::llround(beyond / (1 - *percentile)) : 1;
}

bool is_step_time(Metric metric) {
  return metric == Metric::step_ms_mean || percentile_of(metric) || is_rate(metric);
}

bool is_of_few_steps(Metric metric) {
  return metric == Metric::step_ms_max || metric == Metric::slow_step_share;
}

bool describes_the_step(Metric metric) {
  return row_of(metric).better == Better::neither;
}

bool is_rate(Metric metric) {
  return metric == Metric::samples_per_s || metric == Metric::samples_per_s_per_rank ||
         metric == Metric::tokens_per_s || metric == Metric::mfu || metric == Metric::steps_per_s;
}

std::string_view reason_against(Metric metric, ModelKind model) {
  if (metric == Metric::tokens_per_s && model != ModelKind::transformer)
    return "its samples are no sequences of tokens";
  if (metric == Metric::mfu && !learns(model)) return "it computes no GEMMs";
  if (metric == Metric::cycles_per_load && model != ModelKind::chase)
    return "none of its loads waits for the one before";
  return {};
}

std::string_view reason_against_in_programs(Metric metric) {
  using enum Metric;
  constexpr std::array known{launches_per_step,     copies_per_step,
                             copy_bytes_per_step,   pageable_copies_per_step,
                             host_waits_per_step,   device_syncs_per_step,
                             polls_per_step,        device_allocs_per_step,
                             device_frees_per_step, pinned_allocs_per_step,
                             collectives_per_step,  peak_live,
                             step_ms_mean,          steps_per_s};
  if (std::ranges::find(known, metric) != known.end()) return {};
  if (row_of(metric).evidence == traced)
    return "programs are counted, and their timeline is not traced";
  if (row_of(metric).evidence == timed)
    return "programs are held between steps, and only whole runs are timed";
  return "a program has no plan that could say";
}

bool can_be_stored(Metric metric) {
  if (metric == Metric::mfu) return false;
  return is_step_time(metric) || row_of(metric).evidence <= Evidence::exact;
}

std::optional<Metric> metric_named(std::string_view name) {
  for (const MetricRow& row : metric_rows) {
    if (row.name == name) return row.metric;
  }
  return std::nullopt;
}

}  // namespace stepgate
