// SPDX-License-Identifier: MIT
// cuBLASLt, whose algorithm is chosen once, in prepare.
#include "kernels/matmul/product.h"

#include <cublasLt.h>

#include <memory>

#include "kernels/launch.cuh"
#include "kernels/matmul/matmul.h"

namespace stepgate {
namespace {

// --- descriptors ---------------------------------------------------------------------------------

void check(cublasStatus_t status, std::string_view what) {
  if (status == CUBLAS_STATUS_SUCCESS) return;
  throw std::runtime_error("product: " + std::string(what) + ": " +
                           cublasLtGetStatusString(status));
}

template <auto destroy>
struct Destroy {
  template <class Handle>
  void operator()(Handle* handle) const noexcept {
    (void)destroy(handle);
  }
};
using Description = std::unique_ptr<cublasLtMatmulDescOpaque_t, Destroy<cublasLtMatmulDescDestroy>>;
using Layout = std::unique_ptr<cublasLtMatrixLayoutOpaque_t, Destroy<cublasLtMatrixLayoutDestroy>>;
using Preference =
    std::unique_ptr<cublasLtMatmulPreferenceOpaque_t, Destroy<cublasLtMatmulPreferenceDestroy>>;

cudaDataType storage(DType dtype) {
  if (dtype == DType::bf16) return CUDA_R_16BF;
  return dtype == DType::fp16 ? CUDA_R_16F : CUDA_R_32F;
}

// cuBLASLt is column-major, where our row-major matrices are their own transposes: C = A B becomes
// C^T = B^T A^T, so b is cuBLAS's first factor, and a layout's rows are our columns.
struct Product {
  Description description;
  Layout first, second, result;
  cublasLtMatmulAlgo_t algorithm;
  LaunchContext context;
  float beta;
  Epilogue epilogue;
  std::string kernel;
};

Layout layout(DType dtype, std::int64_t rows, std::int64_t columns, std::int64_t groups) {
  cublasLtMatrixLayout_t handle = nullptr;
  check(cublasLtMatrixLayoutCreate(&handle, storage(dtype), static_cast<std::uint64_t>(rows),
                                   static_cast<std::uint64_t>(columns), rows),
        "create a layout");
  Layout made(handle);
  const auto set = [&](cublasLtMatrixLayoutAttribute_t which, auto value) {
    check(cublasLtMatrixLayoutSetAttribute(handle, which, &value, sizeof value), "set a batch");
  };
  set(CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, static_cast<std::int32_t>(groups));
  set(CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, rows * columns);
  return made;
}

Description describe(DType dtype, const KernelScalars& scalars, Epilogue epilogue) {
  const auto arithmetic = dtype == DType::tf32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F;
  cublasLtMatmulDesc_t handle = nullptr;
  check(cublasLtMatmulDescCreate(&handle, arithmetic, CUDA_R_32F), "create a description");
  Description description(handle);
  const auto transpose = [&](cublasLtMatmulDescAttributes_t which, std::size_t scalar) {
    const cublasOperation_t operation = scalars[scalar] != 0 ? CUBLAS_OP_T : CUBLAS_OP_N;
    check(cublasLtMatmulDescSetAttribute(handle, which, &operation, sizeof operation),
          "set a transposition");
  };
  transpose(CUBLASLT_MATMUL_DESC_TRANSA, matmul_scalar::transpose_b);
  transpose(CUBLASLT_MATMUL_DESC_TRANSB, matmul_scalar::transpose_a);
  if (epilogue == Epilogue::none) return description;
  const auto set = [&](cublasLtMatmulDescAttributes_t which, auto value) {
    check(cublasLtMatmulDescSetAttribute(handle, which, &value, sizeof value), "set an epilogue");
  };
  set(CUBLASLT_MATMUL_DESC_EPILOGUE, CUBLASLT_EPILOGUE_BIAS);
  set(CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, storage(dtype));
  return description;
}

// --- choice of the algorithm ---------------------------------------------------------------------

Preference preference_for(const LaunchContext& context) {
  cublasLtMatmulPreference_t handle = nullptr;
  check(cublasLtMatmulPreferenceCreate(&handle), "create a preference");
  Preference preference(handle);
  const auto set = [&](cublasLtMatmulPreferenceAttributes_t which, auto value) {
    check(cublasLtMatmulPreferenceSetAttribute(handle, which, &value, sizeof value),
          "set a preference");
  };
  set(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES,
      static_cast<std::uint64_t>(context.workspace_bytes));
  // A deep product of a small result, such as a weight's gradient, fills the device only when its
  // depth is split. A second kernel then adds the parts up, in fp32 and always in the same order.
  set(CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK,
      static_cast<std::uint32_t>(CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE));
  // Tensors lie at offsets within larger buffers; the default would promise 256 bytes.
  for (const auto which :
       {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
        CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES}) {
    set(which, static_cast<std::uint32_t>(access_bytes));
  }
  return preference;
}

void choose_algorithm(Product& product) {
  const Preference preference = preference_for(product.context);
  cublasLtMatmulHeuristicResult_t best{};
  int found = 0;
  check(cublasLtMatmulAlgoGetHeuristic(static_cast<cublasLtHandle_t>(product.context.blas),
                                       product.description.get(), product.first.get(),
                                       product.second.get(), product.result.get(),
                                       product.result.get(), preference.get(), 1, &best, &found),
        "choose an algorithm");
  if (found == 0)
    throw std::runtime_error(product.kernel + ": cuBLASLt has no algorithm for this shape");
  product.algorithm = best.algo;
}

void multiply(const Product& product, void* const* buffers, cudaStream_t stream) {
  const bool adds_bias = product.epilogue == Epilogue::bias;
  const void* a = buffers[0];
  const void* b = buffers[1];
  void* c = buffers[adds_bias ? 3 : 2];
  if (!aligned_to_access(static_cast<const char*>(a), static_cast<const char*>(b),
                         static_cast<const char*>(c))) {
    throw std::runtime_error(product.kernel + ": an operand is not aligned to 16 bytes");
  }
  if (adds_bias) {
    check(
        cublasLtMatmulDescSetAttribute(product.description.get(), CUBLASLT_MATMUL_DESC_BIAS_POINTER,
                                       &buffers[2], sizeof buffers[2]),
        "set the bias");
  }
  const float alpha = 1.0f;
  check(cublasLtMatmul(static_cast<cublasLtHandle_t>(product.context.blas),
                       product.description.get(), &alpha, b, product.first.get(), a,
                       product.second.get(), &product.beta, c, product.result.get(), c,
                       product.result.get(), &product.algorithm, product.context.workspace,
                       static_cast<std::size_t>(product.context.workspace_bytes), stream),
        "launch");
}

}  // namespace

// --- launcher ------------------------------------------------------------------------------------

Launch prepare_product(std::string_view kernel, const KernelShape& shape, DType dtype,
                       const KernelScalars& scalars, Epilogue epilogue,
                       const LaunchContext& context) {
  const auto [m, n, k, groups] = shape;
  const bool transpose_a = scalars[matmul_scalar::transpose_a] != 0;
  const bool transpose_b = scalars[matmul_scalar::transpose_b] != 0;
  const auto product = std::make_shared<Product>();
  product->kernel = kernel;
  product->epilogue = epilogue;
  product->description = describe(dtype, scalars, epilogue);
  product->first = transpose_b ? layout(dtype, k, n, groups) : layout(dtype, n, k, groups);
  product->second = transpose_a ? layout(dtype, m, k, groups) : layout(dtype, k, m, groups);
  product->result = layout(dtype, n, m, groups);
  product->context = context;
  product->beta = scalars[matmul_scalar::accumulate] != 0 ? 1.0f : 0.0f;
  choose_algorithm(*product);
  return
      [product](void* const* buffers, cudaStream_t stream) { multiply(*product, buffers, stream); };
}

}  // namespace stepgate
