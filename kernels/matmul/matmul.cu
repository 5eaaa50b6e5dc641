// SPDX-License-Identifier: MIT
// The CUDA side of matmul. Meaning and shapes: matmul.h.
#include "kernels/matmul/gemm.h"
#include "kernels/matmul/matmul.h"

namespace stepgate {

// --- launcher ------------------------------------------------------------------------------------

Launch prepare_matmul(const KernelShape& shape, DType dtype, const KernelAttributes& attributes,
                      const LaunchContext& context) {
  return prepare_gemm(kernels::Matmul::name, shape, dtype, attributes.as<kernels::Matmul>(),
                      Epilogue::none, context);
}

}  // namespace stepgate
