// SPDX-License-Identifier: MIT
// The plans that were made with one library and handle. cuDNN takes tens of milliseconds for a
// plan, and every load of a step asks for the same ones.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "kernels/cudnn/graph.h"

namespace stepgate {

// A plan, or the reason why there is none.
struct PlanOrReason {
  std::shared_ptr<const CudnnPlan> plan;
  std::string reason;
};

class CudnnPlans {
 public:
  // Returns the result of `make` for this graph, which is called at the first request only. The
  // name tells everything that the plan depends on besides library and handle. A refusal is kept
  // too: otherwise a step might get cuDNN's kernels at one load and others at the next. Valid as
  // long as this object.
  template <class Make>
  const PlanOrReason& of(const std::string& graph, Make make) {
    const auto known = made_.find(graph);
    return known != made_.end() ? known->second : made_.emplace(graph, make()).first->second;
  }

 private:
  std::map<std::string, PlanOrReason> made_;
};

}  // namespace stepgate
