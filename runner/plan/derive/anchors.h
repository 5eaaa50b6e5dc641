// SPDX-License-Identifier: MIT
// Anchors: frozen steps that are measured beside a scenario, so that its times can be stored
// relative to a step that never changes. The judge stores and compares them.
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

// Returns the rows in the order of the bottlenecks.
std::vector<AnchorRow> anchor_table();

// The bottleneck of a step: the resource on which its critical path spends most time. It is GEMMs
// in each dtype, device memory, copies from pinned or from pageable memory, or the host's calls,
// waits and allocations. Work that overlaps with longer work is no bottleneck. Speeds are constants
// for a typical data-centre GPU, so that the same plan has the same anchor on every machine.
Bottleneck bottleneck_of(const StepPlan&);

std::string_view anchor_of(const StepPlan&);

// The plan of an anchor; its variant has the name anchor_variant.
StepPlan anchor_plan(const AnchorRow&);

// Returns the steps with the names of their anchors, followed by one step for each anchor that they
// need.
std::vector<PlannedStep> with_anchors(std::vector<PlannedStep>);

}  // namespace stepgate
