// SPDX-License-Identifier: MIT
// A cubin that is loaded onto the GPU of this process.
#pragma once

#include "plugin/open_library.h"
#include "plugin/tables/cubin.h"

namespace stepgate {

// Loads the bytes that were read, the first time that a launch fits the device. They stay loaded
// until the process ends, since graphs outlive steps.
PrepareKernel loaded_on_gpu(Cubin);

}  // namespace stepgate
