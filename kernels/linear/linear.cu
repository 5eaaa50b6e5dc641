// SPDX-License-Identifier: MIT
// The CUDA side of linear: a product whose epilogue adds the bias. Meaning and shapes: linear.h.
#include "kernels/linear/linear.h"
#include "kernels/matmul/matmul.h"
#include "kernels/matmul/product.h"

namespace stepgate {

// --- launcher ------------------------------------------------------------------------------------

Launch prepare_linear(const KernelShape& shape, DType dtype, const KernelAttributes&,
                      const LaunchContext& context) {
  return prepare_product(kernels::Linear::name, shape, dtype, {.transpose_b = true}, Epilogue::bias,
                         context);
}

}  // namespace stepgate
