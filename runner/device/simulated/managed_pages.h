// SPDX-License-Identifier: MIT
// Where the pages of a plan's managed memory are: on the host or on the device. What moving them
// costs is timeline_managed.cpp's.
#pragma once

#include <cstdint>
#include <vector>

#include "plan/step_plan.h"

namespace stepgate {

enum class PagesAre { on_host, on_device };

class ManagedPages {
 public:
  // The driver keeps managed memory in blocks of 2 MiB and, when a kernel reads through a batch,
  // soon brings whole ones. The model takes one fault for each.
  static constexpr std::int64_t block_bytes = std::int64_t{2} << 20;

  // All of them on the host, which has written them last.
  explicit ManagedPages(const StepPlan&);

  // Afterwards this part of the slot that the step uses is there. How many blocks had to move; none
  // for other memory.
  std::int64_t bring(const BufferUse&, std::int64_t step, PagesAre);

 private:
  std::vector<std::vector<std::vector<PagesAre>>> blocks_;  // by buffer, slot, block
};

}  // namespace stepgate
