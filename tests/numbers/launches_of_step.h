// SPDX-License-Identifier: MIT
// The launches of a step with their operands before and after, for comparisons of what else may
// carry them out with the kernels' references. The operands are those of a real step, so that
// gradients are as small, and sums cancel as much, as they do in training.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <span>
#include <string>
#include <vector>

#include "kernels/kernels.h"
#include "kernels/trial/kernel_trial.h"
#include "tests/numbers/step_by_hand.h"

namespace stepgate {

struct LaunchOfStep {
  std::string name;       // of the operation
  KernelTrial before;     // operands that are only written hold 0xff bytes, as in make_trial
  KernelTrial after;      // what the reference leaves
  bool in_place = false;  // the output of operand_in_place shares a buffer with its input
};

inline bool is_only_written(const KernelTrial& trial, std::size_t operand) {
  return access_of(operand_of(trial, operand), trial.attributes) == Access::write;
}

// A trial on copies of these operands.
inline KernelTrial trial_of(const LaunchKernel& launch, std::span<void* const> operands) {
  KernelTrial trial{.recipe = &trial_recipe(launch.kernel.name()),
                    .shape = launch.shape,
                    .dtype = launch.dtype,
                    .attributes = launch.attributes,
                    .operands = {}};
  for (std::size_t operand = 0; operand < operands.size(); ++operand) {
    const auto* const first = static_cast<const std::byte*>(operands[operand]);
    trial.operands.emplace_back(first, first + operand_bytes(trial, operand));
  }
  return trial;
}

// Whether the launch replaces an input by its output. No other operands may share a buffer: trials
// could not imitate that.
inline bool is_in_place(const Kernel& row, std::span<void* const> operands) {
  const std::size_t output = operand_in_place(row);
  for (std::size_t one = 0; one < operands.size(); ++one)
    for (std::size_t other = 0; other < one; ++other) {
      if (operands[one] != operands[other]) continue;
      EXPECT_EQ(one, output) << row.name;
      EXPECT_EQ(other, row.operands[one].may_replace) << row.name;
    }
  return output != no_operand && operands[output] == operands[row.operands[output].may_replace];
}

// Runs step 0 of the plan with the kernels' references, and calls visit(LaunchOfStep) after each
// launch.
template <class Visit>
void for_each_launch(const StepPlan& plan, Visit visit) {
  StepByHandOf<std::byte> step(plan);
  step.step(
      [&](const Operation& operation, const LaunchKernel& launch, std::span<void* const> operands) {
        LaunchOfStep made{.name = operation.name,
                          .before = trial_of(launch, operands),
                          .after = {},
                          .in_place = is_in_place(kernel(launch.kernel), operands)};
        for (std::size_t operand = 0; operand < operands.size(); ++operand) {
          if (is_only_written(made.before, operand))
            std::ranges::fill(made.before.operands[operand], std::byte{0xff});
        }
        step.run_reference(operation, launch, operands);
        made.after = trial_of(launch, operands);
        visit(made);
      });
}

// The error of an operand relative to its norm, however small that is: gradients of a step are much
// smaller than the numbers of a recipe, by which relative_error judges fp32 operands.
inline double error_of_small_numbers(const KernelTrial& got, const KernelTrial& expected,
                                     std::size_t operand) {
  double squares = 0, norm = 0;
  for (std::int64_t i = 0; i < value_count(expected, operand); ++i) {
    const double right = value_at(expected, operand, i);
    squares += std::pow(value_at(got, operand, i) - right, 2);
    norm += right * right;
  }
  return squares == 0 ? 0 : std::sqrt(squares / norm);
}

// Says in words what differs in an operand that the launch has written; empty where nothing does.
// The references have no clock.
inline std::string difference_in_step(const KernelTrial& got, const KernelTrial& expected,
                                      std::size_t operand) {
  if (is_clock(expected, operand) || got.operands[operand] == expected.operands[operand]) return {};
  constexpr double bound = 1e-4;  // of sums in fp32 of numbers that partly cancel
  switch (operand_of(expected, operand).format) {
    case OperandFormat::scratch:
      return {};
    case OperandFormat::byte: {
      // Sums that are rounded otherwise may have another sign where they are almost 0.
      constexpr int few = 2;
      int others = 0;
      for (std::int64_t i = 0; i < value_count(expected, operand); ++i)
        others += value_at(got, operand, i) != value_at(expected, operand, i);
      return others <= few ? "" : std::to_string(others) + " bytes differ";
    }
    case OperandFormat::single: {
      const double error = error_of_small_numbers(got, expected, operand);
      return error <= bound ? "" : "relative error " + std::to_string(error);
    }
    case OperandFormat::control:  // numbers of different sizes
      for (std::int64_t i = 0; i < value_count(expected, operand); ++i) {
        const double value = value_at(got, operand, i), right = value_at(expected, operand, i);
        if (!(std::abs(value - right) <= bound * std::abs(right)))
          return "number " + std::to_string(i) + " is " + std::to_string(value) +
                 " and should be " + std::to_string(right);
      }
      return {};
    default:
      return difference(got, expected, operand);
  }
}

// The name and the difference of the first operand that has one.
inline std::string difference_in_step(const KernelTrial& got, const KernelTrial& expected) {
  for (std::size_t operand = 0; operand < expected.operands.size(); ++operand) {
    const std::string words = difference_in_step(got, expected, operand);
    if (!words.empty())
      return std::string(operand_of(expected, operand).name).append(": ").append(words);
  }
  return {};
}

// The trial with each number of the operand replaced by the next one, as from a wrong offset.
inline KernelTrial shifted(KernelTrial trial, std::size_t operand) {
  std::vector<std::byte>& bytes = trial.operands[operand];
  const std::ptrdiff_t number = bytes_of(operand_of(trial, operand).format, trial.dtype);
  std::copy(bytes.begin() + number, bytes.end(), bytes.begin());
  return trial;
}

struct PlantedFault {
  std::string words;
  KernelTrial before;
  std::size_t shifted = no_operand;
};

// Returns faults of a launch: each operand that it reads is shifted, and attributes are replaced.
// Operands of equal numbers, and the control, which has some, would not differ.
inline std::vector<PlantedFault> faults_of(const LaunchOfStep& launch) {
  std::vector<PlantedFault> faults;
  for (std::size_t operand = 0; operand < launch.before.operands.size(); ++operand) {
    const KernelOperand& declared = operand_of(launch.before, operand);
    if (is_only_written(launch.before, operand) || declared.keeps_rest) continue;
    if (declared.format == OperandFormat::control) continue;
    KernelTrial wrong = shifted(launch.before, operand);
    if (wrong.operands[operand] == launch.before.operands[operand]) continue;
    faults.push_back({"shifted " + std::string(declared.name), wrong, operand});
  }
  KernelTrial other = launch.before;
  const KernelAttributes& attributes = launch.before.attributes;
  if (attributes.holds<ReluAttributes>())
    other.attributes = ReluAttributes{!attributes.to<ReluAttributes>().relu};
  if (attributes.holds<kernels::BatchNormFinish::Attributes>())
    other.attributes = kernels::BatchNormFinish::Attributes{1e-5, 0.11};
  if (!(other.attributes == attributes)) faults.push_back({"other attributes", other});
  return faults;
}

// Whether the comparison notices what the launch with the fault left. A shifted input differs
// anyway, so it is set right first.
inline bool is_noticed(const PlantedFault& fault, KernelTrial got, const LaunchOfStep& launch) {
  const bool is_input = fault.shifted != no_operand && !launch.in_place &&
                        access_of(operand_of(got, fault.shifted), got.attributes) == Access::read;
  if (is_input) got.operands[fault.shifted] = launch.after.operands[fault.shifted];
  return !difference_in_step(got, launch.after).empty();
}

}  // namespace stepgate
