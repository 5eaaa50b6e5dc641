// SPDX-License-Identifier: MIT
#pragma once

#include <string>

#include "kernels/kernel.h"

namespace stepgate {

// A scenario whose step launches the kernel, from a library beside it in `build`, and from stepgate
// in another variant. Empty where none of the steps that are tried launches it.
std::string step_with_own(const Kernel&);

}  // namespace stepgate
