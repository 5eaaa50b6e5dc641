// SPDX-License-Identifier: MIT
// Names for other profilers: ranges of NVTX's domain "stepgate" for the variant, its steps and
// their phases, and a capture range around the scored steps (`nsys profile
// --capture-range=cudaProfilerApi
// --capture-range-end=none`, `ncu --nvtx --nvtx-include stepgate@forward/`).
#pragma once

#include <memory>

#include "device/cuda/step_observer.h"

namespace stepgate {

// Returns nullptr where no profiler is attached, so that timed runs have no overhead.
std::unique_ptr<StepObserver> make_nvtx_ranges();

}  // namespace stepgate
