// SPDX-License-Identifier: MIT
#include "kernels/gemm/gemm_autotuner.h"

#include <algorithm>
#include <cstdint>
#include <vector>

#include "kernels/gemm/measured_operands.h"

namespace stepgate {
namespace {

constexpr int most_algorithms = 16;

// The sizes of the operands, in the kernel's order; the last is the result.
std::vector<MeasuredNumbers> operands_of(const GemmShape& gemm) {
  const auto [m, n, k, groups] = gemm.shape;
  const bool in_fp8 = gemm.factors != Factors::stored;
  const OperandFormat factor = in_fp8 ? OperandFormat::byte : OperandFormat::storage;
  std::vector<MeasuredNumbers> operands = {{groups * m * k, factor}, {groups * k * n, factor}};
  if (in_fp8) operands.insert(operands.end(), 2, {1, OperandFormat::single});
  if (has_bias(gemm.epilogue)) operands.emplace_back(n);
  if (has_gelu(gemm.epilogue)) operands.emplace_back(groups * m * n);
  operands.emplace_back(groups * m * n);
  return operands;
}

}  // namespace

cublasLtMatmulAlgo_t GemmAutotuner::algorithm_for(const GemmCall& call) {
  const auto known = std::find_if(choices_.begin(), choices_.end(), [&](const Choice& choice) {
    return choice.gemm == call.shape() && choice.workspace_bytes == call.workspace_bytes();
  });
  if (known != choices_.end()) return known->algorithm;
  const MeasuredOperands operands(call.kernel(), operands_of(call.shape()), call.shape().dtype);
  const auto algorithms = call.algorithms(most_algorithms);
  const MeasuredChoice chosen = choose_by_time(operands, algorithms.size(), [&](std::size_t index) {
    call.enqueue(operands.pointers(), algorithms[index], nullptr);
  });
  choices_.push_back({.gemm = call.shape(),
                      .workspace_bytes = call.workspace_bytes(),
                      .algorithm = algorithms[chosen.index],
                      .rank = static_cast<int>(chosen.index),
                      .speedup = chosen.speedup});
  return choices_.back().algorithm;
}

}  // namespace stepgate
