// SPDX-License-Identifier: MIT
#include "device/planned_memory.h"

#include <algorithm>

#include "plan/counted_metrics.h"

namespace stepgate {
namespace {

std::int64_t counted_bytes(const StepPlan& plan, Metric metric) {
  return static_cast<std::int64_t>(counted(plan, metric).value());
}

}  // namespace

MemoryUse planned_memory(const StepPlan& plan) {
  MemoryUse use;
  std::array<std::int64_t, purpose_count> live{};
  const auto take = [&](const Buffer& buffer, std::int64_t bytes) {
    const auto purpose = static_cast<std::size_t>(buffer.purpose);
    live[purpose] += bytes;
    use.allocated_bytes[purpose] = std::max(use.allocated_bytes[purpose], live[purpose]);
  };
  for (const Buffer& buffer : plan.buffers) {
    const bool stays = buffer.allocated_by == AllocatedBy::the_plan;
    if (takes_device_memory(buffer.memory) && stays) take(buffer, buffer.bytes * buffer.slots);
  }
  for (const Operation& operation : plan.operations) {
    if (const auto* allocate = std::get_if<Allocate>(&operation.action)) {
      const Buffer& buffer = plan.buffers[static_cast<std::size_t>(allocate->buffer)];
      take(buffer, buffer.bytes);
    } else if (const auto* release = std::get_if<Release>(&operation.action)) {
      const Buffer& buffer = plan.buffers[static_cast<std::size_t>(release->buffer)];
      take(buffer, -buffer.bytes);
    }
  }
  use.peak_allocated_bytes = counted_bytes(plan, Metric::peak_live);
  use.peak_reserved_bytes = use.peak_allocated_bytes;
  use.pinned_bytes = counted_bytes(plan, Metric::host_pinned);
  return use;
}

}  // namespace stepgate
