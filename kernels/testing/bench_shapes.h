// SPDX-License-Identifier: MIT
// Which sizes the benchmark times each kernel at: those of a training step whose tensors are larger
// than any cache, and a few rows of the same on which the result is verified. A kernel that no such
// step is written down for has sizes by what it declares and what is tried of it.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "kernels/kernel.h"

namespace stepgate {

struct BenchShape {
  std::string_view kernel;
  KernelShape shape;
  KernelShape verified;
  KernelAttributes attributes{};
};

// At least one shape for every kernel of the catalogue.
std::span<const BenchShape> bench_shapes();

bool uses_tensor_cores(const BenchShape&);

// "layer_norm/32768x768".
std::string name_of(const BenchShape&);

}  // namespace stepgate
