// SPDX-License-Identifier: MIT
#include "plan/count/facts_of.h"

#include "plan/analyse/lifetimes.h"
#include "plan/count/counted_metrics.h"
#include "plan/count/step_memory.h"

namespace stepgate {

PlanFacts facts_of(const StepPlan& plan) {
  PlanFacts facts{.counts = {},
                  .memory = step_memory_of(plan),
                  .held = held_memory(plan),
                  .growth_bytes_per_step = growth_bytes_per_step(plan)};
  for (const MetricRow& row : metric_table()) {
    if (const auto value = counted(plan, row.metric)) facts.counts[row.metric] = *value;
  }
  return facts;
}

}  // namespace stepgate
