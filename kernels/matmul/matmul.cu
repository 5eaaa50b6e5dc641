// SPDX-License-Identifier: MIT
// The CUDA side of matmul. Meaning and shapes: matmul.h.
#include "kernels/matmul/matmul.h"
#include "kernels/matmul/product.h"

namespace stepgate {

// --- launcher ------------------------------------------------------------------------------------

Launch prepare_matmul(const KernelShape& shape, DType dtype, const KernelAttributes& attributes,
                      const LaunchContext& context) {
  return prepare_product(kernels::Matmul::name, shape, dtype, attributes.as<kernels::Matmul>(),
                         Epilogue::none, context);
}

}  // namespace stepgate
