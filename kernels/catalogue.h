// SPDX-License-Identifier: MIT
// The kernels that a plan may name. Adding one is a folder and one line in catalogue.cpp.
#pragma once

#include <span>

#include "kernels/kernel.h"

namespace stepgate {

// In the order of catalogue.cpp.
std::span<const Kernel> kernel_catalogue();

// The kernel of that name; aborts if there is none, since only plans name kernels.
const Kernel& kernel(std::string_view name);

}  // namespace stepgate
