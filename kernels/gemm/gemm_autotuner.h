// SPDX-License-Identifier: MIT
// Chooses the cuBLASLt algorithm of a GEMM by measuring. Only algorithms with the same bits as the
// first one of the heuristics compete, so that a choice changes times but never numbers. Each shape
// is measured once. Only in CUDA builds.
#pragma once

#include <cublasLt.h>

#include <vector>

#include "kernels/gemm/gemm_call.h"

namespace stepgate {

class GemmAutotuner {
 public:
  // Returns the choice of choose_by_time. While it measures, it allocates two factors and two
  // results of that shape, and waits for the device. Throws std::runtime_error where memory is
  // lacking.
  cublasLtMatmulAlgo_t algorithm_for(const GemmCall&);

  // One algorithm that was chosen; `choices` lists them in the order of the requests.
  struct Choice {
    GemmShape gemm;
    std::int64_t workspace_bytes = 0;
    cublasLtMatmulAlgo_t algorithm{};
    int rank = 0;        // among the algorithms of the heuristics, from 0
    double speedup = 1;  // over the heuristics' first algorithm
  };
  const std::vector<Choice>& choices() const { return choices_; }

 private:
  std::vector<Choice> choices_;
};

}  // namespace stepgate
