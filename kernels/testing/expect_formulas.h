// SPDX-License-Identifier: MIT
// Compares a kernel's host reference, in every trial of its recipe, with formulas that a test
// states independently. Writes no formula itself.
#pragma once

#include <functional>
#include <map>

#include "kernels/testing/kernel_trial.h"

namespace stepgate {

// A number of an operand after the kernel, from the trial as it was before it.
using Formula = std::function<double(const KernelTrial& before, std::int64_t index)>;

// Operands without a formula must be as they were. `unit` is the size of the largest term of a sum,
// whose order may differ.
void expect_formulas(std::string_view kernel, const std::map<std::size_t, Formula>&,
                     double unit = 1);

}  // namespace stepgate
