// SPDX-License-Identifier: MIT
#include "kernels/matmul/product.h"

#include "kernels/matmul/matmul.h"
#include "kernels/matmul/measured_products.h"
#include "kernels/matmul/product_call.h"

namespace stepgate {

// --- launcher ------------------------------------------------------------------------------------

Launch prepare_product(std::string_view kernel, const KernelShape& shape, DType dtype,
                       const KernelScalars& scalars, Epilogue epilogue,
                       const LaunchContext& context) {
  const ProductShape product{.shape = shape,
                             .dtype = dtype,
                             .transpose_a = scalars[matmul_scalar::transpose_a] != 0,
                             .transpose_b = scalars[matmul_scalar::transpose_b] != 0,
                             .accumulate = scalars[matmul_scalar::accumulate] != 0,
                             .epilogue = epilogue};
  const auto call = std::make_shared<const ProductCall>(kernel, product, context);
  const cublasLtMatmulAlgo_t algorithm =
      context.products ? context.products->algorithm_for(*call) : call->algorithms(1).front();
  return [call, algorithm](void* const* buffers, cudaStream_t stream) {
    call->enqueue(buffers, algorithm, stream);
  };
}

}  // namespace stepgate
