// SPDX-License-Identifier: MIT
// Valid calls of every kernel for tests and benchmarks: the shapes and attributes to try, and
// random operands from a seed. It judges no result.
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

// The trials to make of a kernel. The kernel's declaration has the operands, and says which may
// share a buffer.
struct TrialRecipe {
  KernelRef kernel;
  std::vector<KernelShape> shapes;
  std::vector<KernelAttributes> attributes = {{}};
  // By operand: the numbers are uniform in [lowest, 1), and in [-1, 1) if the operand is not
  // listed.
  std::map<std::size_t, double> lowest = {};
  // The operands in which a launch leaves the device's clock, and clocks each followed by a
  // multiprocessor, as far as the kernel has them.
  std::size_t clock = no_operand;
  std::size_t stamps = no_operand;
  // Makes inputs that depend on each other consistent, after all are filled.
  void (*settle)(KernelTrial&) = nullptr;
  std::vector<DType> dtypes = {DType::fp32, DType::tf32, DType::bf16, DType::fp16};
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

// A trial with a kernel's own Shape and Attributes types.
template <class Shape, class Attributes>
struct TypedTrial {
  const KernelTrial& trial;
  Shape shape;
  Attributes attributes;

  operator const KernelTrial&() const { return trial; }
};
template <class Kernel>
using TrialOf = TypedTrial<typename Kernel::Shape, typename Kernel::Attributes>;

// Makes a trial with random inputs. Operands that are only written hold 0xff bytes, which are NaN
// in every float format, so that a missing write is noticed.
KernelTrial make_trial(const TrialRecipe&, const KernelShape&, DType, const KernelAttributes&,
                       std::uint64_t seed);
template <class Kernel>
KernelTrial make_trial(const typename Kernel::Shape& shape, DType dtype,
                       const typename Kernel::Attributes& attributes, std::uint64_t seed) {
  return make_trial(trial_recipe(Kernel::name), shape, dtype, attributes, seed);
}

// Trials of all shapes, attributes and dtypes of the recipe; each has its own seed.
std::vector<KernelTrial> all_trials(const TrialRecipe&, std::uint64_t seed);

// The kernel's declaration of the operand, and the operand's size in bytes.
const KernelOperand& operand_of(const KernelTrial&, std::size_t operand);
std::int64_t operand_bytes(const KernelTrial&, std::size_t operand);

// The operand that may share the buffer of an input; no_operand where none may.
std::size_t operand_in_place(const Kernel&);

// Element i of an operand of any format, and below the number of elements.
double value_at(const KernelTrial&, std::size_t operand, std::int64_t index);
std::int64_t value_count(const KernelTrial&, std::size_t operand);

// Runs the kernel's reference on the trial's own operands.
void run_reference(KernelTrial&);

// Runs the reference with the output of operand_in_place in the buffer of its input.
void run_reference_in_place(KernelTrial&);

// Calls the reference of the named kernel on these buffers, one per operand, in fp32.
void run_in_fp32(std::string_view kernel, const KernelShape&, const KernelAttributes&,
                 const std::vector<void*>& buffers);
template <class Kernel>
void run_in_fp32(const typename Kernel::Shape& shape, const typename Kernel::Attributes& attributes,
                 const std::vector<void*>& buffers) {
  run_in_fp32(Kernel::name, shape, attributes, buffers);
}

// ||got - expected|| / ||expected|| of one operand; NaN when any number is NaN. For
// single-precision operands (losses, moments) the norm of `expected` counts as at least 1 per
// element: a mean of numbers of size 1 may cancel almost to 0.
double relative_error(const KernelTrial& got, const KernelTrial& expected, std::size_t operand);

// The largest relative error of an operand that rounding explains. GEMMs in tf32 round factors to
// 10 bits of mantissa, each with an error of at most 2^-10; fp32 operands of a bf16 kernel stay
// fp32.
double error_bound(const KernelTrial&, std::size_t operand);

// Whether the operand holds the device's clocks and multiprocessors, which the reference leaves 0.
bool is_clock(const KernelTrial&, std::size_t operand);

// Says in words what differs in an operand of two trials: its error or that of one number is
// beyond what rounding explains, or whole numbers are others. Empty where nothing does. Of clocks
// it says only whether they are missing.
std::string difference(const KernelTrial& got, const KernelTrial& expected, std::size_t operand);
// The name and the difference of the first operand that has one; scratch has none.
std::string difference(const KernelTrial& got, const KernelTrial& expected);

// A description such as "matmul 7x13x5x1 bf16 attributes 1 0 0 seed 42".
std::string describe(const KernelTrial&, std::uint64_t seed);

}  // namespace stepgate
