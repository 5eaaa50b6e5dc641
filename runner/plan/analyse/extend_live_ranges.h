// SPDX-License-Identifier: MIT
// The effect of streams on lifetimes. lifetimes.h lists the uses; issue_order.h says which
// operations are ordered.
#pragma once

#include <vector>

#include "plan/analyse/lifetimes.h"

namespace stepgate {

// Extends the live ranges of device memory until streams that know nothing of each other cannot
// meet in one place: each that is not always live lasts until the last operation of the step, on
// any stream, that uses other such memory without waiting for it. One that is still in use when a
// later step uses such memory becomes always live.
void extend_live_ranges(const StepPlan&, std::vector<Lifetime>&);

}  // namespace stepgate
