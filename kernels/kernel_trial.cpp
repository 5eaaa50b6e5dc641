// SPDX-License-Identifier: MIT
// Operands made from recipes. The table of recipes is trial_recipes.cpp's.
#include "kernels/kernel_trial.h"

#include <random>
#include <sstream>

#include "kernels/catalogue.h"
#include "kernels/number_format.h"

namespace stepgate {
namespace {

using Format = OperandFormat;

// --- operands ------------------------------------------------------------------------------------

std::int64_t element_bytes(Format format, DType dtype) {
  switch (format) {
    case Format::storage:
      return bytes_of(dtype);
    case Format::count:
      return 8;
    case Format::scratch:
      return 1;
    default:
      return 4;
  }
}

std::int32_t index_below(std::int64_t count, std::mt19937_64& random) {
  return static_cast<std::int32_t>(random() % static_cast<std::uint64_t>(count));
}

void fill(KernelTrial& trial, std::size_t operand, std::uint64_t seed) {
  const OperandRecipe& recipe = trial.recipe->operands[operand];
  void* data = trial.operands[operand].data();
  std::mt19937_64 random(seed + operand);
  std::uniform_real_distribution<double> number(recipe.lowest, 1.0);
  for (std::int64_t i = 0; i < value_count(trial, operand); ++i) {
    switch (recipe.format) {
      case Format::storage:
      case Format::single: {
        const DType dtype = recipe.format == Format::single ? DType::fp32 : trial.dtype;
        set_number(data, dtype, i, number(random));
        break;
      }
      case Format::label:
        static_cast<std::int32_t*>(data)[i] = index_below(trial.shape.columns, random);
        break;
      case Format::token:
        static_cast<std::int32_t*>(data)[i] = index_below(trial.shape.depth, random);
        break;
      case Format::count:
        static_cast<std::uint64_t*>(data)[i] = 1 + random() % 1000;
        break;
      case Format::word:
        static_cast<std::uint32_t*>(data)[i] = static_cast<std::uint32_t>(random());
        break;
      case Format::scratch:
        return;
    }
  }
}

bool is_read(const KernelTrial& trial, std::size_t operand) {
  const KernelOperand& row = kernel(trial.recipe->kernel).operands[operand];
  return access_of(row, trial.scalars) != Access::write;
}

}  // namespace

// --- trials --------------------------------------------------------------------------------------

KernelTrial make_trial(const TrialRecipe& recipe, const KernelShape& shape, DType dtype,
                       const KernelScalars& scalars, std::uint64_t seed) {
  KernelTrial trial{&recipe, shape, dtype, scalars, {}};
  for (std::size_t operand = 0; operand < recipe.operands.size(); ++operand) {
    const std::int64_t bytes = operand_bytes(trial, operand);
    trial.operands.emplace_back(static_cast<std::size_t>(bytes), std::byte{0xff});
    if (is_read(trial, operand)) fill(trial, operand, seed);
  }
  if (recipe.settle != nullptr) recipe.settle(trial);
  return trial;
}

std::vector<KernelTrial> all_trials(const TrialRecipe& recipe, std::uint64_t seed) {
  std::vector<KernelTrial> trials;
  for (const DType dtype : {DType::fp32, DType::tf32, DType::bf16, DType::fp16}) {
    for (const KernelScalars& scalars : recipe.scalars) {
      for (const KernelShape& shape : recipe.shapes) {
        trials.push_back(make_trial(recipe, shape, dtype, scalars, seed + 1000 * trials.size()));
      }
    }
  }
  return trials;
}

std::int64_t value_count(const KernelTrial& trial, std::size_t operand) {
  return trial.recipe->operands[operand].elements(trial.shape, trial.scalars);
}

std::int64_t operand_bytes(const KernelTrial& trial, std::size_t operand) {
  return value_count(trial, operand) *
         element_bytes(trial.recipe->operands[operand].format, trial.dtype);
}

double value_at(const KernelTrial& trial, std::size_t operand, std::int64_t index) {
  const void* data = trial.operands[operand].data();
  switch (trial.recipe->operands[operand].format) {
    case Format::storage:
      return number_at(data, trial.dtype, index);
    case Format::single:
      return number_at(data, DType::fp32, index);
    case Format::label:
    case Format::token:
      return static_cast<const std::int32_t*>(data)[index];
    case Format::count:
      return static_cast<double>(static_cast<const std::uint64_t*>(data)[index]);
    case Format::scratch:
      return static_cast<double>(static_cast<const std::uint8_t*>(data)[index]);
    case Format::word:
      break;
  }
  return static_cast<const std::uint32_t*>(data)[index];
}

void run_reference(KernelTrial& trial) {
  std::vector<void*> buffers;
  for (auto& operand : trial.operands) buffers.push_back(operand.data());
  kernel(trial.recipe->kernel).reference({trial.shape, trial.dtype, trial.scalars, buffers});
}

void run_in_fp32(std::string_view name, const KernelShape& shape, const KernelScalars& scalars,
                 const std::vector<void*>& buffers) {
  kernel(name).reference({shape, DType::fp32, scalars, buffers});
}

std::string describe(const KernelTrial& trial, std::uint64_t seed) {
  constexpr const char* dtypes[] = {"fp32", "tf32", "bf16", "fp16"};
  const auto [rows, columns, depth, groups] = trial.shape;
  std::ostringstream text;
  text << trial.recipe->kernel << ' ' << rows << 'x' << columns << 'x' << depth << 'x' << groups
       << ' ' << dtypes[static_cast<int>(trial.dtype)] << " scalars";
  for (const double scalar : trial.scalars) text << ' ' << scalar;
  text << " seed " << seed;
  return text.str();
}

}  // namespace stepgate
