// SPDX-License-Identifier: MIT
// Valid calls of every kernel for tests and benchmarks: which shapes and scalars are worth trying,
// what an operand holds, and random operands of a seed. Judges no result.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "kernels/kernel.h"

namespace stepgate {

// label: a column's index; token: one in [0, depth), both int32. scratch: bytes that a launch may
// leave anything in.
enum class OperandFormat { storage, single, label, token, count, word, scratch };

struct OperandRecipe {
  OperandFormat format;
  std::int64_t (*elements)(const KernelShape&, const KernelScalars&);
  double lowest = -1;  // of storage and single: uniform in [lowest, 1)
  // How many times the error of one rounding the CUDA side may be off; a recipe with more than 1
  // says why.
  double tolerance = 1;
};

struct KernelTrial;

struct TrialRecipe {
  std::string_view kernel;
  std::vector<OperandRecipe> operands;
  std::vector<KernelScalars> scalars;
  std::vector<KernelShape> shapes;
  // An output that may be the same buffer as an input; equal when there is none.
  int output = 0;
  int output_over = 0;
  std::int64_t alignment_bytes = 8;  // that the CUDA side asks of its operands, at most
  bool multiplies = false;           // by tensor cores, which round the factors of tf32
  // Makes inputs that depend on each other consistent, once all are filled.
  void (*settle)(KernelTrial&) = nullptr;
};

// One for each kernel of the catalogue, in its order.
std::span<const TrialRecipe> trial_recipes();

// The recipe of that kernel; aborts if there is none.
const TrialRecipe& trial_recipe(std::string_view kernel);

struct KernelTrial {
  const TrialRecipe* recipe;
  KernelShape shape;
  DType dtype;
  KernelScalars scalars;
  std::vector<std::vector<std::byte>> operands;
};

// Operands that are only written hold 0xff bytes, which are NaN in every float format, so that a
// number that was not written shows.
KernelTrial make_trial(const TrialRecipe&, const KernelShape&, DType, const KernelScalars&,
                       std::uint64_t seed);

// Every shape and scalars of the recipe, in every dtype; each with a seed of its own.
std::vector<KernelTrial> all_trials(const TrialRecipe&, std::uint64_t seed);

// Bytes of one operand.
std::int64_t operand_bytes(const KernelTrial&, std::size_t operand);

// Number i of an operand, whatever its format.
double value_at(const KernelTrial&, std::size_t operand, std::int64_t index);
std::int64_t value_count(const KernelTrial&, std::size_t operand);

// Carries the trial out on its own operands with the kernel's reference.
void run_reference(KernelTrial&);

// Calls the reference of the named kernel on these buffers, one per operand, in fp32.
void run_in_fp32(std::string_view kernel, const KernelShape&, const KernelScalars&,
                 const std::vector<void*>& buffers);

// "matmul 7x13x5x1 bf16 scalars 1 0 0 seed 42"
std::string describe(const KernelTrial&, std::uint64_t seed);

}  // namespace stepgate
