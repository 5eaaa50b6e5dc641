// SPDX-License-Identifier: MIT
// The one launcher of all kernels that are GEMMs by cuBLASLt, with or without an epilogue. Only in
// CUDA builds. gemm.h defines shapes and attributes.
#pragma once

#include <string_view>

#include "kernels/gemm/gemm.h"

namespace stepgate {

// Operation on the result before it is stored, and the operands of the GEMM with it.
enum class Epilogue {
  none,          // a, b, c
  bias,          // a, b, bias ([columns]), c
  bias_gelu,     // a, b, bias, the sum before the gelu (written, as large as c), c
  gelu_gradient  // a, b, what the gelu read (as large as c), c
};

constexpr bool has_bias(Epilogue epilogue) {
  return epilogue == Epilogue::bias || epilogue == Epilogue::bias_gelu;
}
constexpr bool has_gelu(Epilogue epilogue) {
  return epilogue == Epilogue::bias_gelu || epilogue == Epilogue::gelu_gradient;
}

// The factors of the GEMM. Those in fp8 are bytes, and their inverse scales follow b.
enum class Factors {
  stored,       // of the dtype, as the result is
  e4m3,         // both
  e5m2_by_e4m3  // the first is a gradient, and is summed more exactly
};

// A GEMM without the addresses of its operands; equal ones share an algorithm.
struct GemmShape {
  kernels::Matmul::Shape shape;
  DType dtype = DType::fp32;
  bool transpose_a = false;
  bool transpose_b = false;
  bool accumulate = false;
  Epilogue epilogue = Epilogue::none;
  Factors factors = Factors::stored;
  int spare_multiprocessors = 0;

  bool operator==(const GemmShape&) const = default;
};

Launch prepare_gemm(std::string_view kernel, const kernels::Matmul::Shape&, DType,
                    const kernels::Matmul::Attributes&, Epilogue, const LaunchContext&,
                    Factors = Factors::stored);

}  // namespace stepgate
