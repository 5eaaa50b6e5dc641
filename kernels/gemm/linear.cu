// SPDX-License-Identifier: MIT
// The CUDA side of linear: a GEMM whose epilogue adds the bias. Meaning and shapes: gemm.h.
#include "kernels/gemm/gemm.h"
#include "kernels/gemm/prepare_gemm.h"

namespace stepgate {

Launch prepare_linear(const KernelShape& shape, DType dtype, const KernelAttributes&,
                      const LaunchContext& context) {
  return prepare_gemm(kernels::Linear::name, shape, dtype, {.transpose_b = true}, Epilogue::bias,
                      context);
}

}  // namespace stepgate
