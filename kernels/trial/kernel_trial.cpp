// SPDX-License-Identifier: MIT
// Operands made from recipes. trial_recipes.cpp has the table of recipes.
#include "kernels/trial/kernel_trial.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <random>
#include <sstream>

#include "kernels/catalogue.h"
#include "kernels/number_format.h"
#include "kernels/update_control.h"

namespace stepgate {
namespace {

// A control as clip leaves it; its factor skips the update for one shape.
std::array<float, update_control::size> control_numbers(const KernelShape& shape) {
  const KernelShape skipped = MatrixShape{4, 32};
  std::array<float, update_control::size> control{};
  control[update_control::factor] = shape == skipped ? 0.0f : 0.25f;
  control[update_control::loss_scale] = 4;
  control[update_control::good_updates] = 2;
  control[update_control::updates] = 5;
  return control;
}

std::int32_t index_below(std::int64_t count, std::mt19937_64& random) {
  return static_cast<std::int32_t>(random() % static_cast<std::uint64_t>(count));
}

void fill(KernelTrial& trial, std::size_t operand, std::uint64_t seed) {
  const OperandFormat format = operand_of(trial, operand).format;
  const auto lowest = trial.recipe->lowest.find(operand);
  void* data = trial.operands[operand].data();
  std::mt19937_64 random(seed + operand);
  std::uniform_real_distribution<double> number(
      lowest != trial.recipe->lowest.end() ? lowest->second : -1.0, 1.0);
  for (std::int64_t i = 0; i < value_count(trial, operand); ++i) {
    switch (format) {
      case OperandFormat::storage:
      case OperandFormat::single: {
        const DType dtype = format == OperandFormat::single ? DType::fp32 : trial.dtype;
        set_number(data, dtype, i, number(random));
        break;
      }
      case OperandFormat::index:
        static_cast<std::int32_t*>(data)[i] = index_below(
            operand_of(trial, operand).below(trial.shape, trial.dtype, trial.attributes), random);
        break;
      case OperandFormat::count:
        static_cast<std::uint64_t*>(data)[i] = 1 + random() % 1000;
        break;
      case OperandFormat::word:
        static_cast<std::uint32_t*>(data)[i] = static_cast<std::uint32_t>(random());
        break;
      case OperandFormat::byte:
        static_cast<std::uint8_t*>(data)[i] = static_cast<std::uint8_t>(random());
        break;
      case OperandFormat::control:
        static_cast<float*>(data)[i] = control_numbers(trial.shape)[static_cast<std::size_t>(i)];
        break;
      case OperandFormat::scratch:
        return;
    }
  }
}

bool is_read(const KernelTrial& trial, std::size_t operand) {
  return access_of(operand_of(trial, operand), trial.attributes) != Access::write;
}

}  // namespace

KernelTrial make_trial(const TrialRecipe& recipe, const KernelShape& shape, DType dtype,
                       const KernelAttributes& attributes, std::uint64_t seed) {
  KernelTrial trial{&recipe, shape, dtype, attributes, {}};
  for (std::size_t operand = 0; operand < kernel(recipe.kernel).operands.size(); ++operand) {
    const std::int64_t bytes = operand_bytes(trial, operand);
    trial.operands.emplace_back(static_cast<std::size_t>(bytes), std::byte{0xff});
    if (is_read(trial, operand)) fill(trial, operand, seed);
  }
  if (recipe.settle != nullptr) recipe.settle(trial);
  return trial;
}

std::vector<KernelTrial> all_trials(const TrialRecipe& recipe, std::uint64_t seed) {
  std::vector<KernelTrial> trials;
  for (const DType dtype : recipe.dtypes) {
    for (const KernelAttributes& attributes : recipe.attributes) {
      for (const KernelShape& shape : recipe.shapes) {
        trials.push_back(make_trial(recipe, shape, dtype, attributes, seed + 1000 * trials.size()));
      }
    }
  }
  return trials;
}

const KernelOperand& operand_of(const KernelTrial& trial, std::size_t operand) {
  return kernel(trial.recipe->kernel).operands[operand];
}

std::int64_t value_count(const KernelTrial& trial, std::size_t operand) {
  return operand_of(trial, operand).elements(trial.shape, trial.dtype, trial.attributes);
}

std::int64_t operand_bytes(const KernelTrial& trial, std::size_t operand) {
  return operand_bytes(operand_of(trial, operand), trial.shape, trial.dtype, trial.attributes);
}

std::size_t operand_in_place(const Kernel& kernel) {
  for (std::size_t operand = 0; operand < kernel.operands.size(); ++operand) {
    if (kernel.operands[operand].may_replace != no_operand) return operand;
  }
  return no_operand;
}

double value_at(const KernelTrial& trial, std::size_t operand, std::int64_t index) {
  const void* data = trial.operands[operand].data();
  switch (operand_of(trial, operand).format) {
    case OperandFormat::storage:
      return number_at(data, trial.dtype, index);
    case OperandFormat::single:
    case OperandFormat::control:
      return number_at(data, DType::fp32, index);
    case OperandFormat::index:
      return static_cast<const std::int32_t*>(data)[index];
    case OperandFormat::count:
      return static_cast<double>(static_cast<const std::uint64_t*>(data)[index]);
    case OperandFormat::byte:
    case OperandFormat::scratch:
      return static_cast<double>(static_cast<const std::uint8_t*>(data)[index]);
    case OperandFormat::word:
      break;
  }
  return static_cast<const std::uint32_t*>(data)[index];
}

void run_reference(KernelTrial& trial) {
  std::vector<void*> buffers;
  for (auto& operand : trial.operands) buffers.push_back(operand.data());
  kernel(trial.recipe->kernel).reference({trial.shape, trial.dtype, trial.attributes, buffers});
}

void run_reference_in_place(KernelTrial& trial) {
  const Kernel& row = kernel(trial.recipe->kernel);
  const std::size_t output = operand_in_place(row);
  std::vector<void*> buffers;
  for (auto& operand : trial.operands) buffers.push_back(operand.data());
  buffers[output] = buffers[row.operands[output].may_replace];
  row.reference({trial.shape, trial.dtype, trial.attributes, buffers});
  trial.operands[output] = trial.operands[row.operands[output].may_replace];
}

void run_in_fp32(std::string_view name, const KernelShape& shape,
                 const KernelAttributes& attributes, const std::vector<void*>& buffers) {
  kernel(name).reference({shape, DType::fp32, attributes, buffers});
}

namespace {

bool is_single(const KernelTrial& trial, std::size_t operand) {
  const OperandFormat format = operand_of(trial, operand).format;
  return format == OperandFormat::single || format == OperandFormat::control;
}

// The sum of the squares by which errors of an operand are judged.
double judged_norm(const KernelTrial& expected, std::size_t operand) {
  const std::int64_t count = value_count(expected, operand);
  double norm = 0;
  for (std::int64_t i = 0; i < count; ++i) norm += std::pow(value_at(expected, operand, i), 2);
  // A few numbers may all be close to 0 where terms of about 0.1 cancel, and keep their errors.
  constexpr std::int64_t few = 4;
  constexpr double term = 0.1;
  if (count <= few) norm = std::max(norm, static_cast<double>(count) * term * term);
  if (is_single(expected, operand)) norm = std::max(norm, static_cast<double>(count));
  return norm;
}

}  // namespace

double relative_error(const KernelTrial& got, const KernelTrial& expected, std::size_t operand) {
  double squares = 0;
  for (std::int64_t i = 0; i < value_count(expected, operand); ++i)
    squares += std::pow(value_at(got, operand, i) - value_at(expected, operand, i), 2);
  return squares == 0 ? 0 : std::sqrt(squares / judged_norm(expected, operand));
}

double error_bound(const KernelTrial& trial, std::size_t operand) {
  const bool stored = operand_of(trial, operand).format == OperandFormat::storage;
  if (stored && trial.dtype == DType::bf16) return 1e-2;
  if (stored && trial.dtype == DType::fp16) return 1.5e-3;
  const bool rounds_factors =
      trial.dtype == DType::tf32 && kernel(trial.recipe->kernel).library.is_gemm();
  return rounds_factors ? 0x1p-9 : 1e-5;
}

bool is_clock(const KernelTrial& trial, std::size_t operand) {
  return operand == trial.recipe->clock || operand == trial.recipe->stamps;
}

namespace {

bool has_error_bound(OperandFormat format) {
  return format == OperandFormat::storage || format == OperandFormat::single ||
         format == OperandFormat::control;
}

// Says which numbers are off; empty where none is and the operand as a whole is within its bound.
std::string numbers_in_words(const KernelTrial& got, const KernelTrial& expected,
                             std::size_t operand) {
  const std::int64_t count = value_count(expected, operand);
  const double bound = error_bound(expected, operand);
  const double error = relative_error(got, expected, operand);
  const double typical = std::sqrt(judged_norm(expected, operand) /
                                   static_cast<double>(std::max(count, std::int64_t{1})));
  // A single number may be off by so many times what the operand may be off as a whole. Numbers
  // that were never written are off by more, however many others are right.
  constexpr double much = 30;
  std::int64_t off = 0, unwritten = 0, first = -1;
  for (std::int64_t i = 0; i < count; ++i) {
    const double value = value_at(got, operand, i), right = value_at(expected, operand, i);
    if (std::isnan(value) && !std::isnan(right)) ++unwritten;
    if (std::abs(value - right) <= much * bound * std::max(typical, std::abs(right))) continue;
    if (off++ == 0) first = i;
  }
  // NaN is no error within the bound.
  if (error <= bound && off == 0) return {};
  std::ostringstream text;
  text << off << " of " << count << " numbers are off";
  if (unwritten > 0) text << ", " << unwritten << " of them NaN, as before the launch";
  if (first >= 0) text << ", the first is number " << first;
  text.precision(2);
  if (!std::isnan(error)) text << "; relative error " << error << ", at most " << bound;
  return text.str();
}

}  // namespace

std::string difference(const KernelTrial& got, const KernelTrial& expected, std::size_t operand) {
  if (has_error_bound(operand_of(expected, operand).format))
    return numbers_in_words(got, expected, operand);
  for (std::int64_t i = 0; i < value_count(expected, operand); ++i) {
    const double value = value_at(got, operand, i), right = value_at(expected, operand, i);
    const bool is_stamp = is_clock(expected, operand) && right == 0;
    // The multiprocessor of a stamp may be 0, its clock may not.
    if (is_stamp ? value >= (operand == expected.recipe->stamps && i % 2 == 1 ? 0 : 1)
                 : value == right)
      continue;
    std::ostringstream text;
    text << "number " << i << " is " << value << " and should be ";
    if (is_stamp)
      text << "a clock";
    else
      text << right;
    return text.str();
  }
  return {};
}

std::string difference(const KernelTrial& got, const KernelTrial& expected) {
  for (std::size_t operand = 0; operand < expected.operands.size(); ++operand) {
    if (operand_of(expected, operand).format == OperandFormat::scratch) continue;
    const std::string words = difference(got, expected, operand);
    if (!words.empty())
      return std::string("'")
          .append(operand_of(expected, operand).name)
          .append("': ")
          .append(words);
  }
  return {};
}

std::string describe(const KernelTrial& trial, std::uint64_t seed) {
  std::ostringstream text;
  text << trial.recipe->kernel.name() << ' ' << text_of(trial.shape, "x") << ' '
       << name_of(trial.dtype) << " attributes " << text_of(trial.attributes) << " seed " << seed;
  return text.str();
}

}  // namespace stepgate
