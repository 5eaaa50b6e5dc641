// SPDX-License-Identifier: MIT
// Anchors: frozen steps that are measured beside a scenario, so that its times can be stored
// relative to something that never changes. The judge stores and compares them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "plan/planned_step.h"
#include "scenario/scenario.h"

namespace stepgate {

// The part of the machine that a step waits for most.
enum class Bottleneck { fp32, tf32, bf16, hbm, h2d_pinned, h2d_pageable, launch };

// Rows are frozen. A change of knobs, or of how they are planned, requires a new number for the
// row, and runs stored against the old row are no longer comparable. A test compares the plans.
struct AnchorRow {
  Bottleneck bottleneck;
  std::string_view name;  // "hbm.1"
  Knobs knobs;
};

// In the order of the bottlenecks.
std::vector<AnchorRow> anchor_table();

// The bottleneck of a step: that for which it takes most of its time, out of what it waits for one
// after the other. It is gemms in each dtype, device memory, copies from pinned or from pageable
// memory, or the host's calls, waits and allocations. Work that overlaps with something longer is
// no bottleneck. Speeds are constants of the order of one data-centre GPU, so that the same plan
// has the same anchor on every machine.
Bottleneck bottleneck_of(const StepPlan&);

std::string_view anchor_of(const StepPlan&);

// The plan of an anchor; its variant is called anchor_variant.
StepPlan anchor_plan(const AnchorRow&);

// The steps, which then name their anchors, followed by one step for each anchor that they need.
std::vector<PlannedStep> with_anchors(std::vector<PlannedStep>);

}  // namespace stepgate
