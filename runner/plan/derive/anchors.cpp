// SPDX-License-Identifier: MIT
// The table of anchors. bottleneck.cpp chooses the anchor of a step.
#include "plan/derive/anchors.h"

#include <set>

#include "base/require.h"
#include "base/text/units.h"
#include "plan/compose/build_step_plan.h"
#include "plan/count/facts_of.h"

namespace stepgate {
namespace {

constexpr std::uint64_t anchor_seed = 1;

Knobs gemm(DType dtype, std::int64_t hidden, std::int64_t layers) {
  Knobs knobs;
  knobs.model = {.kind = ModelKind::mlp, .layers = layers, .hidden = hidden, .dtype = dtype};
  knobs.batch.size = 1024;
  knobs.transfer.host = HostMemory::resident;
  return knobs;
}

// Few samples through large weights. AdamW also reads and writes these with its two moments.
Knobs memory_traffic() {
  Knobs knobs;
  knobs.model = {.kind = ModelKind::mlp, .layers = 2, .hidden = 4096};
  knobs.batch.size = 8;
  knobs.optim.kind = OptimKind::adamw;
  knobs.transfer.host = HostMemory::resident;
  return knobs;
}

Knobs copy(HostMemory from) {
  Knobs knobs;
  knobs.model = {.kind = ModelKind::spin, .kernels = 1, .kernel_us = 1};
  knobs.batch = {.size = 16, .sample_bytes = mebibyte, .tensors = 1};
  knobs.transfer.host = from;
  return knobs;
}

// The kernels are so small that the device waits for their launches.
Knobs launches() {
  Knobs knobs;
  knobs.model = {.kind = ModelKind::mlp, .layers = 8, .hidden = 64};
  knobs.batch.size = 8;
  knobs.optim.impl = OptimImpl::per_tensor;
  knobs.transfer.host = HostMemory::resident;
  return knobs;
}

AnchorRow row_for(Bottleneck bottleneck) {
  AnchorRow row = anchor_table()[static_cast<std::size_t>(bottleneck)];
  require(row.bottleneck == bottleneck, "anchors lie in the order of the bottlenecks");
  return row;
}

}  // namespace

std::vector<AnchorRow> anchor_table() {
  return {{Bottleneck::fp32, "gemm_fp32.1", gemm(DType::fp32, 2048, 2)},
          {Bottleneck::tf32, "gemm_tf32.1", gemm(DType::tf32, 4096, 2)},
          {Bottleneck::bf16, "gemm_bf16.1", gemm(DType::bf16, 4096, 4)},
          {Bottleneck::hbm, "hbm.1", memory_traffic()},
          {Bottleneck::h2d_pinned, "h2d_pinned.1", copy(HostMemory::pinned)},
          {Bottleneck::h2d_pageable, "h2d_pageable.1", copy(HostMemory::pageable)},
          {Bottleneck::launch, "launch.1", launches()}};
}

std::string_view anchor_of(const StepPlan& plan) {
  return row_for(bottleneck_of(plan)).name;
}

StepPlan anchor_plan(const AnchorRow& row) {
  Scenario scenario;
  scenario.name = "anchor";
  scenario.variants.push_back(
      {.name = anchor_variant(std::string(row.name)), .knobs = row.knobs, .place = {}});
  return build_step_plans(scenario, anchor_seed).front();
}

std::vector<PlannedStep> with_anchors(std::vector<PlannedStep> steps) {
  std::set<Bottleneck> needed;
  for (PlannedStep& step : steps) {
    const Bottleneck bottleneck = bottleneck_of(step);
    needed.insert(bottleneck);
    PlanFacts facts = step.facts();
    facts.anchor = row_for(bottleneck).name;
    step = {step, std::move(facts)};
  }
  for (const Bottleneck bottleneck : needed)
    steps.push_back(with_facts(anchor_plan(row_for(bottleneck))));
  return steps;
}

}  // namespace stepgate
