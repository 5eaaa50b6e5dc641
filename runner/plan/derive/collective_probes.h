// SPDX-License-Identifier: MIT
// Steps that only communicate, to measure the times of collectives.
#pragma once

#include <cstdint>
#include <vector>

#include "plan/planned_step.h"

namespace stepgate {

// Two steps with `fewer` and `more` collectives of one kind and size that are otherwise equal.
// Their difference in time is that of the additional collectives.
struct CollectiveProbe {
  CollectiveKind kind = CollectiveKind::all_reduce;
  std::int64_t bytes = 0;  // total over the parts of all ranks
  std::int64_t times_more = 0;
  PlannedStep fewer;
  PlannedStep more;
};

// Probes of sizes from 64 KiB to 1 GiB, in bf16 and in place. The collectives run in sequence on
// the compute stream. A spinning kernel before them lasts longer than the host needs to issue the
// step, so that small collectives are timed on the device and not by the host.
std::vector<CollectiveProbe> collective_probes(int ranks);

}  // namespace stepgate
