// SPDX-License-Identifier: MIT
// The CUDA side of matmul. Meaning and shapes: matmul.h.
#include "kernels/matmul/matmul.h"
#include "kernels/matmul/product.h"

namespace stepgate {

// --- launcher ------------------------------------------------------------------------------------

Launch prepare_matmul(const KernelShape& shape, DType dtype, const KernelScalars& scalars,
                      const LaunchContext& context) {
  return prepare_product("matmul", shape, dtype, scalars, Epilogue::none, context);
}

}  // namespace stepgate
