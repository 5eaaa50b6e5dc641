// SPDX-License-Identifier: MIT
// The arithmetic of a step: all that two steps must share, besides their ranks, sizes and dtype,
// for their losses and gradients to be comparable, and that decides how near those then are.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "kernels/kernel.h"
#include "scenario/scenario.h"

namespace stepgate {

// A launch of the model, or a collective, which rounds where it adds as kernels do.
struct ModelWork {
  std::string name;  // of the kernel; of a collective with how it reduces
  KernelShape shape = {};
  DType dtype = DType::fp32;
  KernelAttributes attributes = {};
  std::int64_t payload_bytes = 0;  // of a collective
  bool operator==(const ModelWork&) const = default;
};

struct Arithmetic {
  std::uint64_t seed = 0;                 // of weights and batches
  std::vector<std::int64_t> batch_sizes;  // of the steps, in turns
  std::vector<std::int64_t> lengths;      // tokens of the samples, in turns; empty: all alike
  ModelKnobs model;
  std::int64_t workspace_bytes = 0;  // by which cuBLASLt chooses how a GEMM adds up
  std::set<std::string> kernels;     // of model and optimizer; evaluation changes nothing
  // Each kernel of the optimizer with the attributes that it is launched with, once.
  std::vector<std::pair<std::string, KernelAttributes>> update;
  GemmChoice gemm_algorithms = GemmChoice::heuristic;
  std::vector<ModelWork> model_work;    // of forward and backward, in order
  double rows = 0;                      // a step, on average, that a loss is the mean of
  std::vector<std::string> parameters;  // by name, in the order of gradients
  std::string against_gradients;        // why those cannot be read, in words; empty: they can
};

}  // namespace stepgate
