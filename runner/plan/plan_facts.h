// SPDX-License-Identifier: MIT
// What follows from a plan alone, as values: what its step counts, and what memory it needs and
// takes. Found once (count/facts_of.h) and handed on beside the plan, so that whoever shows it
// needs to know nothing of how it is found.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <numeric>
#include <vector>

#include "plan/lifetime.h"
#include "plan/step_plan.h"
#include "scenario/sentences/metric.h"

namespace stepgate {

// Bytes of device memory by Purpose.
using BytesByPurpose = std::array<std::int64_t, purpose_count>;

inline std::int64_t sum_of(const BytesByPurpose& bytes) {
  return std::accumulate(bytes.begin(), bytes.end(), std::int64_t{0});
}

// What a device holds that carries out the plan as it is: every buffer its own for good, but for
// those that the step allocates and releases.
struct HeldMemory {
  std::int64_t most_bytes = 0;  // at one moment
  BytesByPurpose most{};        // of each purpose, each at its own moment
};

// What would do, by the lifetimes of the buffers.
struct StepMemory {
  Lifetimes lifetimes;
  Arena arena;                       // of the lifetimes on the device
  BytesByPurpose always{};           // live all the time; part of `live`
  std::vector<BytesByPurpose> live;  // while each operation is under way; never empty
  std::size_t peak_operation = 0;    // the first at which the most bytes are live
  std::int64_t need_bytes = 0;       // so many: no packing is smaller
  std::int64_t pinned_bytes = 0;     // host memory, the most at once
};

struct PlanFacts {
  std::map<Metric, double> counts;  // per step, in base units; those that plans can know
  StepMemory memory;                // of the step as it is, with all turns that batches take
  HeldMemory held;
  double growth_bytes_per_step = 0;  // allocated and never released, on average
};

}  // namespace stepgate
