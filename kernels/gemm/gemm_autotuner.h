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
  // Returns the first algorithm, in the order of the heuristics, within 2 % of the fastest, so that
  // most processes decide close cases alike. While it measures, it allocates two factors and two
  // results of that shape, and waits for the device. Throws std::runtime_error where memory does
  // not suffice.
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
