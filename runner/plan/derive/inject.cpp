// SPDX-License-Identifier: MIT
#include "plan/derive/inject.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <utility>
#include <vector>

#include "base/text/diagnostic.h"
#include "kernels/catalogue.h"
#include "kernels/probes/probes.h"
#include "plan/compose/step_builder.h"

namespace stepgate {
namespace {

constexpr std::int64_t extra_allocation_bytes = 1 << 20;
constexpr std::int64_t share_of_the_batch = 8;

void add_spin(StepBuilder& builder, std::chrono::nanoseconds duration) {
  const int word = builder.add({.name = "word of the injected spin",
                                .memory = MemoryKind::device,
                                .purpose = Purpose::staging,
                                .bytes = sizeof(std::uint32_t)});
  builder.launch<kernels::Spin>("injected spin", {}, {builder.whole(word)},
                                {.microseconds = static_cast<double>(duration.count()) / 1000});
}

void add_allocation(StepBuilder& builder) {
  const int buffer = builder.add({.name = "injected allocation",
                                  .memory = MemoryKind::device,
                                  .purpose = Purpose::staging,
                                  .bytes = extra_allocation_bytes,
                                  .allocated_by = AllocatedBy::cuda});
  builder.act("injected cudaMalloc", Allocate{buffer});
  builder.act("injected cudaFree", Release{buffer});
}

void add_copy(StepBuilder& builder) {
  const std::int64_t bytes =
      std::max<std::int64_t>(builder.plan().batch_bytes / share_of_the_batch, 4);
  const int from = builder.add({.name = "source of the injected copy",
                                .memory = MemoryKind::pageable,
                                .purpose = Purpose::staging,
                                .bytes = bytes});
  const int to = builder.add({.name = "target of the injected copy",
                              .memory = MemoryKind::device,
                              .purpose = Purpose::staging,
                              .bytes = bytes});
  builder.act("injected copy", CopyBytes{builder.whole(to), builder.whole(from)});
}

// Whether this kind repeats the operation.
bool repeats(InjectionKind kind, const Operation& operation) {
  if (operation.captured) return false;
  const auto* launch = std::get_if<LaunchKernel>(&operation.action);
  if (kind == InjectionKind::repeated_products)
    return launch && kernel(launch->kernel).library.is_gemm();
  if (kind == InjectionKind::repeated_kernels)
    return launch && !kernel(launch->kernel).library.is_gemm();
  return kind == InjectionKind::repeated_copies &&
         std::holds_alternative<CopyBytes>(operation.action);
}

void repeat(StepPlan& plan, const Injection& injection) {
  const auto rarity = std::max<std::int64_t>(std::llround(1 / injection.share), 1);
  std::vector<Operation> operations;
  std::int64_t repeated = 0;
  for (Operation& operation : plan.operations) {
    operations.push_back(std::move(operation));
    if (!repeats(injection.kind, operations.back())) continue;
    Operation again = operations.back();
    again.name += ", again";
    again.model_share = 0;
    again.reads_gradients = {};
    // A repeated operation that acts every n steps keeps its period.
    if (again.every == 1) {
      again.every = rarity;
      again.turn = repeated++ % rarity;
    }
    operations.push_back(std::move(again));
  }
  plan.operations = std::move(operations);
}

struct InjectionName {
  InjectionKind kind;
  std::string_view name;
};
constexpr std::array injection_names{
    InjectionName{InjectionKind::device_spin, "device_spin"},
    InjectionName{InjectionKind::host_delay, "host_delay"},
    InjectionName{InjectionKind::extra_wait, "extra_wait"},
    InjectionName{InjectionKind::extra_allocation, "extra_allocation"},
    InjectionName{InjectionKind::extra_copy, "extra_copy"},
    InjectionName{InjectionKind::repeated_products, "repeated_products"},
    InjectionName{InjectionKind::repeated_kernels, "repeated_kernels"},
    InjectionName{InjectionKind::repeated_copies, "repeated_copies"},
    InjectionName{InjectionKind::dearer_launches, "dearer_launches"}};

bool is_repetition(InjectionKind kind) {
  return kind == InjectionKind::repeated_products || kind == InjectionKind::repeated_kernels ||
         kind == InjectionKind::repeated_copies;
}

// Reads microseconds, or a share with %. Returns false where the text is neither.
bool read_amount(const std::string& text, Injection& injection) {
  char* end = nullptr;
  const double amount = std::strtod(text.c_str(), &end);
  if (is_repetition(injection.kind)) {
    injection.share = amount / 100;
    return std::string_view(end) == "%" && amount > 0 && amount <= 100;
  }
  injection.duration = std::chrono::nanoseconds(std::llround(1000 * amount));
  return *end == '\0' && amount >= 0 && amount <= 1e6;
}

}  // namespace

std::string_view name_of(InjectionKind kind) {
  return std::ranges::find(injection_names, kind, &InjectionName::kind)->name;
}

void inject(StepPlan& plan, const Injection& injection) {
  if (is_repetition(injection.kind)) return repeat(plan, injection);
  StepBuilder builder(plan);
  builder.enter(Phase::host);
  switch (injection.kind) {
    case InjectionKind::device_spin:
      return add_spin(builder, injection.duration);
    case InjectionKind::host_delay:
      return builder.act("injected delay", HostWork{injection.duration.count()});
    case InjectionKind::extra_wait:
      return builder.act("injected wait", HostWaits{WaitFor::device});
    case InjectionKind::extra_allocation:
      return add_allocation(builder);
    case InjectionKind::extra_copy:
      return add_copy(builder);
    case InjectionKind::dearer_launches:
      plan.launch_host_nanoseconds += injection.duration.count();
      return;
    case InjectionKind::repeated_products:
    case InjectionKind::repeated_kernels:
    case InjectionKind::repeated_copies:
      return;
  }
}

Injection parse_injection(const std::string& text) {
  const std::size_t colon = std::min(text.find(':'), text.size());
  const auto named =
      std::ranges::find(injection_names, text.substr(0, colon), &InjectionName::name);
  if (named != injection_names.end()) {
    Injection injection{.kind = named->kind};
    const bool has_amount = colon != text.size();
    if (has_amount ? read_amount(text.substr(colon + 1), injection)
                   : !is_repetition(injection.kind))
      return injection;
  }
  throw RequestError("nothing can be injected by '" + text + "'",
                     "say extra_wait, extra_allocation, extra_copy, host_delay:<us>, "
                     "device_spin:<us>, dearer_launches:<us>, repeated_products:<share>%, "
                     "repeated_kernels:<share>% or repeated_copies:<share>%");
}

std::string text_of(const Injection& injection) {
  const std::string_view name = name_of(injection.kind);
  if (is_repetition(injection.kind)) return fmt::format("{}:{}%", name, 100 * injection.share);
  if (injection.duration.count() == 0) return std::string(name);
  constexpr double nanoseconds_in_a_microsecond = 1000;
  return fmt::format(
      "{}:{:.3f}", name,
      static_cast<double>(injection.duration.count()) / nanoseconds_in_a_microsecond);
}

}  // namespace stepgate
