// SPDX-License-Identifier: MIT
#include "kernels/gemm/gemm_call.h"

#include <algorithm>
#include <cstdint>
#include <stdexcept>

namespace stepgate {
namespace {

constexpr std::uint32_t alignment_bytes = 16;  // of a, b, c and scales

void check(cublasStatus_t status, std::string_view what) {
  if (status == CUBLAS_STATUS_SUCCESS) return;
  throw std::runtime_error("GEMM: " + std::string(what) + ": " + cublasLtGetStatusString(status));
}

cudaDataType storage(DType dtype) {
  if (dtype == DType::bf16) return CUDA_R_16BF;
  return dtype == DType::fp16 ? CUDA_R_16F : CUDA_R_32F;
}

// The type of cuBLASLt's first factor, which is b, and of its second, which is a.
cudaDataType type_of_first(const GemmShape& gemm) {
  return gemm.factors == Factors::stored ? storage(gemm.dtype) : CUDA_R_8F_E4M3;
}
cudaDataType type_of_second(const GemmShape& gemm) {
  return gemm.factors == Factors::e5m2_by_e4m3 ? CUDA_R_8F_E5M2 : type_of_first(gemm);
}

// Multiprocessors of the current device minus those to leave free; at least one.
std::int32_t multiprocessors_less(int spare) {
  int device = 0, multiprocessors = 0;
  if (cudaGetDevice(&device) != cudaSuccess ||
      cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, device) !=
          cudaSuccess) {
    throw std::runtime_error("GEMM: the device does not say how many multiprocessors it has");
  }
  return std::max(1, multiprocessors - spare);
}

cublasLtEpilogue_t of_cublaslt(Epilogue epilogue) {
  switch (epilogue) {
    case Epilogue::bias:
      return CUBLASLT_EPILOGUE_BIAS;
    case Epilogue::bias_gelu:
      return CUBLASLT_EPILOGUE_GELU_AUX_BIAS;
    case Epilogue::gelu_gradient:
      return CUBLASLT_EPILOGUE_DGELU;
    case Epilogue::none:
      break;
  }
  return CUBLASLT_EPILOGUE_DEFAULT;
}

using Preference = std::unique_ptr<cublasLtMatmulPreferenceOpaque_t, DestroyBlas>;

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
  // A deep GEMM with a small result, such as a weight's gradient, fills the device only when its
  // depth is split. A second kernel then adds the parts up, in fp32 and always in the same order.
  set(CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK,
      static_cast<std::uint32_t>(CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE));
  // Tensors lie at offsets within larger buffers; the default would assume alignment to 256 bytes.
  for (const auto which :
       {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
        CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES}) {
    set(which, alignment_bytes);
  }
  return preference;
}

}  // namespace

GemmCall::GemmCall(std::string_view kernel, const GemmShape& shape, const LaunchContext& context)
    : kernel_(kernel), shape_(shape), context_(context), description_(describe()) {
  const auto [m, n, k, groups] = shape.shape;
  const cudaDataType first = type_of_first(shape), second = type_of_second(shape);
  first_ = shape.transpose_b ? layout(first, k, n) : layout(first, n, k);
  second_ = shape.transpose_a ? layout(second, m, k) : layout(second, k, m);
  result_ = layout(storage(shape.dtype), n, m);
}

GemmCall::Layout GemmCall::layout(cudaDataType type, std::int64_t rows,
                                  std::int64_t columns) const {
  cublasLtMatrixLayout_t handle = nullptr;
  check(cublasLtMatrixLayoutCreate(&handle, type, static_cast<std::uint64_t>(rows),
                                   static_cast<std::uint64_t>(columns), rows),
        "create a layout");
  Layout made(handle);
  const auto set = [&](cublasLtMatrixLayoutAttribute_t which, auto value) {
    check(cublasLtMatrixLayoutSetAttribute(handle, which, &value, sizeof value), "set a batch");
  };
  set(CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, static_cast<std::int32_t>(shape_.shape.groups));
  set(CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, rows * columns);
  return made;
}

GemmCall::Description GemmCall::describe() const {
  const auto arithmetic =
      shape_.dtype == DType::tf32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F;
  cublasLtMatmulDesc_t handle = nullptr;
  check(cublasLtMatmulDescCreate(&handle, arithmetic, CUDA_R_32F), "create a description");
  Description description(handle);
  const auto set = [&](cublasLtMatmulDescAttributes_t which, auto value) {
    check(cublasLtMatmulDescSetAttribute(handle, which, &value, sizeof value),
          "set what the GEMM is");
  };
  set(CUBLASLT_MATMUL_DESC_TRANSA, shape_.transpose_b ? CUBLAS_OP_T : CUBLAS_OP_N);
  set(CUBLASLT_MATMUL_DESC_TRANSB, shape_.transpose_a ? CUBLAS_OP_T : CUBLAS_OP_N);
  set(CUBLASLT_MATMUL_DESC_EPILOGUE, of_cublaslt(shape_.epilogue));
  if (has_bias(shape_.epilogue)) set(CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, storage(shape_.dtype));
  if (has_gelu(shape_.epilogue)) set(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, shape_.shape.columns);
  // Sums of tensor cores have fewer bits than fp32. Without this, others add them up now and then.
  if (shape_.factors == Factors::e4m3) set(CUBLASLT_MATMUL_DESC_FAST_ACCUM, std::int8_t{1});
  if (shape_.spare_multiprocessors > 0) {
    set(CUBLASLT_MATMUL_DESC_SM_COUNT_TARGET, multiprocessors_less(shape_.spare_multiprocessors));
  }
  return description;
}

std::vector<cublasLtMatmulAlgo_t> GemmCall::algorithms(int most) const {
  const Preference preference = preference_for(context_);
  std::vector<cublasLtMatmulHeuristicResult_t> results(static_cast<std::size_t>(most));
  int found = 0;
  check(
      cublasLtMatmulAlgoGetHeuristic(static_cast<cublasLtHandle_t>(context_.blas),
                                     description_.get(), first_.get(), second_.get(), result_.get(),
                                     result_.get(), preference.get(), most, results.data(), &found),
      "choose an algorithm");
  results.resize(static_cast<std::size_t>(found));
  std::vector<cublasLtMatmulAlgo_t> algorithms;
  for (const cublasLtMatmulHeuristicResult_t& result : results)
    if (result.state == CUBLAS_STATUS_SUCCESS) algorithms.push_back(result.algo);
  if (algorithms.empty())
    throw std::runtime_error(kernel_ + ": cuBLASLt has no algorithm for this shape");
  return algorithms;
}

void GemmCall::enqueue(void* const* buffers, const cublasLtMatmulAlgo_t& algorithm,
                       cudaStream_t stream) const {
  const void* a = buffers[0];
  const void* b = buffers[1];
  void* const* next = buffers + 2;
  const bool has_scales = shape_.factors != Factors::stored;
  void* const* const scale_of_a = has_scales ? next++ : nullptr;
  void* const* const scale_of_b = has_scales ? next++ : nullptr;
  void* const* const bias = has_bias(shape_.epilogue) ? next++ : nullptr;
  void* const* const of_gelu = has_gelu(shape_.epilogue) ? next++ : nullptr;
  void* c = *next;
  const auto is_aligned = [](const void* operand) {
    return reinterpret_cast<std::uintptr_t>(operand) % alignment_bytes == 0;
  };
  if (!is_aligned(a) || !is_aligned(b) || !is_aligned(c) ||
      (of_gelu != nullptr && !is_aligned(*of_gelu)) ||
      (has_scales && (!is_aligned(*scale_of_a) || !is_aligned(*scale_of_b)))) {
    throw std::runtime_error(kernel_ + ": an operand is not aligned to 16 bytes");
  }
  const auto point_at = [&](cublasLtMatmulDescAttributes_t which, void* const* operand) {
    if (operand == nullptr) return;
    check(cublasLtMatmulDescSetAttribute(description_.get(), which, operand, sizeof *operand),
          "set an operand");
  };
  point_at(CUBLASLT_MATMUL_DESC_A_SCALE_POINTER, scale_of_b);
  point_at(CUBLASLT_MATMUL_DESC_B_SCALE_POINTER, scale_of_a);
  point_at(CUBLASLT_MATMUL_DESC_BIAS_POINTER, bias);
  point_at(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, of_gelu);
  const float alpha = 1.0f, beta = shape_.accumulate ? 1.0f : 0.0f;
  check(cublasLtMatmul(static_cast<cublasLtHandle_t>(context_.blas), description_.get(), &alpha, b,
                       first_.get(), a, second_.get(), &beta, c, result_.get(), c, result_.get(),
                       &algorithm, context_.workspace,
                       static_cast<std::size_t>(context_.workspace_bytes), stream),
        "launch");
}

}  // namespace stepgate
