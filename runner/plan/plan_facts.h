// SPDX-License-Identifier: MIT
// Facts that follow from a plan alone, as values: the counts of its step, the memory that it needs
// and takes, and properties of its operations. They are computed once (count/facts_of.h) and passed
// on with the plan (planned_step.h), so that measuring, judging and reporting need not know how.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "plan/lifetime.h"
#include "plan/step_plan.h"
#include "scenario/assertions/metric.h"
#include "scenario/assertions/step_counts.h"

namespace stepgate {

// Bytes of device memory by Purpose.
using BytesByPurpose = std::array<std::int64_t, purpose_count>;

inline std::int64_t sum_of(const BytesByPurpose& bytes) {
  return std::accumulate(bytes.begin(), bytes.end(), std::int64_t{0});
}

// Memory that a device holds while it runs the plan unchanged. Every buffer exists all the time,
// except buffers that the step allocates and releases.
struct HeldMemory {
  std::int64_t most_bytes = 0;    // at one moment
  BytesByPurpose most{};          // of each purpose, each at its own moment
  std::int64_t pinned_bytes = 0;  // of host memory
};

// Memory that would suffice if buffers shared memory by their lifetimes.
struct StepMemory {
  Lifetimes lifetimes;
  Arena arena;                       // of the lifetimes on the device
  BytesByPurpose always{};           // live all the time; part of `live`
  std::vector<BytesByPurpose> live;  // while each operation is under way; never empty
  std::size_t peak_operation = 0;    // the first at which the most bytes are live
  std::int64_t need_bytes = 0;       // so many: no packing is smaller
  std::int64_t pinned_bytes = 0;     // host memory, the most at once
};

// The limit on the speed of a kernel: arithmetic, memory traffic, or the latency of dependent loads
// from any cache.
enum class KernelLimit { math, memory, latency };

// Facts of one operation for one execution.
struct OperationFacts {
  Tally tally;
  KernelWork work;                               // of a launch
  KernelLimit limited_by = KernelLimit::memory;  // of a launch
  double rough_seconds = 0;  // rather too much: by how much a step is longer that hides nothing
};

struct PlanFacts {
  std::map<Metric, double> counts;  // per step, in base units; those that plans can know
  std::set<Metric> may_differ;      // of counts: a trace may have others (counted_metrics.cpp)
  std::vector<OperationFacts> operations;
  std::vector<PeriodicWork> periodic;       // one for each period of operations, and what is none
  std::array<Tally, phase_count> phases{};  // of the operations of each, on average a step
  double model_flops = 0;                   // a step: what mfu counts (count/counted_metrics.cpp)
  StepMemory memory;  // of the step as it is, with all turns that batches take
  HeldMemory held;
  double growth_bytes_per_step = 0;  // allocated and never released, on average
  int prefetch_depth = 0;            // steps that the host starts before step 0
  bool uses_managed_memory = false;
  std::string against_interleaving;  // count/facts_of.cpp; empty: nothing is
  std::string anchor;                // measured beside it: "hbm.1"; empty: none is

  std::optional<double> count(Metric metric) const {
    const auto found = counts.find(metric);
    return found == counts.end() ? std::nullopt : std::optional(found->second);
  }
};

}  // namespace stepgate
