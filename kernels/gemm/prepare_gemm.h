// SPDX-License-Identifier: MIT
// A GEMM by cuBLASLt, with or without what it can do on its way out: the one launcher of all
// kernels that multiply matrices. Only in CUDA builds. gemm.h says what shapes and attributes
// mean.
#pragma once

#include <string_view>

#include "kernels/gemm/gemm.h"

namespace stepgate {

// Operation on the result before it is stored.
enum class Epilogue {
  none,  // operands a, b, c
  bias   // operands a, b, bias ([columns]), c
};

// A GEMM without the addresses of its operands; equal ones may use the same algorithm.
struct GemmShape {
  kernels::Matmul::Shape shape;
  DType dtype = DType::fp32;
  bool transpose_a = false;
  bool transpose_b = false;
  bool accumulate = false;
  Epilogue epilogue = Epilogue::none;
  int spare_multiprocessors = 0;

  bool operator==(const GemmShape&) const = default;
};

Launch prepare_gemm(std::string_view kernel, const kernels::Matmul::Shape&, DType,
                    const kernels::Matmul::Attributes&, Epilogue, const LaunchContext&);

}  // namespace stepgate
