// SPDX-License-Identifier: MIT
#include "plan/compose/ranks/passes.h"

namespace stepgate {

std::vector<Pass> backward_passes(const StepPlan& plan, std::size_t first) {
  std::vector<Pass> passes;
  for (std::size_t index = first; index < plan.operations.size(); ++index) {
    if (plan.operations[index].phase != Phase::backward) continue;
    if (passes.empty() || passes.back().end != index) passes.push_back({index, index});
    passes.back().end = index + 1;
  }
  return passes;
}

std::vector<Pass> forward_passes(const StepPlan& plan, std::size_t first) {
  std::vector<Pass> passes;
  std::size_t begin = first;
  for (const Pass& backward : backward_passes(plan, first)) {
    passes.push_back({begin, backward.begin});
    begin = backward.end;
  }
  if (passes.empty()) passes.push_back({first, plan.operations.size()});
  return passes;
}

}  // namespace stepgate
