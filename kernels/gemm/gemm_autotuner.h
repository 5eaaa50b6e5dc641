// SPDX-License-Identifier: MIT
// Chooses the cuBLASLt algorithm of a GEMM by measuring: among those that give the same bits as the
// one that the heuristics name first, so that a choice moves times but never numbers. Measured once
// for each shape; equal shapes share the choice. Only in CUDA builds.
#pragma once

#include <cublasLt.h>

#include <vector>

#include "kernels/gemm/gemm_call.h"

namespace stepgate {

class GemmAutotuner {
 public:
  // The first within 2 % of the fastest, by the order of the heuristics, so that ties go the same
  // way in most processes. Allocates two factors and two results of that shape for as long as it
  // measures, and waits for the device. Throws std::runtime_error where memory has no room for
  // these.
  cublasLtMatmulAlgo_t algorithm_for(const GemmCall&);

  // One algorithm that was found; `choices` lists them in the order in which they were asked for.
  struct Choice {
    GemmShape gemm;
    std::int64_t workspace_bytes = 0;
    cublasLtMatmulAlgo_t algorithm{};
    int rank = 0;        // among the heuristics' algorithms; 0 is their first
    double speedup = 1;  // of the chosen over their first
  };
  const std::vector<Choice>& choices() const { return choices_; }

 private:
  std::vector<Choice> choices_;
};

}  // namespace stepgate
