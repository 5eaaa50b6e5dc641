// SPDX-License-Identifier: MIT
#include "report/text/print_plan.h"

#include <fmt/format.h>
#include <fmt/ostream.h>

#include <algorithm>
#include <map>
#include <ostream>

#include "base/text/units.h"
#include "kernels/catalogue.h"
#include "plan/compose/step_names.h"

namespace stepgate {
namespace {

std::string amount(double flops) {
  constexpr std::pair<double, const char*> scales[] = {
      {1e12, "Tflop"}, {1e9, "Gflop"}, {1e6, "Mflop"}};
  for (const auto& [scale, name] : scales) {
    if (flops >= scale) return fmt::format("{:.3g} {}", flops / scale, name);
  }
  return fmt::format("{:.0f} flop", flops);
}

// The name of a buffer's allocator in the description of an operation.
std::string_view name_of_allocator(AllocatedBy allocator) {
  switch (allocator) {
    case AllocatedBy::cuda:
      return "cudaMalloc";
    case AllocatedBy::cuda_async:
      return "the async pool";
    case AllocatedBy::step_allocator:
      return "the step's allocator";
    case AllocatedBy::the_plan:
      break;
  }
  return "nobody";
}

struct Effect {
  const StepPlan& plan;
  const OperationFacts& facts;

  const Buffer& buffer(int index) const { return plan.buffers[static_cast<std::size_t>(index)]; }
  const std::string& event(int index) const {
    return plan.events[static_cast<std::size_t>(index)].name;
  }

  std::string operator()(const LaunchKernel& launch) const {
    const Kernel& launched = kernel(launch.kernel);
    if (const auto told = launched.cost.delay_microseconds)
      return fmt::format("{} {} us", launch.kernel.name(), told(launch.attributes));
    const KernelWork& work = facts.work;
    const auto& with = launched.replacement;
    return fmt::format(
        "{}{}, {}, {}", launch.kernel.name(),
        with ? fmt::format(" by {}:{}{}", with->library, with->function,
                           with->otherwise == Otherwise::ours ? " or ours" : "")
             : "",
        amount(static_cast<double>(work.flops)),
        rounded_bytes_text(static_cast<double>(work.bytes_read + work.bytes_written)));
  }
  std::string operator()(const CopyBytes& copy) const {
    const Buffer& from = buffer(copy.from.buffer);
    const Buffer& to = buffer(copy.to.buffer);
    return fmt::format("{} {} -> {} ({} -> {}){}",
                       rounded_bytes_text(static_cast<double>(copy.to.bytes)), from.name, to.name,
                       name_of(from.memory), name_of(to.memory),
                       facts.tally.host_waits > 0 ? ", the host waits" : "");
  }
  std::string operator()(const FillZero& fill) const {
    return fmt::format("zero {}", rounded_bytes_text(static_cast<double>(fill.what.bytes)));
  }
  std::string operator()(const HostCopies& copy) const {
    return fmt::format("{} {} -> {} by the host",
                       rounded_bytes_text(static_cast<double>(copy.to.bytes)),
                       buffer(copy.from.buffer).name, buffer(copy.to.buffer).name);
  }
  std::string operator()(const Prefetch& prefetch) const {
    return fmt::format("{} of pages to the device",
                       rounded_bytes_text(static_cast<double>(prefetch.what.bytes)));
  }
  std::string operator()(const Allocate& allocate) const {
    const std::string what = allocation(allocate.buffer);
    return allocate.steps == 1 ? what : fmt::format("{}, for {} steps", what, allocate.steps);
  }
  std::string operator()(const Release& release) const {
    const bool waits = buffer(release.buffer).allocated_by == AllocatedBy::cuda;
    return allocation(release.buffer) + (waits ? ", the host waits" : "");
  }
  std::string allocation(int index) const {
    return fmt::format("{} by {}", rounded_bytes_text(static_cast<double>(buffer(index).bytes)),
                       name_of_allocator(buffer(index).allocated_by));
  }
  std::string operator()(const EmptyCache&) const {
    return "the allocator's free memory goes back";
  }
  std::string operator()(const RegisterHost& lock) const {
    return rounded_bytes_text(static_cast<double>(buffer(lock.buffer).bytes));
  }
  std::string operator()(const UnregisterHost& unlock) const {
    return rounded_bytes_text(static_cast<double>(buffer(unlock.buffer).bytes)) +
           ", the host waits";
  }
  std::string operator()(const RecordEvent& record) const {
    return fmt::format("record '{}'", event(record.event));
  }
  std::string operator()(const StreamWaitsEvent& waits) const {
    return fmt::format("the stream waits for '{}'", event(waits.event));
  }
  std::string operator()(const HostWaits& waits) const {
    return waits.what == WaitFor::poll ? "the host polls" : "the host waits";
  }
  std::string operator()(const TakeBatch&) const {
    const LoaderKnobs& loader = plan.loader;
    const std::string cost = seconds_text(loader.wait_us * 1e-6);
    const char* kind = loader.busy ? "busy " : "";
    if (loader.depth == 0) return fmt::format("{} {}inline", cost, kind);
    std::string words = fmt::format("{} each, {} ahead, {} {}worker{}", cost, loader.depth,
                                    loader.workers, kind, loader.workers == 1 ? "" : "s");
    if (loader.restart_every > 0)
      words += fmt::format(", started anew every {} batches", loader.restart_every);
    return words;
  }
  std::string operator()(const HostWork& work) const {
    return fmt::format("{} of busy host{}",
                       seconds_text(static_cast<double>(work.nanoseconds) * 1e-9),
                       work.rank ? fmt::format(" of rank {}", *work.rank) : "");
  }
  std::string operator()(const Collective& collective) const {
    return fmt::format("{} {} of {} ranks", name_of(collective.kind),
                       rounded_bytes_text(static_cast<double>(payload_bytes(collective))),
                       plan.ranks.count);
  }
};

std::string occasion(const Operation& operation) {
  std::string text;
  if (operation.ahead != 0) {
    const int distance = std::abs(operation.ahead);
    text += fmt::format("  [{} step{} {}]", distance, distance == 1 ? "" : "s",
                        operation.ahead > 0 ? "ahead" : "late");
  }
  if (operation.turn != 0) {
    text += fmt::format("  [step {} of {}]", operation.turn, operation.every);
  } else if (operation.every != 1) {
    text += fmt::format("  [every {} steps]", operation.every);
  }
  double kept = 0;
  for (const BufferUse& use : operation.keeps) kept += static_cast<double>(use.bytes);
  if (kept > 0) text += fmt::format("  [keeps {} besides]", rounded_bytes_text(kept));
  return text;
}

void print_operations(std::ostream& out, const PlannedStep& step) {
  const StepPlan& plan = step;
  std::size_t width = 0;
  for (const Operation& operation : plan.operations) width = std::max(width, operation.name.size());
  const Operation* before = nullptr;
  for (std::size_t index = 0; index < plan.operations.size(); ++index) {
    const Operation& operation = plan.operations[index];
    const bool same_phase = before && before->phase == operation.phase;
    const bool captured_before = before && before->captured;
    if (operation.captured && !captured_before) fmt::print(out, "  -- graph: one launch\n");
    if (!operation.captured && captured_before) fmt::print(out, "  -- end of the graph\n");
    const std::string effect =
        visit_action(Effect{plan, step.facts().operations[index]}, operation.action);
    fmt::print(out, "  {:<10} {:<8} {:<{}}  {}{}\n", same_phase ? "" : name_of(operation.phase),
               stream_at(plan, operation.stream).name, operation.name, width, effect,
               occasion(operation));
    before = &operation;
  }
}

void print_buffers(std::ostream& out, const StepPlan& plan) {
  std::map<std::pair<MemoryKind, Purpose>, double> totals;
  for (const Buffer& buffer : plan.buffers) {
    totals[{buffer.memory, buffer.purpose}] += static_cast<double>(buffer.bytes * buffer.slots);
  }
  for (const auto& [key, bytes] : totals) {
    fmt::print(out, "  {:<10} {:<16} {:>10}\n", name_of(key.first), name_of(key.second),
               rounded_bytes_text(bytes));
  }
}

std::string value_text(double value, MetricUnit unit) {
  if (unit == MetricUnit::bytes) return rounded_bytes_text(value);
  if (unit == MetricUnit::flops) return amount(value);
  return fmt::format("{:.6g}", value);
}

void print_counts(std::ostream& out, const PlanFacts& facts) {
  for (const MetricRow& row : metric_table()) {
    const auto found = facts.counts.find(row.metric);
    if (found == facts.counts.end()) continue;
    fmt::print(out, "  {:<26} {:>10}\n", row.name, value_text(found->second, row.unit));
  }
}

}  // namespace

void print_plan(std::ostream& out, const PlannedStep& step) {
  const StepPlan& plan = step;
  const bool turns = plan.batch_sizes.size() > 1;
  fmt::print(out, "{}, variant {}: {} samples a step{}, {} {} batch\n\n", plan.scenario,
             plan.variant, fmt::join(plan.batch_sizes, ", "), turns ? " in turns" : "",
             rounded_bytes_text(static_cast<double>(plan.batch_bytes)),
             turns ? "the largest" : "a");
  fmt::print(out, "one step, as the host issues it; the host runs at most {} steps ahead\n",
             plan.steps_in_flight);
  print_operations(out, step);
  fmt::print(out, "\nbuffers\n");
  print_buffers(out, plan);
  fmt::print(out, "\ncounted, on average a step\n");
  print_counts(out, step.facts());
}

}  // namespace stepgate
