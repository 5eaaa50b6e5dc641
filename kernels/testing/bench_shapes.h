// SPDX-License-Identifier: MIT
// Which sizes the benchmark times each kernel at: those of a training step whose tensors are larger
// than any cache, and a few rows of the same on which the result is verified.
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

std::span<const BenchShape> bench_shapes();

bool uses_tensor_cores(const BenchShape&);

// "layer_norm/32768x768", with depth and groups where there are any.
std::string name_of(const BenchShape&);

}  // namespace stepgate
