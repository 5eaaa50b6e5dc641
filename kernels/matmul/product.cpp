// SPDX-License-Identifier: MIT
#include "kernels/matmul/product.h"

#include "kernels/matmul/measured_products.h"
#include "kernels/matmul/product_call.h"

namespace stepgate {

// --- launcher ------------------------------------------------------------------------------------

Launch prepare_product(std::string_view kernel, const KernelShape& shape, DType dtype,
                       const kernels::Matmul::Attributes& asked, Epilogue epilogue,
                       const LaunchContext& context) {
  const ProductShape product{.shape = shape,
                             .dtype = dtype,
                             .transpose_a = asked.transpose_a,
                             .transpose_b = asked.transpose_b,
                             .accumulate = asked.accumulate,
                             .epilogue = epilogue};
  const auto call = std::make_shared<const ProductCall>(kernel, product, context);
  const cublasLtMatmulAlgo_t algorithm =
      context.products ? context.products->algorithm_for(*call) : call->algorithms(1).front();
  return [call, algorithm](void* const* buffers, cudaStream_t stream) {
    call->enqueue(buffers, algorithm, stream);
  };
}

}  // namespace stepgate
