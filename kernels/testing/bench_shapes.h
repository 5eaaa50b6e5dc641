// SPDX-License-Identifier: MIT
// The sizes at which the benchmark times each kernel: a training step with tensors larger than any
// cache. A few rows of the same shape verify the result. A kernel that no such step uses gets sizes
// from its declaration and its tests.
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

// A name such as "layer_norm/32768x768".
std::string name_of(const BenchShape&);

}  // namespace stepgate
