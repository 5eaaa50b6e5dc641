// SPDX-License-Identifier: MIT
// A GEMM as cuBLASLt takes it: its descriptors, the algorithms that the heuristics propose, and the
// call. gemm.cu and gemm_autotuner.cu choose among the algorithms. Only in CUDA builds.
#pragma once

#include <cublasLt.h>

#include <memory>
#include <string>
#include <vector>

#include "kernels/gemm/prepare_gemm.h"

namespace stepgate {

struct DestroyBlas {
  void operator()(cublasLtMatmulDesc_t handle) const noexcept {
    (void)cublasLtMatmulDescDestroy(handle);
  }
  void operator()(cublasLtMatrixLayout_t handle) const noexcept {
    (void)cublasLtMatrixLayoutDestroy(handle);
  }
  void operator()(cublasLtMatmulPreference_t handle) const noexcept {
    (void)cublasLtMatmulPreferenceDestroy(handle);
  }
};

class GemmCall {
 public:
  GemmCall(std::string_view kernel, const GemmShape&, const LaunchContext&);

  const GemmShape& shape() const { return shape_; }
  const std::string& kernel() const { return kernel_; }
  std::int64_t workspace_bytes() const { return context_.workspace_bytes; }

  // The algorithms that cuBLASLt's heuristics rank best, from 1 to `most`. Throws
  // std::runtime_error where there is none.
  std::vector<cublasLtMatmulAlgo_t> algorithms(int most) const;

  // Enqueues the GEMM on the kernel's operands. Throws std::runtime_error where an operand is not
  // aligned to 16 bytes or cuBLASLt refuses.
  void enqueue(void* const* buffers, const cublasLtMatmulAlgo_t&, cudaStream_t) const;

 private:
  using Description = std::unique_ptr<cublasLtMatmulDescOpaque_t, DestroyBlas>;
  using Layout = std::unique_ptr<cublasLtMatrixLayoutOpaque_t, DestroyBlas>;

  Description describe() const;
  Layout layout(cudaDataType, std::int64_t rows, std::int64_t columns) const;

  std::string kernel_;
  GemmShape shape_;
  LaunchContext context_;
  Description description_;
  // cuBLASLt is column-major, so our row-major matrices are their transposes there: C = A B becomes
  // C^T = B^T A^T. So b is cuBLASLt's first factor, and a layout's rows are our columns.
  Layout first_, second_, result_;
};

}  // namespace stepgate
