// SPDX-License-Identifier: MIT
// Steps that do nothing but communicate: what collectives take is measured with them.
#pragma once

#include <cstdint>
#include <vector>

#include "plan/planned_step.h"

namespace stepgate {

// One kind and size, as often as `fewer` and `more` say in a step each, which are otherwise the
// same: the difference of their times is that of the collectives between them.
struct CollectiveProbe {
  CollectiveKind kind = CollectiveKind::all_reduce;
  std::int64_t bytes = 0;  // of the whole
  std::int64_t times_more = 0;
  PlannedStep fewer;
  PlannedStep more;
};

// Sizes from 64 KiB to 1 GiB. In bf16, in place and one behind the other on the compute stream,
// behind a kernel that spins for longer than the host takes to issue the step. So the host stays
// ahead, and small collectives take the time of the device and not that of the host.
std::vector<CollectiveProbe> collective_probes(int ranks);

}  // namespace stepgate
