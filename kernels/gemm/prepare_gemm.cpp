// SPDX-License-Identifier: MIT
#include "kernels/gemm/prepare_gemm.h"

#include "kernels/gemm/gemm_autotuner.h"
#include "kernels/gemm/gemm_call.h"

namespace stepgate {

Launch prepare_gemm(std::string_view kernel, const kernels::Matmul::Shape& shape, DType dtype,
                    const kernels::Matmul::Attributes& asked, Epilogue epilogue,
                    const LaunchContext& context, Factors factors) {
  const GemmShape gemm{.shape = shape,
                       .dtype = dtype,
                       .transpose_a = asked.transpose_a,
                       .transpose_b = asked.transpose_b,
                       .accumulate = asked.accumulate,
                       .epilogue = epilogue,
                       .factors = factors,
                       .spare_multiprocessors = asked.spare_multiprocessors};
  const auto call = std::make_shared<const GemmCall>(kernel, gemm, context);
  const cublasLtMatmulAlgo_t algorithm = context.gemm_autotuner
                                             ? context.gemm_autotuner->algorithm_for(*call)
                                             : call->algorithms(1).front();
  return [call, algorithm](void* const* buffers, cudaStream_t stream) {
    call->enqueue(buffers, algorithm, stream);
  };
}

Launch kernels::Matmul::prepare(const Shape& shape, DType dtype, const Attributes& attributes,
                                const LaunchContext& context) {
  return prepare_gemm(kernels::Matmul::name, shape, dtype, attributes, Epilogue::none, context);
}

Launch kernels::Linear::prepare(const Shape& shape, DType dtype, const Attributes&,
                                const LaunchContext& context) {
  return prepare_gemm(kernels::Linear::name, shape, dtype, {.transpose_b = true}, Epilogue::bias,
                      context);
}

Launch kernels::MatmulFp8::prepare(const Shape& shape, DType dtype, const Attributes& attributes,
                                   const LaunchContext& context) {
  return prepare_gemm(name, shape, dtype,
                      {.transpose_b = true,
                       .accumulate = attributes.accumulate,
                       .spare_multiprocessors = attributes.spare_multiprocessors},
                      Epilogue::none, context,
                      attributes.gradient ? Factors::e5m2_by_e4m3 : Factors::e4m3);
}

Launch kernels::LinearFp8::prepare(const Shape& shape, DType dtype, const Attributes&,
                                   const LaunchContext& context) {
  return prepare_gemm(name, shape, dtype, {.transpose_b = true}, Epilogue::bias, context,
                      Factors::e4m3);
}

Launch kernels::LinearGelu::prepare(const Shape& shape, DType dtype, const Attributes&,
                                    const LaunchContext& context) {
  return prepare_gemm(name, shape, dtype, {.transpose_b = true}, Epilogue::bias_gelu, context);
}

Launch kernels::MatmulGeluGradient::prepare(const Shape& shape, DType dtype, const Attributes&,
                                            const LaunchContext& context) {
  return prepare_gemm(name, shape, dtype, {}, Epilogue::gelu_gradient, context);
}

}  // namespace stepgate
