// SPDX-License-Identifier: MIT
// How a family declares its kernels: by functions of a kernel's own shape and attributes. The rows
// of the catalogue are built from them. A kernel is named by a struct in namespace `kernels` with
// its `name`, Shape and Attributes. Except for kernels of tests, it also has a CUDA launcher
//   static Launch prepare(const Shape&, DType, const Attributes&, const LaunchContext&);
#pragma once

#include <array>
#include <concepts>
#include <cstddef>

#include "kernels/kernel.h"

namespace stepgate {

// KernelCall with the shape and attributes of a kernel.
template <class Shape, class Attributes>
struct TypedCall {
  Shape shape;
  DType dtype;
  Attributes attributes;
  std::span<void* const> buffers;
};
template <class Kernel>
using CallOf = TypedCall<typename Kernel::Shape, typename Kernel::Attributes>;

// A stateless function of a launch of the kernel. It takes the sizes, the sizes and attributes, or
// the sizes, dtype and attributes. Sizes are passed as CheckedSize, or as the kernel's Shape if the
// function requires that.
template <class Kernel, class Result>
struct LaunchFunction {
  OfLaunch<Result> function = nullptr;

  constexpr operator OfLaunch<Result>() const { return function; }
  constexpr LaunchFunction() = default;
  template <class Function>
  requires std::is_empty_v<Function>
  constexpr LaunchFunction(Function)
      : function([](const KernelShape& shape, DType dtype,
                    const KernelAttributes& attributes) -> Result {
          const auto sizes = shape.as<Kernel>();
          const auto told = attributes.as<Kernel>();
          const Function of{};
          if constexpr (requires { of(checked(sizes), dtype, told); })
            return of(checked(sizes), dtype, told);
          else if constexpr (requires { of(checked(sizes), told); })
            return of(checked(sizes), told);
          else if constexpr (requires { of(checked(sizes)); })
            return of(checked(sizes));
          else if constexpr (requires { of(sizes, dtype, told); })
            return of(sizes, dtype, told);
          else
            return of(sizes, told);
        }) {}
};

// Like LaunchFunction, for a function of the attributes alone.
template <class Kernel, class Result>
struct AttributesFunction {
  OfAttributes<Result> function = nullptr;

  constexpr operator OfAttributes<Result>() const { return function; }
  constexpr AttributesFunction() = default;
  template <class Function>
  requires std::is_empty_v<Function>
  constexpr AttributesFunction(Function)
      : function([](const KernelAttributes& attributes) -> Result {
          return Function{}(attributes.as<Kernel>());
        }) {}
};

// KernelOperand, declared with functions of a kernel's own shape and attributes.
template <class Kernel>
struct OperandOf {
  std::string_view name = {};
  Access access = Access::read;
  LaunchFunction<Kernel, CheckedSize> elements = {};
  OperandFormat format = OperandFormat::storage;
  AttributesFunction<Kernel, bool> accumulates = {};
  LaunchFunction<Kernel, CheckedSize> touched = {};
  bool keeps_rest = false;
  std::size_t may_replace = no_operand;
  LaunchFunction<Kernel, CheckedSize> below = {};
};

template <class Kernel, std::size_t count>
constexpr std::array<KernelOperand, count> operands_of(const OperandOf<Kernel> (&declared)[count]) {
  std::array<KernelOperand, count> operands;
  for (std::size_t index = 0; index < count; ++index) {
    const OperandOf<Kernel>& each = declared[index];
    operands[index] = {.name = each.name,
                       .access = each.access,
                       .elements = each.elements,
                       .format = each.format,
                       .accumulates = each.accumulates,
                       .touched = each.touched,
                       .keeps_rest = each.keeps_rest,
                       .may_replace = each.may_replace,
                       .below = each.below};
  }
  return operands;
}

template <class Kernel, auto reference>
stepgate::Kernel row(std::span<const KernelOperand> operands,
                     LaunchFunction<Kernel, CheckedSize> flops, const KernelLibrary& library = {},
                     const KernelCost& cost = {}) {
  stepgate::Kernel made{.name = Kernel::name,
                        .operands = operands,
                        .flops = flops,
                        .reference =
                            [](const KernelCall& call) {
                              reference(CallOf<Kernel>{call.shape.as<Kernel>(), call.dtype,
                                                       call.attributes.as<Kernel>(), call.buffers});
                            },
                        .prepare = nullptr,
                        .library = library,
                        .cost = cost};
#ifdef STEPGATE_WITH_CUDA
  if constexpr (requires { &Kernel::prepare; }) {
    made.prepare = [](const KernelShape& shape, DType dtype, const KernelAttributes& attributes,
                      const LaunchContext& context) {
      return Kernel::prepare(shape.as<Kernel>(), dtype, attributes.as<Kernel>(), context);
    };
  }
#endif
  return made;
}

}  // namespace stepgate
