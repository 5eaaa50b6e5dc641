// SPDX-License-Identifier: MIT
// The CUDA side of matmul. Meaning and shapes: gemm.h.
#include "kernels/gemm/gemm.h"
#include "kernels/gemm/prepare_gemm.h"

namespace stepgate {

Launch prepare_matmul(const KernelShape& shape, DType dtype, const KernelAttributes& attributes,
                      const LaunchContext& context) {
  return prepare_gemm(kernels::Matmul::name, shape, dtype, attributes.as<kernels::Matmul>(),
                      Epilogue::none, context);
}

}  // namespace stepgate
