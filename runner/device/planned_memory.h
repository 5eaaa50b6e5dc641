// SPDX-License-Identifier: MIT
// What memory a step takes as its plan says: what a device compares its own books with, and what a
// device without memory reports.
#pragma once

#include "device/trace.h"

namespace stepgate {

// Device memory by purpose and together, in program order; host memory that is page-locked. What an
// allocator holds beyond what is in use is not known: then reserved is what is allocated.
MemoryUse planned_memory(const StepPlan&);

}  // namespace stepgate
