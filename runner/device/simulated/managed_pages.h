// SPDX-License-Identifier: MIT
// Where the pages of a plan's managed memory are: on the host or on the device.
// timeline_managed.cpp has the costs of moving them.
#pragma once

#include <cstdint>
#include <vector>

#include "plan/step_plan.h"

namespace stepgate {

enum class PagesAre { on_host, on_device };

class ManagedPages {
 public:
  // Bytes that one fault of the device brings.
  static constexpr std::int64_t page_bytes = std::int64_t{64} << 10;

  // All of them on the host, which has written them last.
  explicit ManagedPages(const StepPlan&);

  // Afterwards this part of the slot that the step uses is there. How many pages had to move; none
  // for other memory.
  std::int64_t bring(const BufferUse&, std::int64_t step, PagesAre);

  // Whether any page of the slot that the step uses is, of managed memory.
  bool are_on_host(const BufferUse&, std::int64_t step) const;

 private:
  std::vector<std::vector<std::vector<PagesAre>>> pages_;  // by buffer, slot, page
};

// How often the host stops when it writes through so many pages that are on the device. The driver
// brings as much again with every fault, up to its blocks of 2 MiB.
std::int64_t host_faults_for(std::int64_t pages);

}  // namespace stepgate
