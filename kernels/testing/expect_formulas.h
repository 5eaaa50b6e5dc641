// SPDX-License-Identifier: MIT
// Compares a kernel's host reference, in every trial of its recipe, with formulas that a test
// states independently. It contains no formula itself.
#pragma once

#include <functional>
#include <map>

#include "kernels/trial/kernel_trial.h"

namespace stepgate {

// Computes an element of an operand after the kernel from the trial before it.
using Formula = std::function<double(const KernelTrial& before, std::int64_t index)>;

// As above, with a kernel's own sizes and attributes.
template <class Kernel>
using FormulaOf = std::function<double(const TrialOf<Kernel>& before, std::int64_t index)>;

// Operands without a formula must stay unchanged. `unit` is the size of the largest term of a sum,
// since the order of sums may differ.
void expect_formulas(std::string_view kernel, const std::map<std::size_t, Formula>&,
                     double unit = 1);
template <class Kernel>
void expect_formulas(const std::map<std::size_t, FormulaOf<Kernel>>& formulas, double unit = 1) {
  std::map<std::size_t, Formula> untyped;
  for (const auto& [operand, formula] : formulas) {
    untyped[operand] = [formula = formula](const KernelTrial& trial, std::int64_t index) {
      return formula({trial, trial.shape.as<Kernel>(), trial.attributes.as<Kernel>()}, index);
    };
  }
  expect_formulas(Kernel::name, untyped, unit);
}

}  // namespace stepgate
