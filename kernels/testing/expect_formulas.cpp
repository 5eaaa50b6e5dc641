// SPDX-License-Identifier: MIT
#include "kernels/testing/expect_formulas.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

namespace stepgate {
namespace {

// The relative error of rounding once to the operand's format.
double rounding(const KernelTrial& trial, std::size_t operand) {
  const bool stored = operand_of(trial, operand).format == OperandFormat::storage;
  if (stored && trial.dtype == DType::bf16) return 0x1.01p-8;
  return stored && trial.dtype == DType::fp16 ? 0x1.01p-11 : 0x1.01p-24;
}

// Half the spacing of subnormal fp16 numbers; 0 for other formats.
double smallest(const KernelTrial& trial, std::size_t operand) {
  const bool stored = operand_of(trial, operand).format == OperandFormat::storage;
  return stored && trial.dtype == DType::fp16 ? 0x1p-25 : 0;
}

}  // namespace

void expect_formulas(std::string_view name, const std::map<std::size_t, Formula>& formulas,
                     double unit) {
  const std::uint64_t seed = std::random_device{}();
  for (KernelTrial& trial : all_trials(trial_recipe(name), seed)) {
    SCOPED_TRACE(describe(trial, seed));
    const KernelTrial before = trial;
    run_reference(trial);
    for (std::size_t operand = 0; operand < trial.operands.size(); ++operand) {
      const auto formula = formulas.find(operand);
      if (formula == formulas.end()) {
        ASSERT_EQ(trial.operands[operand], before.operands[operand]) << "operand " << operand;
        continue;
      }
      for (std::int64_t i = 0; i < value_count(trial, operand); ++i) {
        const double expected = formula->second(before, i);
        const double slack =
            std::abs(expected) * rounding(trial, operand) + smallest(trial, operand) + unit * 1e-12;
        ASSERT_NEAR(value_at(trial, operand, i), expected, slack)
            << "operand " << operand << " element " << i;
      }
    }
  }
}

}  // namespace stepgate
