// SPDX-License-Identifier: MIT
// Valid calls of every kernel for tests and benchmarks: which shapes and attributes are worth
// trying, and random operands of a seed. Judges no result.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "kernels/catalogue.h"

namespace stepgate {

struct KernelTrial;

// Trials that are worth making of a kernel. What its operands hold, and which may be one buffer, is
// in its declaration.
struct TrialRecipe {
  KernelRef kernel;
  std::vector<KernelShape> shapes;
  std::vector<KernelAttributes> attributes = {{}};
  // The numbers of an operand are uniform in [-1, 1), or from here on.
  std::map<std::size_t, double> lowest = {};
  // Makes inputs that depend on each other consistent, once all are filled.
  void (*settle)(KernelTrial&) = nullptr;
};

// One recipe for each kernel of the catalogue.
std::span<const TrialRecipe> trial_recipes();

// The recipe of that kernel; aborts if there is none.
const TrialRecipe& trial_recipe(std::string_view kernel);

struct KernelTrial {
  const TrialRecipe* recipe;
  KernelShape shape;
  DType dtype;
  KernelAttributes attributes;
  std::vector<std::vector<std::byte>> operands;
};

// A trial with the sizes and attributes of a kernel.
template <class Shape, class Attributes>
struct TypedTrial {
  const KernelTrial& trial;
  Shape shape;
  Attributes attributes;

  operator const KernelTrial&() const { return trial; }
};
template <class Kernel>
using TrialOf = TypedTrial<typename Kernel::Shape, typename Kernel::Attributes>;

// Operands that are only written hold 0xff bytes, which are NaN in every float format, so that a
// number that was not written shows.
KernelTrial make_trial(const TrialRecipe&, const KernelShape&, DType, const KernelAttributes&,
                       std::uint64_t seed);
template <class Kernel>
KernelTrial make_trial(const typename Kernel::Shape& shape, DType dtype,
                       const typename Kernel::Attributes& attributes, std::uint64_t seed) {
  return make_trial(trial_recipe(Kernel::name), shape, dtype, attributes, seed);
}

// Every shape and attributes of the recipe, in every dtype; each with a seed of its own.
std::vector<KernelTrial> all_trials(const TrialRecipe&, std::uint64_t seed);

// The kernel's declaration of the operand, and its bytes.
const KernelOperand& operand_of(const KernelTrial&, std::size_t operand);
std::int64_t operand_bytes(const KernelTrial&, std::size_t operand);

// The largest alignment that the CUDA side requires of an operand: GEMM libraries need whole packs.
std::int64_t alignment_bytes(const Kernel&);

// The operand that may be the same buffer as an input; no_operand where none may.
std::size_t operand_in_place(const Kernel&);

// Number i of an operand, whatever its format.
double value_at(const KernelTrial&, std::size_t operand, std::int64_t index);
std::int64_t value_count(const KernelTrial&, std::size_t operand);

// Carries the trial out on its own operands with the kernel's reference.
void run_reference(KernelTrial&);

// The same, with the operand that may be the buffer of an input in that buffer.
void run_reference_in_place(KernelTrial&);

// Calls the reference of the named kernel on these buffers, one per operand, in fp32.
void run_in_fp32(std::string_view kernel, const KernelShape&, const KernelAttributes&,
                 const std::vector<void*>& buffers);
template <class Kernel>
void run_in_fp32(const typename Kernel::Shape& shape, const typename Kernel::Attributes& attributes,
                 const std::vector<void*>& buffers) {
  run_in_fp32(Kernel::name, shape, attributes, buffers);
}

// "matmul 7x13x5x1 bf16 attributes 1 0 0 seed 42"
std::string describe(const KernelTrial&, std::uint64_t seed);

}  // namespace stepgate
