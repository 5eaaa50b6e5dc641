// SPDX-License-Identifier: MIT
#include "plan/inject.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "kernels/spin/spin.h"
#include "plan/step_builder.h"
#include "support/diagnostic.h"

namespace stepgate {
namespace {

constexpr std::int64_t extra_allocation_bytes = 1 << 20;
constexpr std::int64_t share_of_the_batch = 8;

void add_spin(StepBuilder& builder, std::chrono::nanoseconds duration) {
  const int word = builder.add({.name = "word of the injected spin",
                                .memory = MemoryKind::device,
                                .purpose = Purpose::staging,
                                .bytes = sizeof(std::uint32_t)});
  KernelScalars scalars{};
  scalars[spin_scalar::microseconds] = static_cast<double>(duration.count()) / 1000;
  builder.launch("injected spin", "spin", {}, {builder.whole(word)}, scalars);
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

}  // namespace

std::string_view name_of(InjectionKind kind) {
  switch (kind) {
    case InjectionKind::device_spin:
      return "device_spin";
    case InjectionKind::host_delay:
      return "host_delay";
    case InjectionKind::extra_wait:
      return "extra_wait";
    case InjectionKind::extra_allocation:
      return "extra_allocation";
    case InjectionKind::extra_copy:
      return "extra_copy";
  }
  return {};
}

void inject(StepPlan& plan, InjectionKind kind, std::chrono::nanoseconds duration) {
  StepBuilder builder(plan);
  builder.enter(Phase::host);
  switch (kind) {
    case InjectionKind::device_spin:
      return add_spin(builder, duration);
    case InjectionKind::host_delay:
      return builder.act("injected delay", HostWork{duration.count()});
    case InjectionKind::extra_wait:
      return builder.act("injected wait", HostWaits{WaitFor::device});
    case InjectionKind::extra_allocation:
      return add_allocation(builder);
    case InjectionKind::extra_copy:
      return add_copy(builder);
  }
}

Injection parse_injection(const std::string& text) {
  using enum InjectionKind;
  const std::size_t colon = text.find(':');
  for (const InjectionKind kind :
       {device_spin, host_delay, extra_wait, extra_allocation, extra_copy}) {
    if (name_of(kind) != text.substr(0, colon)) continue;
    Injection injection{.kind = kind};
    if (colon == std::string::npos) return injection;
    char* end = nullptr;
    const double microseconds = std::strtod(text.c_str() + colon + 1, &end);
    if (*end != '\0' || !(microseconds >= 0) || microseconds > 1e6) break;
    injection.duration = std::chrono::nanoseconds(std::llround(1000 * microseconds));
    return injection;
  }
  throw RequestError("nothing can be injected by '" + text + "'",
                     "say extra_wait, extra_allocation, extra_copy, host_delay:<us> or "
                     "device_spin:<us>");
}

}  // namespace stepgate
