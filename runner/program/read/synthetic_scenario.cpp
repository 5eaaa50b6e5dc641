// SPDX-License-Identifier: MIT
#include "program/read/synthetic_scenario.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "base/text/diagnostic.h"
#include "base/text/units.h"

namespace stepgate {
namespace {

// Kernels of a step besides those that spin: one that reads the batch, one that reports the loss.
constexpr double launches_besides = 2;
// Approximate times of an H200 and its host, in microseconds. The tolerance of the assertion leaves
// room for those of other machines.
constexpr double kernels_besides_us = 4;
constexpr double begin_after_wait_us = 10;  // from the end of a wait to the first work
constexpr double call_us = 3;               // of the host, for a launch or a copy
constexpr double longest_kernel_us = 1e6;
constexpr double most_kernels = 10'000;
constexpr double most_waits = 1000;
constexpr double most_tensors = 1000;
constexpr double most_bytes = 1 << 30;
constexpr double most_steps_between = 1e6;
constexpr double longest_host_us = 1e7;
constexpr double idle_that_counts = 0.05;  // of a step

double count_of(const CountedProcess& process, CallCount count) {
  return process.mean[static_cast<std::size_t>(count)];
}

bool is_whole(double value) {
  return std::abs(value - std::round(value)) < 1e-9;
}

// The knobs of the step, and what it counts.
struct SyntheticStep {
  double kernels = 0, kernel_us = 0;
  double tensors = 0, bytes_to_device = 0;
  bool pageable = false, overlaps = false;
  double waits = 0, waits_every = 1;
  std::string_view how = "stream";
  bool reads_loss = false;  // by the log, besides the waits
  double host_us = 0;
  std::map<Metric, double> counts;
};

void choose_copies(const CountedProcess& trace, SyntheticStep& step) {
  step.tensors = std::min(std::round(count_of(trace, CallCount::copies_to_device)), most_tensors);
  const double read_back = 4 * std::round(count_of(trace, CallCount::copies_to_host));
  const double bytes = count_of(trace, CallCount::copy_bytes) - read_back;
  step.bytes_to_device =
      step.tensors == 0 ? 0 : std::clamp(4 * std::round(bytes / 4), 4 * step.tensors, most_bytes);
  step.pageable = step.tensors > 0 && count_of(trace, CallCount::pageable_copies) > 0;
}

// The call that most of the waits are.
std::string_view most_used_call(const CountedProcess& trace) {
  std::string_view how = "stream";
  for (const CountedPlace& place : trace.places) {
    if (place.count != CallCount::waits) continue;
    if (place.call.find("Event") != std::string::npos) how = "event";
    break;
  }
  const double waits = count_of(trace, CallCount::waits);
  return 2 * count_of(trace, CallCount::device_waits) > waits ? "device" : how;
}

void choose_waits(const CountedProcess& trace, SyntheticStep& step) {
  const double waits = count_of(trace, CallCount::waits);
  const double read_back = std::round(count_of(trace, CallCount::copies_to_host));
  step.how = most_used_call(trace);
  if (waits > 0 && waits < 1) {
    step.waits_every = std::min(std::round(1 / waits), most_steps_between);
    step.waits = 1;
    if (std::abs(count_of(trace, CallCount::copies_to_host) - waits) < 1e-9) step.how = "item";
    return;
  }
  step.waits = std::min(std::round(waits), most_waits);
  if (read_back > 0 && read_back == step.waits) {
    step.how = "item";
  } else if (read_back == 1 && step.waits > 1) {
    step.reads_loss = true;
    step.waits -= 1;
  }
}

void choose_times(const TracedStep& time, SyntheticStep& step) {
  const TimeBreakdown& parts = time.time;
  const double busy_us = 1e6 * (parts.math + parts.memory + parts.latency + parts.communication);
  const double step_us = 1e6 * parts.step;
  const double idle_us = step_us - busy_us - 1e6 * parts.copies;
  step.kernel_us =
      std::clamp(std::round((busy_us - kernels_besides_us) / step.kernels), 1.0, longest_kernel_us);
  const bool waits_each_step = step.waits_every == 1 && (step.waits > 0 || step.reads_loss);
  if (waits_each_step || step.pageable) {
    step.host_us = std::max(0.0, idle_us - begin_after_wait_us);
  } else if (idle_us > idle_that_counts * step_us) {
    const double calls = step.kernels + launches_besides + step.tensors;
    step.host_us = std::max(0.0, step_us - call_us * calls);
  }
  step.host_us = std::min(step.host_us, longest_host_us);
}

void count(SyntheticStep& step) {
  const double waits = step.waits / step.waits_every;
  const double read_back = (step.how == "item" ? waits : 0) + (step.reads_loss ? 1 : 0);
  step.counts = {{Metric::launches_per_step, step.kernels + launches_besides},
                 {Metric::host_waits_per_step,
                  waits + (step.reads_loss ? 1 : 0) + (step.pageable ? step.tensors : 0)},
                 {Metric::device_syncs_per_step, step.how == "device" ? waits : 0},
                 {Metric::copies_per_step, step.tensors + read_back},
                 {Metric::copy_bytes_per_step, step.bytes_to_device + 4 * read_back},
                 {Metric::pageable_copies_per_step, step.pageable ? step.tensors : 0},
                 {Metric::device_allocs_per_step, 0},
                 {Metric::device_frees_per_step, 0},
                 {Metric::pinned_allocs_per_step, 0}};
}

SyntheticStep step_of(const CountedProcess& trace, const TracedStep& time) {
  SyntheticStep step;
  step.kernels = std::round(count_of(trace, CallCount::launches)) - launches_besides;
  if (step.kernels < 1 || step.kernels > most_kernels) {
    throw RequestError(
        fmt::format("{} launches {:g} kernels a step, and a synthetic step has {:g} to {:g}",
                    trace.program, count_of(trace, CallCount::launches), launches_besides + 1,
                    launches_besides + most_kernels),
        "name steps that are longer or shorter, by --step-range or --step-kernel");
  }
  choose_copies(trace, step);
  choose_waits(trace, step);
  choose_times(time, step);
  count(step);
  return step;
}

std::string name_in_file(Metric metric) {
  return std::string(row_of(metric).name);
}

std::string counts_in_words(const CountedProcess& trace, const SyntheticStep& step) {
  std::string asserted, others;
  for (const auto& [metric, has] : step.counts) {
    const auto wanted = value_of(trace.mean, metric);
    if (!wanted || trace.unknown.contains(metric)) {
      others += fmt::format("#   {}: the trace does not tell it\n", name_in_file(metric));
      continue;
    }
    const bool same = std::abs(*wanted - has) <= 1e-9 * std::max(1.0, *wanted);
    const bool is_bytes = row_of(metric).unit == MetricUnit::bytes;
    if (!same) {
      others += fmt::format("#   {} {:g}, here {:g}\n", name_in_file(metric), *wanted, has);
    } else if (is_whole(has)) {
      const std::string value =
          is_bytes ? fmt::format("{:.0f} B", has) : fmt::format("{:.0f}", has);
      asserted += fmt::format("{0} = \"trace.{0} == {1}\"\n", name_in_file(metric), value);
    } else {
      asserted +=
          fmt::format("{0} = \"trace.{0} ~= {1:g} within 0.1%\"\n", name_in_file(metric), has);
    }
  }
  if (!others.empty()) others = "# Counts of the trace that no knob makes:\n" + others;
  return others + asserted;
}

}  // namespace

std::string synthetic_scenario(const CountedProcess& trace, const TracedStep& time) {
  if (!trace.problem.empty() || time.time.step <= 0) {
    throw RequestError(
        fmt::format("no scenario is made of {}: {}", trace.program,
                    trace.problem.empty() ? "no kernel ran in the counted steps" : trace.problem),
        "record whole steps");
  }
  const SyntheticStep step = step_of(trace, time);
  std::string source;
  for (const char letter : trace.program) {
    const bool is_plain = letter >= ' ' && letter <= '~' && letter != '"' && letter != '\\';
    if (is_plain) source += letter;
  }
  std::string text = fmt::format(
      "claim  = \"A step does as much, and takes as long, as those of {0}\"\n"
      "source = \"stepgate read --as-scenario, of {1} steps\"\n"
      "tags   = [\"recorded\"]\n\n"
      "[model]\nkind      = \"spin\"\nkernels   = {2:.0f}\nkernel_us = {3:.0f}\n\n"
      "[batch]\nsize = 1\n",
      source, trace.steps, step.kernels, step.kernel_us);
  if (step.tensors > 0) {
    text += fmt::format(
        "sample_bytes = \"{:.0f} B\"\ntensors      = {:.0f}\n\n[transfer]\nhost = "
        "\"{}\"\n",
        step.bytes_to_device, step.tensors, step.pageable ? "pageable" : "pinned");
  } else {
    text += "\n[transfer]\nhost = \"resident\"\n";
  }
  if (step.waits > 0) {
    text += fmt::format("\n[sync]\nwhere = \"step\"\nhow   = \"{}\"\n", step.how);
    if (step.waits > 1) text += fmt::format("times = {:.0f}\n", step.waits);
    if (step.waits_every > 1) text += fmt::format("every = {:.0f}\n", step.waits_every);
  }
  if (step.reads_loss) text += "\n[log]\nevery = 1\nvia   = \"item\"\n";
  if (step.host_us >= 1) text += fmt::format("\n[host]\nstep_us = {:.0f}\n", step.host_us);
  return text + "\n[variant.trace]\n\n[expect]\n" + counts_in_words(trace, step) +
         fmt::format("step_time = \"trace.step_ms_mean ~= {:.6g} us within 10%\"\n",
                     1e6 * time.time.step);
}

}  // namespace stepgate
