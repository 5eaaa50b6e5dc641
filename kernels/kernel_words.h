// SPDX-License-Identifier: MIT
#pragma once

#include <string_view>

#include "kernels/kernel.h"

namespace stepgate {

// Returns the comment over the declaration of a kernel of the catalogue: the formula and its
// source, sizes, and the layout of the operands, in lines of at most 97 characters. Empty for any
// other kernel.
std::string_view words_of(const Kernel&);

}  // namespace stepgate
