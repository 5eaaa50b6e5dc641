// SPDX-License-Identifier: MIT
// The CUDA side of linear: a GEMM whose epilogue adds the bias. Meaning and shapes: linear.h.
#include "kernels/linear/linear.h"
#include "kernels/matmul/gemm.h"
#include "kernels/matmul/matmul.h"

namespace stepgate {

// --- launcher ------------------------------------------------------------------------------------

Launch prepare_linear(const KernelShape& shape, DType dtype, const KernelAttributes&,
                      const LaunchContext& context) {
  return prepare_gemm(kernels::Linear::name, shape, dtype, {.transpose_b = true}, Epilogue::bias,
                      context);
}

}  // namespace stepgate
