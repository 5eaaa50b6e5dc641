// SPDX-License-Identifier: MIT
// The CUDA side of linear: a product whose epilogue adds the bias. Meaning and shapes: linear.h.
#include "kernels/linear/linear.h"
#include "kernels/matmul/matmul.h"
#include "kernels/matmul/product.h"

namespace stepgate {

// --- launcher ------------------------------------------------------------------------------------

Launch prepare_linear(const KernelShape& shape, DType dtype, const KernelScalars&,
                      const LaunchContext& context) {
  KernelScalars scalars{};
  scalars[matmul_scalar::transpose_b] = 1;
  return prepare_product("linear", shape, dtype, scalars, Epilogue::bias, context);
}

}  // namespace stepgate
