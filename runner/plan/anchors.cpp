// SPDX-License-Identifier: MIT
// The table of anchors, and the rough speeds that choose among them.
#include "plan/anchors.h"

#include <algorithm>
#include <array>
#include <set>

#include "plan/access.h"
#include "plan/build_step_plan.h"
#include "plan/rough_speed.h"
#include "support/require.h"
#include "support/units.h"

namespace stepgate {
namespace {

constexpr std::uint64_t anchor_seed = 1;

Knobs product(DType dtype, std::int64_t hidden, std::int64_t layers) {
  Knobs knobs;
  knobs.model = {.kind = ModelKind::mlp, .layers = layers, .hidden = hidden, .dtype = dtype};
  knobs.batch.size = 1024;
  return knobs;
}

// Few samples through large weights, which AdamW then reads and writes with its two moments.
Knobs memory_traffic() {
  Knobs knobs;
  knobs.model = {.kind = ModelKind::mlp, .layers = 2, .hidden = 4096};
  knobs.batch.size = 8;
  knobs.optim.kind = OptimKind::adamw;
  return knobs;
}

Knobs copy(HostMemory from) {
  Knobs knobs;
  knobs.model = {.kind = ModelKind::spin, .kernels = 1, .kernel_us = 1};
  knobs.batch = {.size = 16, .sample_bytes = mebibyte, .tensors = 1};
  knobs.h2d.host = from;
  return knobs;
}

// Kernels so small that the device waits for their launches.
Knobs launches() {
  Knobs knobs;
  knobs.model = {.kind = ModelKind::mlp, .layers = 8, .hidden = 64};
  knobs.batch.size = 8;
  knobs.optim.impl = OptimImpl::per_tensor;
  return knobs;
}

// Seconds by bottleneck.
using Times = std::array<double, 7>;

double& at(Times& times, Bottleneck bottleneck) {
  return times[static_cast<std::size_t>(bottleneck)];
}

constexpr double nanosecond = 1e-9;
constexpr double pinned_bytes_per_second = 50e9;
constexpr double pageable_bytes_per_second = 12e9;
constexpr double host_bytes_per_second = 10e9;  // one thread, memory to memory
constexpr double call_seconds = 2e-6;           // a launch, copy, event or wait
constexpr double graph_node_seconds = 1e-6;
constexpr double allocation_seconds = 50e-6;
constexpr double page_lock_seconds_per_byte = 30e-6 / mebibyte;

Bottleneck products_in(DType dtype) {
  return dtype == DType::fp32   ? Bottleneck::fp32
         : dtype == DType::tf32 ? Bottleneck::tf32
                                : Bottleneck::bf16;
}

// Adds what one operation costs.
struct Add {
  const StepPlan& plan;
  const Operation& operation;
  Times& times;

  double share() const { return 1.0 / static_cast<double>(operation.every); }
  void host(double seconds) const { at(times, Bottleneck::launch) += share() * seconds; }
  const Buffer& buffer(int index) const { return plan.buffers[static_cast<std::size_t>(index)]; }

  void operator()(const LaunchKernel& launch) const {
    const auto [math, memory] = rough_time_of(launch);
    at(times, math > memory ? products_in(launch.dtype) : Bottleneck::hbm) +=
        share() * std::max(math, memory);
    host(operation.captured
             ? graph_node_seconds
             : call_seconds + nanosecond * static_cast<double>(plan.launch_host_nanoseconds));
  }
  void operator()(const CopyBytes& made) const {
    const auto bytes = static_cast<double>(made.to.bytes);
    const bool within = buffer(made.to.buffer).memory == MemoryKind::device &&
                        buffer(made.from.buffer).memory == MemoryKind::device;
    if (within) {
      at(times, Bottleneck::hbm) += share() * 2 * bytes / rough_bytes_per_second;
    } else if (is_pageable(plan, made)) {
      at(times, Bottleneck::h2d_pageable) += share() * bytes / pageable_bytes_per_second;
    } else {
      at(times, Bottleneck::h2d_pinned) += share() * bytes / pinned_bytes_per_second;
    }
    host(call_seconds);
  }
  void operator()(const FillZero& fill) const {
    at(times, Bottleneck::hbm) +=
        share() * static_cast<double>(fill.what.bytes) / rough_bytes_per_second;
    host(call_seconds);
  }
  void operator()(const HostCopies& made) const {
    host(static_cast<double>(made.to.bytes) / host_bytes_per_second);
  }
  void operator()(const Prefetch& prefetch) const {
    at(times, Bottleneck::h2d_pinned) +=
        share() * static_cast<double>(prefetch.what.bytes) / pinned_bytes_per_second;
    host(call_seconds);
  }
  void operator()(const Allocate& allocate) const { allocation(allocate.buffer); }
  void operator()(const Release& release) const { allocation(release.buffer); }
  void allocation(int index) const {
    host(buffer(index).allocated_by == AllocatedBy::cuda ? allocation_seconds : call_seconds);
  }
  void operator()(const PageLock& lock) const { page_lock(lock.buffer); }
  void operator()(const PageUnlock& unlock) const { page_lock(unlock.buffer); }
  void page_lock(int index) const {
    host(page_lock_seconds_per_byte * static_cast<double>(buffer(index).bytes));
  }
  void operator()(const TakeBatch&) const {
    const double wait = nanosecond * static_cast<double>(plan.loader.wait_nanoseconds);
    host(plan.loader.depth > 0 ? wait / static_cast<double>(plan.loader.workers) : wait);
  }
  void operator()(const HostWork& work) const {
    host(nanosecond * static_cast<double>(work.nanoseconds));
  }
  template <class Call>
  void operator()(const Call&) const {
    host(call_seconds);
  }
};

AnchorRow row_for(Bottleneck bottleneck) {
  AnchorRow row = anchor_table()[static_cast<std::size_t>(bottleneck)];
  require(row.bottleneck == bottleneck, "anchors lie in the order of the bottlenecks");
  return row;
}

}  // namespace

std::vector<AnchorRow> anchor_table() {
  return {{Bottleneck::fp32, "gemm_fp32.1", product(DType::fp32, 2048, 2)},
          {Bottleneck::tf32, "gemm_tf32.1", product(DType::tf32, 4096, 2)},
          {Bottleneck::bf16, "gemm_bf16.1", product(DType::bf16, 4096, 4)},
          {Bottleneck::hbm, "hbm.1", memory_traffic()},
          {Bottleneck::h2d_pinned, "h2d_pinned.1", copy(HostMemory::pinned)},
          {Bottleneck::h2d_pageable, "h2d_pageable.1", copy(HostMemory::pageable)},
          {Bottleneck::launch, "launch.1", launches()}};
}

Bottleneck bottleneck_of(const StepPlan& plan) {
  Times times{};
  for (const Operation& operation : plan.operations) {
    std::visit(Add{plan, operation, times}, operation.action);
  }
  return static_cast<Bottleneck>(std::max_element(times.begin(), times.end()) - times.begin());
}

std::string_view anchor_of(const StepPlan& plan) {
  return row_for(bottleneck_of(plan)).name;
}

std::string anchor_variant(std::string_view anchor) {
  return "anchor." + std::string(anchor);
}

StepPlan anchor_plan(const AnchorRow& row) {
  Scenario scenario;
  scenario.name = "anchor";
  scenario.variants.push_back({.name = anchor_variant(row.name), .knobs = row.knobs, .place = {}});
  return build_step_plans(scenario, anchor_seed).front();
}

std::vector<StepPlan> with_anchors(std::vector<StepPlan> plans) {
  std::set<Bottleneck> needed;
  for (const StepPlan& plan : plans) needed.insert(bottleneck_of(plan));
  for (const Bottleneck bottleneck : needed) plans.push_back(anchor_plan(row_for(bottleneck)));
  return plans;
}

}  // namespace stepgate
